// equal_pieces.h: bodies of segments whose pieces all have texts of the same lengths, so that a
// piece is found by halving, not by a walk.
//
// A piece is some bytes, a text, maybe another text, and some bytes:
//
//   lead | length of the text + 1, one byte | text | (length + 1 | text) | trail
//
// If the lengths of the first piece stand where those of a second piece of the same size would,
// then that is the second piece, and so on: a body in which they do, and which ends with a piece,
// has pieces of one size only.
//
// Cost: of the constructor a look at each piece's lengths, of the searches a comparison for each
// time that the pieces can be halved.
//
// Thread safety: a value; the bytes must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace skep::types {

struct PieceShape {
  size_t lead = 0;         // bytes before the first text
  bool has_value = false;  // there is a second text
  size_t trail = 0;        // bytes behind the texts
};

class EqualPieces {
 public:
  EqualPieces(std::string_view body, PieceShape shape) : body_(body), text_at_(shape.lead + 1) {
    if (body.size() < text_at_) return;
    const uint8_t key = Length(body, shape.lead);
    const size_t value_at = shape.lead + key;
    if (key == 0 || key >= 0x80 || (shape.has_value && body.size() <= value_at)) return;
    const uint8_t value = shape.has_value ? Length(body, value_at) : uint8_t{0};
    if ((shape.has_value && value == 0) || value >= 0x80) return;
    const size_t stride = value_at + value + shape.trail;
    if (body.size() % stride != 0) return;
    bool are_equal = true;
    for (size_t at = stride; at < body.size(); at += stride) {
      are_equal &= Length(body, at + shape.lead) == key;
    }
    for (size_t at = stride; shape.has_value && at < body.size(); at += stride) {
      are_equal &= Length(body, at + value_at) == value;
    }
    if (!are_equal) return;
    stride_ = stride;
    text_bytes_ = key - size_t{1};
  }

  // Whether the body has at least one piece, and all are alike. The members below require it.
  explicit operator bool() const { return stride_ != 0; }

  // The first piece from number `from` on for which is_below(piece, its first text), which is true
  // of the first ones only, is false; count(): there is none.
  template <class IsBelow>
  size_t FirstNotBelow(size_t from, IsBelow is_below) const {
    size_t low = from;
    for (size_t high = count(); low < high;) {
      const size_t middle = low + (high - low) / 2;
      if (is_below(piece(middle), text(middle))) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
  size_t count() const { return body_.size() / stride_; }
  size_t stride() const { return stride_; }  // bytes of a piece
  std::string_view piece(size_t i) const { return {body_.data() + i * stride_, stride_}; }
  std::string_view text(size_t i) const {
    return {body_.data() + i * stride_ + text_at_, text_bytes_};
  }

 private:
  static uint8_t Length(std::string_view body, size_t at) { return static_cast<uint8_t>(body[at]); }

  std::string_view body_;
  size_t text_at_;
  size_t stride_ = 0;
  size_t text_bytes_ = 0;
};

}  // namespace skep::types
