#include "engine/string_functions.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace skep {
namespace {

constexpr size_t kValueBytesMax = 64;

// A value that may be read by parts only.
class PartsOfString final : public ValueParts {
 public:
  explicit PartsOfString(const std::string& value) : value_(value) {}
  size_t size() const override { return value_.size(); }
  void Read(size_t offset, std::span<char> to) const override {
    ASSERT_LE(offset + to.size(), value_.size());
    value_.copy(to.data(), to.size(), offset);
  }

 private:
  const std::string& value_;
};

class StringFunctions : public testing::Test {
 protected:
  // Runs the body, and the one for values in parts beside it, if there is one and there is a value:
  // both do the same.
  FunctionEffect Run(FunctionBody body, const std::optional<std::string>& value,
                     std::string_view operand) {
    scratch_.Clear();
    const FunctionEffect effect =
        body({.value = value ? std::optional<std::string_view>(*value) : std::nullopt,
              .operand = operand,
              .scratch = &scratch_,
              .function = nullptr,
              .value_bytes_max = kValueBytesMax});
    if (value) CompareWithParts(body, effect, *value, operand);
    return effect;
  }

  void CompareWithParts(FunctionBody body, const FunctionEffect& effect, const std::string& value,
                        std::string_view operand) {
    constexpr std::pair<FunctionBody, PartsBody> kBodies[] = {
        {SetRange, SetRangeOfParts},
        {SetBit, SetBitOfParts},
        {ChangeBitFields, ChangeBitFieldsOfParts}};
    for (const auto& [of_string, of_parts] : kBodies) {
      if (of_string != body) continue;
      const PartsEffect parts = of_parts({.value = PartsOfString(value),
                                          .operand = operand,
                                          .scratch = &scratch_,
                                          .value_bytes_max = kValueBytesMax});
      EXPECT_EQ(parts.status.code(), effect.status.code());
      EXPECT_EQ(parts.integer, effect.integer);
      EXPECT_EQ(parts.returned, effect.returned);
      EXPECT_EQ(parts.changes, effect.action == FunctionEffect::Action::kReplace);
      if (!parts.changes) continue;
      std::string after = value;
      after.resize(parts.size);
      for (const PartEdit& edit : parts.edits) {
        ASSERT_LE(edit.offset + edit.bytes.size(), after.size());
        after.replace(edit.offset, edit.bytes.size(), edit.bytes);
      }
      EXPECT_EQ(after, effect.value);
    }
  }

