// Bodies whose pieces all have texts of the same lengths.
#include "types/equal_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <string>
#include <vector>

#include "types/text.h"

namespace skep::types {
namespace {

std::string Text(std::string_view text) {
  std::string bytes(TextBytes(text), '\0');
  WriteText(bytes.data(), text);
  return bytes;
}

// Goal: pieces are taken for equal exactly if all have texts of the same lengths, below 127; then a
// search finds the same as a walk, with no more comparisons than halving needs.
// Method: random bodies of each shape. Mostly one length for all, and a piece of another one now
// and then; bytes are often such as lengths are.
TEST(EqualPieces, AgreeWithAWalk) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  const PieceShape shapes[] = {
      {}, {.has_value = true}, {.trail = 8}, {.lead = 8}, {.lead = 8, .trail = 8}};
  for (int round = 0; round < 4000; ++round) {
    const PieceShape shape = shapes[rng() % std::size(shapes)];
    const auto bytes_of = [&](size_t size) {
      std::string bytes(size, '\0');
      for (char& byte : bytes) byte = static_cast<char>(rng() % 6);
      return bytes;
    };
    const size_t long_by = rng() % 20 == 0 ? 122 : 0;
    const size_t key_bytes = long_by + rng() % 5;
    const size_t value_bytes = rng() % 4;
    const bool varies = rng() % 2 == 0;
    std::vector<std::string> texts;
    std::vector<std::string> pieces;
    std::string body;
    bool are_equal = true;
    for (size_t i = rng() % 40; i > 0; --i) {
      const size_t more = varies && rng() % 16 == 0 ? 1 : 0;
      const bool is_of_key = rng() % 2 == 0;
      texts.push_back(bytes_of(key_bytes + (is_of_key ? more : 0)));
      const std::string value = bytes_of(value_bytes + (is_of_key ? 0 : more));
      std::string piece = bytes_of(shape.lead) + Text(texts.back());
      if (shape.has_value) piece += Text(value);
      pieces.push_back(piece + bytes_of(shape.trail));
      body += pieces.back();
      are_equal &= texts.back().size() == texts.front().size() && texts.back().size() < 127 &&
                   pieces.back().size() == pieces.front().size();
    }
    const EqualPieces equal(body, shape);
    ASSERT_EQ(static_cast<bool>(equal), are_equal && !pieces.empty());
    if (!equal) continue;
    ASSERT_EQ(equal.count(), pieces.size());
    for (size_t i = 0; i < pieces.size(); ++i) {
      ASSERT_EQ(equal.piece(i), pieces[i]);
      ASSERT_EQ(equal.text(i), texts[i]);
    }
    const size_t below = rng() % (pieces.size() + 1);
    const size_t from = rng() % (below + 1);
    size_t compared = 0;
    const size_t found = equal.FirstNotBelow(from, [&](std::string_view piece, std::string_view) {
      ++compared;
      return static_cast<size_t>(piece.data() - body.data()) / equal.stride() < below;
    });
    ASSERT_EQ(found, below);
    ASSERT_LE(compared, static_cast<size_t>(std::bit_width(pieces.size() - from)));
  }
}

// Goal: bytes that are no pieces are not taken for some.
TEST(EqualPieces, NeedWholePieces) {
  const PieceShape field = {.has_value = true};
  EXPECT_FALSE(EqualPieces("", {}));
  EXPECT_FALSE(EqualPieces(std::string_view("\0\0", 2), {}));
  EXPECT_FALSE(
      EqualPieces("\x02"
                  "a\x02",
                  {}));
  EXPECT_FALSE(
      EqualPieces("\x02"
                  "a",
                  field));
  EXPECT_FALSE(EqualPieces("\x80\x01", {}));
  EXPECT_FALSE(
      EqualPieces("\x02"
                  "a",
                  {.trail = 8}));
  EXPECT_FALSE(EqualPieces("12345678", {.lead = 8}));
}

// Goal: pieces of other lengths are not taken for equal where their bytes together are as many.
// Method: the second and third piece differ from the first; of the fields, a byte of a name is the
// length that would stand there.
TEST(EqualPieces, AreTheSameOneByOne) {
  const std::string members = Text("a") + Text("bc") + Text("");
  EXPECT_FALSE(EqualPieces(members, {}));
  const std::string fields =
      Text("a") + Text("1") + Text("b") + Text("") + Text("\x02") + Text("22");
  EXPECT_FALSE(EqualPieces(fields, {.has_value = true}));
}

}  // namespace
}  // namespace skep::types
