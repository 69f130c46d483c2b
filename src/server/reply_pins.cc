#include "server/reply_pins.h"

#include <algorithm>
#include <utility>

namespace skep {

void ReplyPins::Add(uint64_t at, Value value) {
  bytes_ += value->size();
  pins_.push_back({.at = at, .value = std::move(value)});
}

std::string ReplyPins::Whole(std::string_view own, uint64_t at) const {
  std::string whole;
  for (const Pin& pin : pins_) {
    if (pin.at <= at) continue;
    const size_t before = pin.at - at;
    whole += own.substr(0, before);
    own.remove_prefix(before);
    at = pin.at;
    for (size_t from = 0; from < pin.value->size();) {
      const std::string_view bytes = pin.value->From(from);
      whole += bytes;
      from += bytes.size();
    }
  }
  return whole += own;
}

void ReplyPins::DropBehind(uint64_t position) {
  for (; !pins_.empty() && pins_.back().at > position; pins_.pop_back()) {
    bytes_ -= pins_.back().value->size() - pins_.back().sent;
  }
}

void ReplyPins::List(std::string_view own, uint64_t at, size_t bytes_max,
                     std::vector<std::string_view>& parts) const {
  const auto add = [&](std::string_view bytes) {
    const std::string_view part = bytes.substr(0, bytes_max);
    if (!part.empty()) parts.push_back(part);
    bytes_max -= part.size();
  };
  for (const Pin& pin : pins_) {
    const uint64_t before = pin.at - at;
    if (before > own.size() || bytes_max == 0) break;
    add(own.substr(0, before));
    own.remove_prefix(before);
    at = pin.at;
    for (size_t from = pin.sent; from < pin.value->size() && bytes_max > 0;) {
      const std::string_view bytes = pin.value->From(from);
      add(bytes);
      from += bytes.size();
    }
  }
  add(own);
}

size_t ReplyPins::TakeSent(uint64_t at, size_t sent) {
  size_t own = 0;
  for (; !pins_.empty(); pins_.pop_front()) {
    Pin& pin = pins_.front();
    const size_t before = std::min<uint64_t>(pin.at - at, sent);
    own += before;
    at += before;
    sent -= before;
    const size_t of_pin = std::min(pin.value->size() - pin.sent, sent);
    pin.sent += of_pin;
    bytes_ -= of_pin;
    sent -= of_pin;
    if (pin.sent < pin.value->size()) return own;
  }
  return own + sent;
}

}  // namespace skep
