// Functions of elements as a batch runs them: their results, their refusals, and functions
// registered by users. On the reference engine; conformance tests the rest on each engine.
#include "engine/element_functions.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "engine/point.h"

namespace skep {
namespace {

template <class T>
std::string Bytes(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
}
template <class T>
std::vector<T> Elements(std::string_view bytes) {
  std::vector<T> elements(bytes.size() / sizeof(T));
  std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

class ElementFunctions : public testing::Test {
 protected:
  static const Function* Find(FunctionKind kind, const char* name, Element element) {
    const Function* const found = FindFunction(kind, name, element);
    EXPECT_NE(found, nullptr);
    return found;
  }

  // Runs request 0 of the batch on the value, as an engine would. Returns the value after it.
  std::optional<std::string> Run(std::optional<std::string> value) {
    BatchWriter out(batch_);
    std::optional<PointState> state;
    if (value) state = {.value = *value};
    const PointEffect effect = ApplyPoint(batch_.requests()[0], state, 0, EngineTraits{}, out, 0);
    if (effect.action == PointEffect::Action::kStore) value = std::string(effect.value);
    return value;
  }
  std::optional<std::string> Update(const std::optional<std::string>& value, const Function* update,
                                    const std::string& operands,
                                    const UpdateOptions& options = {}) {
    batch_.Clear();
    operands_ = operands;
    batch_.UpdateElements("k", update, operands_, options);
    return Run(value);
  }
  std::optional<std::string> Apply(const std::optional<std::string>& value,
                                   const Function* function, const std::string& operand) {
    batch_.Clear();
    operands_ = operand;
    batch_.Apply("k", function, operands_);
    return Run(value);
  }
  const Outcome& outcome() const { return batch_.outcome(0); }
  void ExpectRefused(std::string_view why) const {
    EXPECT_EQ(outcome().verdict, Verdict::kRefused);
    EXPECT_EQ(outcome().status.what(), why);
  }

  Batch batch_;
  std::string operands_;
};

using Returns = UpdateOptions::Returns;

TEST_F(ElementFunctions, UpdatesOneOperandForAllOrOneForEach) {
  const Function* const add = Find(FunctionKind::kUpdate, "add", Element::kI32);
  const std::string value = Bytes<int32_t>({1, 2, 3});
  EXPECT_EQ(Update(value, add, Bytes<int32_t>({10})), Bytes<int32_t>({11, 12, 13}));
  EXPECT_EQ(outcome().integer, 3);
  EXPECT_EQ(outcome().value, "");
  EXPECT_EQ(
      Update(value, add, Bytes<int32_t>({1, 0, -3}), {.returns = Returns::kOld, .is_vector = true}),
      Bytes<int32_t>({2, 2, 0}));
  EXPECT_EQ(outcome().value, value);
  Update(value, add, Bytes<int32_t>({1}), {.returns = Returns::kNew});
  EXPECT_EQ(outcome().value, Bytes<int32_t>({2, 3, 4}));
  const Function* const cas = Find(FunctionKind::kUpdate, "cas", Element::kI32);
  EXPECT_EQ(Update(value, cas, Bytes<int32_t>({2, 9})), Bytes<int32_t>({1, 9, 3}));
  EXPECT_EQ(Update(value, cas, Bytes<int32_t>({1, 5, 1, 5, 3, 5}), {.is_vector = true}),
            Bytes<int32_t>({5, 2, 5}));
  EXPECT_EQ(Update("", add, Bytes<int32_t>({1})), "");
}

TEST_F(ElementFunctions, CreateWhatIsAbsentIfTheyAreTold) {
  const Function* const set = Find(FunctionKind::kUpdate, "set", Element::kU16);
  EXPECT_EQ(Update({}, set, Bytes<uint16_t>({7}), {.returns = Returns::kOld, .create = 2}),
            Bytes<uint16_t>({7, 7}));
  EXPECT_EQ(outcome().value, Bytes<uint16_t>({0, 0}));
  EXPECT_EQ(Update({}, set, Bytes<uint16_t>({7})), std::nullopt);
  ExpectRefused("no such key");
  EXPECT_EQ(Update({}, set, Bytes<uint16_t>({7}), {.create = UINT32_MAX}), std::nullopt);
  ExpectRefused("value exceeds the maximum size");
}

TEST_F(ElementFunctions, RefuseWhatDoesNotFitAndChangeNothing) {
  const Function* const add = Find(FunctionKind::kUpdate, "add", Element::kI64);
  EXPECT_EQ(Update("1234567", add, Bytes<int64_t>({1})), "1234567");
  ExpectRefused("the value's length is not a multiple of the element's");
  const std::string two = Bytes<int64_t>({1, 2});
  EXPECT_EQ(Update(two, add, Bytes<int64_t>({1, 2})), two);
  ExpectRefused("the number of operands is not the function's");
  for (const size_t operands : {1, 3}) {
    Update(two, add, Bytes(std::vector<int64_t>(operands)), {.is_vector = true});
    ExpectRefused("the vector of operands does not fit the value's length");
  }
  EXPECT_EQ(Apply(two, add, "1234567"), two);
  ExpectRefused("not the operand of an update");
  const Function* const sum = Find(FunctionKind::kReduce, "sum", Element::kI64);
  Apply("123", sum, "");
  ExpectRefused("the value's length is not a multiple of the element's");
  Apply(two, sum, "1234567");
  ExpectRefused("a reduction begins with a state of 8 bytes");
  Apply({}, sum, "");
  ExpectRefused("no such key");
  const Function* const less = Find(FunctionKind::kFilter, "lt", Element::kI64);
  Apply(two, less, "1234567");
  ExpectRefused("the number of operands is not the function's");
  Apply({}, less, two);
  ExpectRefused("no such key");
}

TEST_F(ElementFunctions, ReduceAndFilter) {
  const std::string value = Bytes<int8_t>({-1, 100, 100});
  EXPECT_EQ(Apply(value, Find(FunctionKind::kReduce, "sum", Element::kI8), ""), value);
  EXPECT_EQ(outcome().integer, 199);
  Apply(value, Find(FunctionKind::kReduce, "sum", Element::kI8), Bytes<int64_t>({-200}));
  EXPECT_EQ(outcome().integer, -1);
  Apply(value, Find(FunctionKind::kReduce, "min", Element::kI8), "");
  EXPECT_EQ(outcome().integer, -1);
  Apply("", Find(FunctionKind::kReduce, "min", Element::kI8), "");
  EXPECT_EQ(outcome().verdict, Verdict::kDone);
  EXPECT_EQ(outcome().value, "");
  Apply("", Find(FunctionKind::kReduce, "min", Element::kI8), Bytes<int64_t>({5}));
  EXPECT_EQ(outcome().integer, 5);
  Apply(Bytes<float>({0.5f, 0.25f}), Find(FunctionKind::kReduce, "sum", Element::kF32), "");
  EXPECT_EQ(Elements<double>(outcome().value), std::vector{0.75});
  Apply(value, Find(FunctionKind::kFilter, "ge", Element::kI8), Bytes<int8_t>({0}));
  EXPECT_EQ(Elements<int8_t>(outcome().value), (std::vector<int8_t>{100, 100}));
  EXPECT_EQ(outcome().integer, 2);
}

TEST_F(ElementFunctions, OfUsers) {
  const auto modulo = RegisterUpdate<uint32_t>(
      "test-modulo", [](uint32_t element, uint32_t operand) { return element % operand; });
  ASSERT_TRUE(modulo.has_value());
  EXPECT_EQ(FindFunction(FunctionKind::kUpdate, "test-modulo", Element::kU32), *modulo);
  EXPECT_EQ(FindFunction(FunctionKind::kUpdate, "test-modulo", Element::kI32), nullptr);
  EXPECT_EQ(Update(Bytes<uint32_t>({7, 8}), *modulo, Bytes<uint32_t>({4})),
            Bytes<uint32_t>({3, 0}));
  EXPECT_EQ(Update(Bytes<uint32_t>({7, 8}), *modulo, Bytes<uint32_t>({4, 5}), {.is_vector = true}),
            Bytes<uint32_t>({3, 3}));
  const auto squares = RegisterReduce<float>(
      "test-squares", [](double state, float element) { return state + element * element; });
  Apply(Bytes<float>({3, 4}), *squares, "");
  EXPECT_EQ(Elements<double>(outcome().value), std::vector{25.0});
  const auto odd = RegisterFilter<int16_t>(
      "test-odd", [](int16_t element, int16_t) { return element % 2 != 0; });
  Apply(Bytes<int16_t>({1, 2, -3}), *odd, Bytes<int16_t>({0}));
  EXPECT_EQ(Elements<int16_t>(outcome().value), (std::vector<int16_t>{1, -3}));
  EXPECT_FALSE(RegisterUpdate<uint32_t>("add", [](uint32_t a, uint32_t) { return a; }));
  EXPECT_FALSE(RegisterUpdate<uint32_t>("", [](uint32_t a, uint32_t) { return a; }));
  EXPECT_FALSE(
      RegisterUpdate<uint32_t>(std::string(65, 'x'), [](uint32_t a, uint32_t) { return a; }));
}

TEST_F(ElementFunctions, ElementsHaveNames) {
  for (size_t i = 0; i < kElements; ++i) {
    const auto element = static_cast<Element>(i);
    EXPECT_EQ(ElementNamed(NameOf(element)), element);
  }
  EXPECT_EQ(ElementNamed("i128"), std::nullopt);
  EXPECT_EQ(NameOf(ElementOf<int8_t>()), "i8");
  EXPECT_EQ(NameOf(ElementOf<uint64_t>()), "u64");
  EXPECT_EQ(NameOf(ElementOf<unsigned long long>()), "u64");
  EXPECT_EQ(NameOf(ElementOf<float>()), "f32");
  EXPECT_EQ(BytesOf(ElementOf<double>()), 8u);
}

}  // namespace
}  // namespace skep