  Scratch scratch_, operands_;
};

// Goal: set-range writes, grows with zeros, and builds no value beyond the limit.
TEST_F(StringFunctions, SetRange) {
  const auto operand = [&](uint64_t offset, std::string_view bytes) {
    return SetRangeOperand(offset, bytes, operands_);
  };
  EXPECT_EQ(Run(SetRange, "hello", operand(1, "EL")).value, "hELlo");
  EXPECT_EQ(Run(SetRange, "hello", operand(4, "ab")).value, "hellab");
  EXPECT_EQ(Run(SetRange, std::nullopt, operand(2, "x")).value, std::string("\0\0x", 3));
  const FunctionEffect effect = Run(SetRange, "", operand(kValueBytesMax - 1, "x"));
  EXPECT_EQ(effect.integer, static_cast<int64_t>(kValueBytesMax));
  for (const uint64_t offset : {uint64_t{kValueBytesMax}, UINT64_MAX}) {
    EXPECT_EQ(Run(SetRange, "", operand(offset, "x")).status.code(), Code::kTooLarge);
  }
  EXPECT_EQ(Run(SetRange, "", operand(0, "")).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(Run(SetRange, "", "short").status.code(), Code::kInvalidArgument);
}

// Goal: a bit that is the wanted one already is no change, unless the value has to grow for it.
TEST_F(StringFunctions, SetBit) {
  using enum FunctionEffect::Action;
  const auto set = [&](const std::optional<std::string>& value, uint64_t offset, bool bit) {
    return Run(SetBit, value, SetBitOperand(offset, bit, operands_));
  };
  EXPECT_EQ(set("\x40", 1, true).action, kKeep);
  EXPECT_EQ(set("\x40", 1, true).integer, 1);
  EXPECT_EQ(set("\x40", 1, false).value, std::string("\0", 1));
  EXPECT_EQ(set("\x40", 15, true).value, "\x40\x01");
  EXPECT_EQ(set(std::nullopt, 0, false).value, std::string("\0", 1));
  EXPECT_EQ(set("", 8 * kValueBytesMax - 1, true).value.size(), kValueBytesMax);
  EXPECT_EQ(set("", 8 * kValueBytesMax, true).status.code(), Code::kTooLarge);
  EXPECT_EQ(set("", UINT64_MAX, true).status.code(), Code::kTooLarge);
  EXPECT_EQ(Run(SetBit, "", "123").status.code(), Code::kInvalidArgument);
}

// A value as a list of bits, and what an operation does to it, worked out bit by bit.
class BitModel {
 public:
  std::optional<int64_t> Do(const BitFieldOperation& o) {
    using Wide = __int128;
    if (o.kind != BitFieldOperation::Kind::kGet && bits_.size() < Whole(o.offset + o.bits)) {
      bits_.resize(Whole(o.offset + o.bits));
    }
    Wide before = 0;
    for (unsigned i = 0; i < o.bits; ++i) {
      const bool bit = o.offset + i < bits_.size() && bits_[o.offset + i];
      const Wide weight = Wide{1} << (o.bits - 1 - i);
      before += bit ? (o.is_signed && i == 0 ? -weight : weight) : Wide{0};
    }
    if (o.kind == BitFieldOperation::Kind::kGet) return static_cast<int64_t>(before);
    const bool adds = o.kind == BitFieldOperation::Kind::kAdd;
    Wide after = adds ? before + o.value
                      : (o.is_signed ? Wide{o.value} : Wide{static_cast<uint64_t>(o.value)});
    const Wide count = Wide{1} << o.bits;
    const Wide least = o.is_signed ? -count / 2 : 0;
    const Wide most = least + count - 1;
    if (after < least || after > most) {
      if (o.overflow == BitFieldOperation::Overflow::kFail) return std::nullopt;
      if (o.overflow == BitFieldOperation::Overflow::kSaturate) {
        const bool has_wrapped = !adds && most - after > INT64_MAX;  // as in Redis
        after = after > most || has_wrapped ? most : least;
      } else {
        after = least + ((after - least) % count + count) % count;
      }
    }
    for (unsigned i = 0; i < o.bits; ++i) {
      bits_[o.offset + i] = (after >> (o.bits - 1 - i) & 1) != 0;
    }
    return static_cast<int64_t>(adds ? after : before);
  }
  std::string Bytes() const {
    std::string bytes(bits_.size() / 8, '\0');
    for (size_t i = 0; i < bits_.size(); ++i) {
      if (bits_[i]) bytes[i / 8] = static_cast<char>(bytes[i / 8] | 0x80 >> i % 8);
    }
    return bytes;
  }

 private:
  static size_t Whole(uint64_t bits) { return (bits + 7) / 8 * 8; }

  std::vector<bool> bits_;
};

int64_t RandomNumber(std::mt19937_64& rng) {
  const auto any = static_cast<int64_t>(rng());
  return any >> (rng() % 64);  // of every size
}

// Goal: bit-field agrees with a list of bits, whatever the widths, offsets and overflows.
// Method: random operations, several in one operand, on a value of a few bytes. A failure prints
// its seed.
TEST_F(StringFunctions, BitFieldAgreesWithModel) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  BitModel model;
  std::string value;
  for (int step = 0; step < 5000; ++step) {
    std::string operand;
    std::vector<std::optional<int64_t>> expected;
    for (uint64_t count = rng() % 4; count > 0; --count) {
      const bool is_signed = rng() % 2 == 0;
      const BitFieldOperation o = {.kind = static_cast<BitFieldOperation::Kind>(rng() % 3),
                                   .overflow = static_cast<BitFieldOperation::Overflow>(rng() % 3),
                                   .is_signed = is_signed,
                                   .bits = static_cast<uint8_t>(1 + rng() % (is_signed ? 64 : 63)),
                                   .offset = rng() % 200,
                                   .value = RandomNumber(rng)};
      operand.resize(operand.size() + kBitFieldBytes);
      WriteBitFieldOperation(o, operand.data() + operand.size() - kBitFieldBytes);
      expected.push_back(model.Do(o));
    }
    const FunctionEffect effect = Run(ChangeBitFields, value, operand);
    ASSERT_TRUE(effect.status.ok());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(ReadBitFieldResult(effect.returned, i), expected[i]) << step;
    }
    if (effect.action == FunctionEffect::Action::kReplace) value = effect.value;
    ASSERT_EQ(value, model.Bytes()) << step;
  }
}

// Goal: bytes that are no operation, and fields beyond the limit, are refused.
TEST_F(StringFunctions, BitFieldRefuses) {
  const auto run = [&](const BitFieldOperation& o) {
    std::string operand(kBitFieldBytes, '\0');
    WriteBitFieldOperation(o, operand.data());
    return Run(ChangeBitFields, "", operand).status.code();
  };
  constexpr auto kSet = BitFieldOperation::Kind::kSet;
  EXPECT_EQ(run({.kind = kSet, .bits = 8, .offset = 8 * kValueBytesMax - 8}), Code::kOk);
  EXPECT_EQ(run({.kind = kSet, .bits = 8, .offset = 8 * kValueBytesMax - 7}), Code::kTooLarge);
  EXPECT_EQ(run({.bits = 8, .offset = 8 * kValueBytesMax}), Code::kOk);
  EXPECT_EQ(run({.bits = 64}), Code::kInvalidArgument);
  EXPECT_EQ(run({.bits = 0}), Code::kInvalidArgument);
  EXPECT_EQ(run({.is_signed = true, .bits = 65}), Code::kInvalidArgument);
  EXPECT_EQ(run({.kind = static_cast<BitFieldOperation::Kind>(3)}), Code::kInvalidArgument);
  EXPECT_EQ(run({.overflow = static_cast<BitFieldOperation::Overflow>(3)}), Code::kInvalidArgument);
  EXPECT_EQ(run({.offset = UINT64_MAX}), Code::kInvalidArgument);
  EXPECT_EQ(Run(ChangeBitFields, "", "short").status.code(), Code::kInvalidArgument);
}

// Goal: the sum is the new value; what is no number, or no finite sum, changes nothing.
TEST_F(StringFunctions, AddFloat) {
  EXPECT_EQ(Run(AddFloat, "10.50", "0.1").value, "10.6");
  EXPECT_EQ(Run(AddFloat, std::nullopt, "-1.5e1").returned, "-15");
  EXPECT_STREQ(Run(AddFloat, "abc", "1").status.what(), "value is not a valid float");
  EXPECT_STREQ(Run(AddFloat, "1", "abc").status.what(), "value is not a valid float");
  EXPECT_STREQ(Run(AddFloat, "1", "inf").status.what(), "increment would produce NaN or Infinity");
}

}  // namespace
}  // namespace skep
