#include "bench/key_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>

namespace skep::bench {
namespace {

using Problem = std::unexpected<std::string>;

// Returns the number of a line that is like one before it, or the number of lines.
uint64_t FindRepeated(const KeyFile& keys) {
  std::vector<uint64_t> order(keys.count());
  std::iota(order.begin(), order.end(), uint64_t{0});
  std::ranges::stable_sort(order, {}, [&](uint64_t i) { return keys.at(i); });
  uint64_t repeated = keys.count();
  for (size_t i = 1; i < order.size(); ++i) {
    if (keys.at(order[i - 1]) == keys.at(order[i])) repeated = std::min(repeated, order[i]);
  }
  return repeated;
}

}  // namespace

std::expected<KeyFile, std::string> KeyFile::Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  KeyFile keys;
  keys.text_.assign(std::istreambuf_iterator<char>(file), {});
  if (!file || keys.text_.empty()) return Problem(fmt::format("{} has no keys to read", path));
  if (keys.text_.back() != '\n') keys.text_ += '\n';
  keys.begins_.push_back(0);
  for (size_t end = 0; (end = keys.text_.find('\n', keys.begins_.back())) != std::string::npos;) {
    const size_t bytes = end - keys.begins_.back();
    const size_t line = keys.begins_.size();
    if (bytes == 0) return Problem(fmt::format("{}: line {} is empty", path, line));
    if (bytes > kKeyBytesMax) {
      return Problem(fmt::format("{}: line {} is longer than {} bytes", path, line, kKeyBytesMax));
    }
    keys.bytes_max_ = std::max(keys.bytes_max_, bytes);
    keys.begins_.push_back(end + 1);
  }
  if (const uint64_t repeated = FindRepeated(keys); repeated < keys.count()) {
    return Problem(fmt::format("{}: line {} is like one before", path, repeated + 1));
  }
  return keys;
}

}  // namespace skep::bench
