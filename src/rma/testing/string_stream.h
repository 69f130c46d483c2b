// string_stream.h: a stream from which one reads what was written to it.
#pragma once

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include "base/network.h"

namespace skep::rma {

class StringStream final : public Stream {
 public:
  ssize_t Read(char* to, size_t size) override {
    ++reads;
    if (error != 0) return -error;
    if (bytes.empty()) return is_ended ? 0 : -EAGAIN;
    const size_t count = std::min({size, bytes.size(), give_max});
    std::copy_n(bytes.begin(), count, to);
    bytes.erase(0, count);
    return static_cast<ssize_t>(count);
  }
  ssize_t Write(std::string_view more) override {
    ++writes;
    if (error != 0) return -error;
    if (take_max == 0) return -EAGAIN;
    const size_t count = std::min(more.size(), take_max);
    bytes += more.substr(0, count);
    return static_cast<ssize_t>(count);
  }
  void FinishSending() override { is_ended = true; }
  Address peer() const override { return ""; }
  Address local() const override { return ""; }

  std::string bytes;
  size_t take_max = SIZE_MAX;  // of a Write
  size_t give_max = SIZE_MAX;  // by a Read
  bool is_ended = false;
  int error = 0;
  size_t reads = 0;
  size_t writes = 0;
};

}  // namespace skep::rma
