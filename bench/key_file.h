// key_file.h: the keys of a file, one a line, for benchmarks with the keys that somebody has.
//
// A line is a key without its newline; its bytes may be any but newlines. The last line may lack
// its newline. Keys are numbered in the order of the lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace skep::bench {

// Thread safety: nothing changes once it is read.
class KeyFile {
 public:
  // A longer line is an error: the operations of a benchmark have room for the longest key each.
  static constexpr size_t kKeyBytesMax = 4096;

  // Returns the keys of the file at `path`, or a line for people: it cannot be read, has no line,
  // or has a line that is empty, longer than kKeyBytesMax or like one before. Cost: all lines are
  // sorted.
  static std::expected<KeyFile, std::string> Read(const std::string& path);

  uint64_t count() const { return begins_.size() - 1; }
  // Requires number < count().
  std::string_view at(uint64_t number) const {
    const size_t begin = begins_[number];
    return std::string_view(text_).substr(begin, begins_[number + 1] - begin - 1);
  }
  // The bytes of the longest key.
  size_t bytes_max() const { return bytes_max_; }

 private:
  std::string text_;            // each line ends with a newline
  std::vector<size_t> begins_;  // of the lines, and where the last one ends
  size_t bytes_max_ = 0;
};

}  // namespace skep::bench
