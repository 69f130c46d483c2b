#include "server/function_args.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace skep {
namespace {

using Words = std::vector<std::string_view>;

std::string Parse(FunctionKind kind, const Words& words, FunctionArgs* args) {
  *args = {};
  return ParseFunctionArgs(kind, words, args);
}

template <typename... T>
std::string Bytes(T... elements) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&elements), sizeof(elements)), ...);
  return bytes;
}

template <typename T>
void CheckRange(Element element, std::string_view below, std::string_view above) {
  constexpr T kLow = std::numeric_limits<T>::min();
  constexpr T kHigh = std::numeric_limits<T>::max();
  std::string bytes;
  EXPECT_TRUE(AppendElement(std::to_string(kLow), element, &bytes));
  EXPECT_TRUE(AppendElement(std::to_string(kHigh), element, &bytes));
  for (const std::string_view bad : {below, above}) {
    EXPECT_FALSE(AppendElement(bad, element, &bytes)) << NameOf(element) << " " << bad;
  }
  EXPECT_EQ(bytes, Bytes(kLow, kHigh)) << NameOf(element);
}

// Goal: every element type takes its smallest and largest number, and none beyond them; a number
// that is refused appends nothing.
TEST(FunctionArgs, NumbersInRange) {
  CheckRange<int8_t>(Element::kI8, "-129", "128");
  CheckRange<int16_t>(Element::kI16, "-32769", "32768");
  CheckRange<int32_t>(Element::kI32, "-2147483649", "2147483648");
  CheckRange<int64_t>(Element::kI64, "-9223372036854775809", "9223372036854775808");
  CheckRange<uint8_t>(Element::kU8, "-1", "256");
  CheckRange<uint16_t>(Element::kU16, "-1", "65536");
  CheckRange<uint32_t>(Element::kU32, "-1", "4294967296");
  CheckRange<uint64_t>(Element::kU64, "-1", "18446744073709551616");
}

TEST(FunctionArgs, Floats) {
  std::string bytes;
  EXPECT_TRUE(AppendElement("-1.5e3", Element::kF32, &bytes));
  EXPECT_TRUE(AppendElement("0.1", Element::kF64, &bytes));
  EXPECT_EQ(bytes, Bytes(-1500.0f, 0.1));
  for (const std::string_view bad : {"", " 1", "1 ", "1,5", "0x1p3", "1e99999", "--1", "one"}) {
    EXPECT_FALSE(AppendElement(bad, Element::kF64, &bytes)) << bad;
  }
  EXPECT_FALSE(AppendElement("1e39", Element::kF32, &bytes));
}

TEST(FunctionArgs, NoIntegers) {
  std::string bytes;
  for (const std::string_view bad : {"", "+1", " 1", "1 ", "1.0", "0x1", "1e3", "-"}) {
    EXPECT_FALSE(AppendElement(bad, Element::kI64, &bytes)) << bad;
  }
}

TEST(FunctionArgs, Update) {
  FunctionArgs args;
  EXPECT_EQ(Parse(FunctionKind::kUpdate, {"ADD", "I32", "5"}, &args), "");
  ASSERT_NE(args.function, nullptr);
  EXPECT_EQ(args.function->name, "add");
  EXPECT_EQ(args.operands, Bytes(5));
  EXPECT_FALSE(args.options.is_vector);
  EXPECT_EQ(args.options.create, 0u);

  EXPECT_EQ(Parse(FunctionKind::kUpdate, {"cas", "u8", "1", "2"}, &args), "");
  EXPECT_EQ(args.operands, Bytes(uint8_t{1}, uint8_t{2}));

  EXPECT_EQ(Parse(FunctionKind::kUpdate,
                  {"add", "i16", "vector", "abcd", "Return", "OLD", "create", "2"}, &args),
            "");
  EXPECT_TRUE(args.options.is_vector);
  EXPECT_EQ(args.operands, "abcd");
  EXPECT_EQ(args.options.returns, UpdateOptions::Returns::kOld);
  EXPECT_EQ(args.options.create, 2u);

  // The last option counts.
  EXPECT_EQ(
      Parse(FunctionKind::kUpdate, {"add", "i8", "1", "RETURN", "NEW", "RETURN", "NONE"}, &args),
      "");
  EXPECT_EQ(args.options.returns, UpdateOptions::Returns::kNothing);
}

