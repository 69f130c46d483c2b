#include "server/event_classes.h"

#include <algorithm>
#include <iterator>

namespace skep {
namespace {

struct Letter {
  char letter;
  uint32_t classes;
};

constexpr uint32_t kAllClasses = kGenericEvents | kStringEvents | kListEvents | kSetEvents |
                                 kHashEvents | kSortedSetEvents | kExpiredEvents | kEvictedEvents |
                                 kStreamEvents | kModuleEvents;
// In the order in which Redis writes them.
constexpr Letter kLetters[] = {
    {'A', kAllClasses},       {'g', kGenericEvents},    {'$', kStringEvents},
    {'l', kListEvents},       {'s', kSetEvents},        {'h', kHashEvents},
    {'z', kSortedSetEvents},  {'x', kExpiredEvents},    {'e', kEvictedEvents},
    {'t', kStreamEvents},     {'d', kModuleEvents},     {'n', kNewEvents},
    {'K', kKeyspaceChannels}, {'E', kKeyeventChannels}, {'m', kMissEvents}};

}  // namespace

std::optional<uint32_t> ParseEventClasses(std::string_view letters) {
  uint32_t classes = 0;
  for (const char letter : letters) {
    const Letter* const at = std::ranges::find(kLetters, letter, &Letter::letter);
    if (at == std::end(kLetters)) return std::nullopt;
    classes |= at->classes;
  }
  return classes;
}

std::string TextOfEventClasses(uint32_t classes) {
  std::string text;
  uint32_t written = 0;
  for (const auto& [letter, wanted] : kLetters) {
    const bool is_left_out = wanted == kNewEvents && written == kAllClasses;  // as Redis does
    if ((classes & wanted) != wanted || (written & wanted) == wanted || is_left_out) continue;
    text += letter;
    written |= wanted;
  }
  return text;
}

}  // namespace skep
