#include "durable/rdb_input.h"

#include <liblzf/lzf.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "durable/rdb_crc64.h"

namespace skep::durable {
namespace {

constexpr size_t kReadBytes = 64 * 1024;
constexpr uint64_t kLzfExpansionMax = 88;

uint64_t BigEndian(const char* bytes, size_t count) {
  uint64_t number = 0;
  for (size_t i = 0; i < count; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

}  // namespace

RdbInput::RdbInput(File& file, uint64_t file_bytes, uint64_t string_bytes_max)
    : file_(file),
      file_bytes_(file_bytes),
      string_bytes_max_(string_bytes_max),
      buffer_(std::make_unique_for_overwrite<char[]>(kReadBytes)) {}

uint64_t RdbInput::Crc() {
  crc_ = RdbCrc64({buffer_.get() + summed_, begin_ - summed_}, crc_);
  summed_ = begin_;
  return crc_;
}

uint64_t RdbInput::Length() {
  const uint64_t at = offset_;
  return LengthFrom(Byte(), at);
}

void RdbInput::String(std::string* to) {
  to->clear();
  const uint64_t at = offset_;
  const StringHead head = Head();
  if (!ok()) return;
  switch (head.kind) {
    case StringHead::Kind::kBytes:
      to->resize(head.bytes);
      return Take(to->data(), head.bytes);
    case StringHead::Kind::kInt8:
      *to = std::to_string(Number<int8_t>());
      return;
    case StringHead::Kind::kInt16:
      *to = std::to_string(Number<int16_t>());
      return;
    case StringHead::Kind::kInt32:
      *to = std::to_string(Number<int32_t>());
      return;
    case StringHead::Kind::kLzf:
      return Unpack(head, at, to);
  }
}

void RdbInput::SkipString() {
  const StringHead head = Head();
  switch (head.kind) {
    case StringHead::Kind::kInt8:
      return Skip(1);
    case StringHead::Kind::kInt16:
      return Skip(2);
    case StringHead::Kind::kInt32:
      return Skip(4);
    case StringHead::Kind::kBytes:
    case StringHead::Kind::kLzf:
      return Skip(head.bytes);
  }
}

void RdbInput::Fail(Status status) {
  if (ok()) status_ = status;
}

void RdbInput::Take(char* to, uint64_t bytes) {
  if (ok() && bytes > left()) {
    Fail(Status(Code::kCorrupt, "an RDB file ends too early", offset_));
  }
  while (ok() && bytes > 0) {
    if (begin_ == end_ && !Refill()) return;
    const auto count = static_cast<size_t>(std::min<uint64_t>(bytes, end_ - begin_));
    if (to != nullptr) {
      std::memcpy(to, buffer_.get() + begin_, count);
      to += count;
    }
    begin_ += count;
    offset_ += count;
    bytes -= count;
  }
}

bool RdbInput::Refill() {
  Crc();
  begin_ = end_ = summed_ = 0;
  const Result<size_t> got = file_.ReadAt(offset_, buffer_.get(), kReadBytes);
  if (!got) {
    Fail(got.error());
  } else if (*got == 0) {
    Fail(Status(Code::kCorrupt, "an RDB file ends too early", offset_));
  } else {
    end_ = *got;
  }
  return ok();
}

uint64_t RdbInput::LengthFrom(uint8_t first, uint64_t at) {
  char bytes[8] = {};
  if (first >> 6 == 0) return first;
  if (first >> 6 == 1) return uint64_t{first & 0x3fu} << 8 | Byte();
  if (first == 0x80 || first == 0x81) {
    const size_t count = first == 0x80 ? 4 : 8;
    Take(bytes, count);
    return BigEndian(bytes, count);
  }
  Fail(Status(Code::kCorrupt, "a length in an RDB file is malformed", at));
  return 0;
}

RdbInput::StringHead RdbInput::Head() {
  using Kind = StringHead::Kind;
  const uint64_t at = offset_;
  const uint8_t first = Byte();
  StringHead head = {.kind = Kind::kBytes};
  if (first == 0xc0) return {.kind = Kind::kInt8};
  if (first == 0xc1) return {.kind = Kind::kInt16};
  if (first == 0xc2) return {.kind = Kind::kInt32};
  if (first == 0xc3) {
    head.kind = Kind::kLzf;
    head.bytes = Length();
    head.unpacked_bytes = Length();
  } else {
    head.bytes = LengthFrom(first, at);
  }
  if (ok() && head.bytes > left()) {
    Fail(Status(Code::kCorrupt, "a string of an RDB file ends behind the file", at));
  }
  if (head.kind == Kind::kLzf && (head.bytes == 0 || head.unpacked_bytes == 0 ||
                                  head.unpacked_bytes > kLzfExpansionMax * head.bytes)) {
    Fail(Status(Code::kCorrupt, "a compressed string of an RDB file is malformed", at));
  }
  if (std::max(head.bytes, head.unpacked_bytes) > string_bytes_max_) {
    Fail(Status(Code::kTooLarge, "a string of an RDB file is too long", string_bytes_max_));
  }
  return head;
}

void RdbInput::Unpack(const StringHead& head, uint64_t at, std::string* to) {
  packed_.resize(head.bytes);
  Take(packed_.data(), head.bytes);
  if (!ok()) return;
  to->resize(head.unpacked_bytes);
  const unsigned got = lzf_decompress(packed_.data(), static_cast<unsigned>(packed_.size()),
                                      to->data(), static_cast<unsigned>(to->size()));
  if (got == to->size()) return;
  to->clear();
  Fail(Status(Code::kCorrupt, "a compressed string of an RDB file is malformed", at));
}

}  // namespace skep::durable
