// Tests the functions of elements on values in parts, beside the same functions on strings.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "engine/element_functions.h"
#include "engine/value_parts.h"

namespace skep {
namespace {

constexpr size_t kValueBytesMax = size_t{256} << 10;

// A value of which no more than a chunk is read at once.
class PartsOfString final : public ValueParts {
 public:
  explicit PartsOfString(std::string_view value) : value_(value) {}
  size_t size() const override { return value_.size(); }
  void Read(size_t offset, std::span<char> to) const override {
    ASSERT_LE(offset + to.size(), value_.size());
    ASSERT_LE(to.size(), kElementChunkBytes);
    value_.copy(to.data(), to.size(), offset);
  }

 private:
  const std::string_view value_;
};

class ElementParts : public testing::Test {
 protected:
  ElementParts() : drawn_(3 * kValueBytesMax, '\0') {
    for (char& byte : drawn_) byte = static_cast<char>(random_() % 3 == 0 ? random_() : 0);
  }

  std::string RandomBytes(size_t size) {
    return drawn_.substr(random_() % (drawn_.size() - size), size);
  }

  // Both bodies do the same.
  void Compare(const Function& f, std::string_view value, std::string_view operand) {
    scratch_.Clear();
    const FunctionEffect whole = f.body({.value = value,
                                         .operand = operand,
                                         .scratch = &scratch_,
                                         .function = &f,
                                         .value_bytes_max = kValueBytesMax});
    const PartsEffect parts = f.parts_body({.value = PartsOfString(value),
                                            .operand = operand,
                                            .scratch = &scratch_,
                                            .function = &f,
                                            .value_bytes_max = kValueBytesMax});
    ASSERT_EQ(parts.status.code(), whole.status.code());
    ASSERT_STREQ(parts.status.what(), whole.status.what());
    ASSERT_EQ(parts.integer, whole.integer);
    ASSERT_TRUE(parts.returned == whole.returned);
    ASSERT_EQ(parts.changes, whole.action == FunctionEffect::Action::kReplace);
    if (!parts.changes) return;
    std::string after(value);
    ASSERT_EQ(parts.size, after.size());
    for (const PartEdit& edit : parts.edits) {
      ASSERT_LE(edit.offset + edit.bytes.size(), after.size());
      // An edit begins and ends with bytes that change.
      ASSERT_NE(after[edit.offset], edit.bytes.front());
      ASSERT_NE(after[edit.offset + edit.bytes.size() - 1], edit.bytes.back());
      after.replace(edit.offset, edit.bytes.size(), edit.bytes);
    }
    ASSERT_TRUE(after == whole.value);
  }

  std::mt19937_64 random_{35};
  std::string drawn_;
  Scratch scratch_;
};

// Goal: each function of elements does the same on a value in parts as on a string, and edits only
// what changes; but for sums of floats, which have no body for parts.
// Method: all functions and types, sizes around the ends of chunks, operands that fit and that do
// not.
TEST_F(ElementParts, DoWhatTheFunctionsDo) {
  size_t without = 0;
  for (const Function* const f : AllFunctions()) {
    const bool is_of_test = f->kernel.user != nullptr;  // which other tests have registered
    if (f->kind == FunctionKind::kPlain || is_of_test) continue;
    SCOPED_TRACE(std::string(NameOf(f->kind)) + " " + f->name + " " +
                 std::string(NameOf(f->element)));
    if (f->parts_body == nullptr) {
      EXPECT_EQ(f->name, "sum");
      EXPECT_TRUE(f->element == Element::kF32 || f->element == Element::kF64);
      ++without;
      continue;
    }
    const size_t each = BytesOf(f->element);
    for (const size_t size :
         {each, kElementChunkBytes - each, kElementChunkBytes, kElementChunkBytes + each,
          3 * kElementChunkBytes + 8, kElementChunkBytes + 3}) {
      const std::string value = RandomBytes(size);
      if (f->kind != FunctionKind::kUpdate) {
        for (const size_t operand : {size_t{0}, f->operand_bytes(), kStateBytes, size_t{3}}) {
          Compare(*f, value, RandomBytes(operand));
        }
        continue;
      }
      for (const bool is_vector : {false, true}) {
        for (const auto returns : {UpdateOptions::Returns::kNothing, UpdateOptions::Returns::kOld,
                                   UpdateOptions::Returns::kNew}) {
          const UpdateOptions options = {.returns = returns, .is_vector = is_vector};
          const size_t fits = f->operand_bytes() * (is_vector ? size / each : 1);
          for (const size_t bytes : {fits, fits + 1}) {
            Scratch operands;
            Compare(*f, value, UpdateOperand(options, RandomBytes(bytes), operands));
          }
          Scratch operands;
          Compare(*f, value, UpdateOperand(options, std::string(fits, '\0'), operands));
        }
      }
      Compare(*f, value, "no");
    }
  }
  EXPECT_EQ(without, 2U);
}

}  // namespace
}  // namespace skep
