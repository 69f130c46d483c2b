#include "wire/inline_request.h"

#include <cstddef>

namespace skep {
namespace {

bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool EndsWord(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// The value of the digit, 0..15, or -1.
int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char Escaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

// Reads one line from left to right. The text of a word is never longer than the word in the line,
// so `out` needs line.size() bytes in all.
class Splitter {
 public:
  Splitter(std::string_view line, std::unique_ptr<char[]>& unquoted)
      : line_(line), unquoted_(unquoted) {}

  // Returns false at the end of the line.
  bool SkipBlanks() {
    while (at_ < line_.size() && IsBlank(line_[at_])) ++at_;
    return at_ < line_.size();
  }

  // Reads the word that begins here; false if its quotes are wrong.
  bool ReadWord(std::string_view& word) {
    const size_t start = at_;
    while (at_ < line_.size() && !EndsWord(line_[at_])) {
      if (line_[at_] == '"' || line_[at_] == '\'') return ReadQuotedWord(start, word);
      ++at_;
    }
    word = line_.substr(start, at_ - start);
    return true;
  }

 private:
  // Reads a word whose bytes from `start` up to the quote at at_ stand for themselves.
  bool ReadQuotedWord(size_t start, std::string_view& word) {
    if (out_ == nullptr) {
      unquoted_ = std::make_unique_for_overwrite<char[]>(line_.size());
      out_ = unquoted_.get();
    }
    const char* word_start = out_;
    for (size_t i = start; i < at_; ++i) *out_++ = line_[i];
    const bool closed = line_[at_++] == '"' ? ReadDoubleQuoted() : ReadSingleQuoted();
    if (!closed || (at_ < line_.size() && !IsBlank(line_[at_]))) return false;
    word = std::string_view(word_start, static_cast<size_t>(out_ - word_start));
    return true;
  }

  bool ReadDoubleQuoted() {
    while (at_ < line_.size()) {
      const char c = line_[at_++];
      if (c == '"') return true;
      *out_++ = c == '\\' && at_ < line_.size() ? ReadEscape() : c;
    }
    return false;
  }

  char ReadEscape() {
    const char c = line_[at_++];
    if (c == 'x' && line_.size() - at_ >= 2) {
      const int high = HexDigit(line_[at_]);
      const int low = HexDigit(line_[at_ + 1]);
      if (high >= 0 && low >= 0) {
        at_ += 2;
        return static_cast<char>(high * 16 + low);
      }
    }
    return Escaped(c);
  }

  bool ReadSingleQuoted() {
    while (at_ < line_.size()) {
      char c = line_[at_++];
      if (c == '\'') return true;
      if (c == '\\' && at_ < line_.size() && line_[at_] == '\'') c = line_[at_++];
      *out_++ = c;
    }
    return false;
  }

  std::string_view line_;
  std::unique_ptr<char[]>& unquoted_;
  size_t at_ = 0;
  char* out_ = nullptr;
};

}  // namespace

bool SplitInlineRequest(std::string_view line, std::unique_ptr<char[]>& unquoted,
                        std::vector<std::string_view>& args) {
  Splitter splitter(line, unquoted);
  while (splitter.SkipBlanks()) {
    std::string_view word;
    if (!splitter.ReadWord(word)) return false;
    args.push_back(word);
  }
  return true;
}

}  // namespace skep