TEST(FunctionArgs, WrongUpdates) {
  const std::vector<std::pair<Words, std::string>> wrong = {
      {{"add", "i31", "1"}, "unknown type 'i31'"},
      {{"sum", "i32", "1"}, "unknown update function 'sum' of i32"},
      {{"add", "i32"}, "too few operands"},
      {{"cas", "i32", "1"}, "too few operands"},
      {{"add", "i8", "128"}, "'128' is not a number of type i8, or out of range"},
      {{"add", "i32", "1", "2"}, "syntax error"},
      {{"add", "i32", "1", "RETURN"}, "syntax error"},
      {{"add", "i32", "1", "RETURN", "BOTH"}, "syntax error"},
      {{"add", "i32", "1", "CREATE", "0"}, "syntax error"},
      {{"add", "i32", "1", "CREATE", "-1"}, "syntax error"},
      {{"add", "i32", "1", "CREATE", "4294967296"}, "syntax error"},
      // Without its bytes, VECTOR is taken for an operand.
      {{"add", "i32", "VECTOR"}, "'VECTOR' is not a number of type i32, or out of range"},
  };
  for (const auto& [words, error] : wrong) {
    FunctionArgs args;
    EXPECT_EQ(Parse(FunctionKind::kUpdate, words, &args), error) << words[0] << " " << words[1];
  }
}

// Goal: an error quotes the beginning of a client's word, but not all of it.
TEST(FunctionArgs, QuotesTheBeginning) {
  const std::string name(100'000, 'x');
  FunctionArgs args;
  EXPECT_EQ(Parse(FunctionKind::kUpdate, {name, "i8"}, &args),
            "unknown update function '" + name.substr(0, 64) + "' of i8");
  EXPECT_EQ(Parse(FunctionKind::kUpdate, {"add", name}, &args),
            "unknown type '" + name.substr(0, 64) + "'");
  EXPECT_EQ(Parse(FunctionKind::kUpdate, {"add", "i8", name}, &args),
            "'" + name.substr(0, 64) + "' is not a number of type i8, or out of range");
}

TEST(FunctionArgs, Reduce) {
  FunctionArgs args;
  EXPECT_EQ(Parse(FunctionKind::kReduce, {"sum", "u8"}, &args), "");
  EXPECT_EQ(args.operands, "");
  // A sum of bytes needs more than a byte: the first state is of the state's type.
  EXPECT_EQ(Parse(FunctionKind::kReduce, {"sum", "u8", "1000"}, &args), "");
  EXPECT_EQ(args.operands.size(), BytesOf(args.function->state));
  EXPECT_GT(args.operands.size(), 1u);
  EXPECT_EQ(Parse(FunctionKind::kReduce, {"sum", "u8", "1", "2"}, &args), "syntax error");
  EXPECT_NE(Parse(FunctionKind::kReduce, {"sum", "u8", "x"}, &args), "");
  EXPECT_NE(Parse(FunctionKind::kReduce, {"add", "u8"}, &args), "");
}

TEST(FunctionArgs, Filter) {
  FunctionArgs args;
  EXPECT_EQ(Parse(FunctionKind::kFilter, {"gt", "f64", "0.5"}, &args), "");
  EXPECT_EQ(args.operands, Bytes(0.5));
  EXPECT_EQ(Parse(FunctionKind::kFilter, {"gt", "f64"}, &args), "too few operands");
  EXPECT_EQ(Parse(FunctionKind::kFilter, {"gt", "f64", "1", "RETURN", "OLD"}, &args),
            "syntax error");
  // Only updates take vectors.
  EXPECT_NE(Parse(FunctionKind::kFilter, {"gt", "f64", "VECTOR", "12345678"}, &args), "");
}

}  // namespace
}  // namespace skep
