#include "server/compare_args.h"

#include <algorithm>
#include <charconv>

#include "base/ascii.h"

namespace skep {
namespace {

constexpr size_t kHalf = kDigestDigits / 2;

struct Word {
  std::string_view name;
  uint8_t when;
};

constexpr Word kWords[] = {
    {"ifeq", Request::kEquals},
    {"ifne", Request::kDiffers},
    {"ifdeq", Request::kDigestEquals},
    {"ifdne", Request::kDigestDiffers},
};

void WriteHalf(uint64_t half, char* at) {
  for (size_t i = 0; i < kHalf; ++i) at[i] = "0123456789abcdef"[half >> (60 - 4 * i) & 0xf];
}

std::optional<uint64_t> ParseHalf(std::string_view text) {
  uint64_t half = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, half, 16);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return half;
}

}  // namespace

std::array<char, kDigestDigits> DigestText(Digest digest) {
  std::array<char, kDigestDigits> text;
  WriteHalf(digest.high, text.data());
  WriteHalf(digest.low, text.data() + kHalf);
  return text;
}

std::optional<Digest> ParseDigest(std::string_view text) {
  if (text.size() != kDigestDigits) return std::nullopt;
  const auto high = ParseHalf(text.substr(0, kHalf));
  const auto low = ParseHalf(text.substr(kHalf));
  if (!high || !low) return std::nullopt;
  return Digest{.low = *low, .high = *high};
}

bool CompareOption::Read(std::span<const std::string_view> args, size_t& i) {
  const auto word = std::ranges::find_if(
      kWords, [&](const Word& w) { return EqualsIgnoringCase(w.name, args[i]); });
  if (word == std::end(kWords) || i + 1 == args.size()) return false;
  if (given() && when_ != word->when) return false;
  when_ = word->when;
  operand_ = args[i + 1];
  i += 2;
  return true;
}

bool CompareOption::Apply(Request& request) const {
  request.when |= when_;
  if ((when_ & (Request::kDigestEquals | Request::kDigestDiffers)) == 0) {
    if (given()) request.other = operand_;
    return true;
  }
  const auto digest = ParseDigest(operand_);
  if (digest) request.digest = *digest;
  return digest.has_value();
}

}  // namespace skep
