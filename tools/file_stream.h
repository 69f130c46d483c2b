// file_stream.h: reads or writes a file that is named on a command line.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace skep {

// A file, or a standard stream, which is "-".
class FileStream {
 public:
  FileStream(const std::string& path, bool writes)
      : path_(path == "-" ? (writes ? "standard output" : "standard input") : path),
        file_(path != "-" ? std::fopen(path.c_str(), writes ? "we" : "re")
                          : (writes ? stdout : stdin)) {
    if (file_ == nullptr) error_ = errno;
  }
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;
  ~FileStream() {
    if (file_ != nullptr && file_ != stdin && file_ != stdout) std::fclose(file_);
  }

  bool ok() const { return error_ == 0; }
  std::string problem() const { return fmt::format("{}: {}", path_, std::strerror(error_)); }
  const std::string& path() const { return path_; }

  bool Write(std::string_view bytes) {
    return Note(std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size());
  }
  bool Flush() { return Note(std::fflush(file_) == 0); }
  bool Read(std::string* to, size_t bytes) {
    const size_t before = to->size();
    to->resize(before + bytes);
    const size_t got = std::fread(to->data() + before, 1, bytes, file_);
    to->resize(before + got);
    Note(std::ferror(file_) == 0);
    return got > 0;
  }

 private:
  bool Note(bool is_ok) {
    if (!is_ok) error_ = errno;
    return is_ok;
  }

  const std::string path_;
  std::FILE* const file_;
  int error_ = 0;
};

}  // namespace skep
