#include "skep/status.h"

#include <fmt/format.h>

#include <cstring>

namespace skep {
namespace {

const char* NameOf(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kNotSupported:
      return "not supported";
    case Code::kTooLarge:
      return "too large";
    case Code::kOutOfMemory:
      return "out of memory";
    case Code::kSnapshotTooOld:
      return "snapshot too old";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kAborted:
      return "aborted";
    case Code::kIo:
      return "I/O error";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kMoved:
      return "moved";
    case Code::kWrongType:
      return "wrong type";
  }
  return "unknown";
}

}  // namespace

std::string Status::ToString() const {
  std::string text = NameOf(code());
  if (*what_ != '\0') text += fmt::format(": {}", what_);
  if (code() == Code::kIo && detail() != 0) {
    text += fmt::format(" ({})", std::strerror(static_cast<int>(detail())));
  } else if (detail() != 0) {
    text += fmt::format(" ({})", detail());
  }
  return text;
}

}  // namespace skep
