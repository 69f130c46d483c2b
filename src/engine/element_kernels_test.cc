// The kernels of the built-in functions against elements.h, which says what one element becomes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/element_functions.h"
#include "engine/elements.h"

namespace skep {
namespace {

using function_internal::LoadElement;
using function_internal::StoreElement;

// Longer than any vector, but so short that many lengths leave a tail.
constexpr size_t kCountMax = 300;

// Numbers at the edges of arithmetic, or any.
template <class T>
T RandomElement(std::mt19937_64& rng) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::floating_point<T>) {
    const T edges[] = {
        T(0), T(1), T(-1), T(0.1), Limits::max(), Limits::lowest(), Limits::epsilon()};
    if (rng() % 4 == 0) return edges[rng() % std::size(edges)];
    return static_cast<T>(static_cast<double>(static_cast<int64_t>(rng())) / (1ull << 40));
  } else {
    const T edges[] = {T(0),          T(1),          static_cast<T>(-1),
                       Limits::min(), Limits::max(), static_cast<T>(Limits::max() - 1)};
    if (rng() % 4 == 0) return edges[rng() % std::size(edges)];
    return static_cast<T>(rng());
  }
}

// A vector of elements at any alignment.
template <class T>
class Vector {
 public:
  Vector(std::mt19937_64& rng, size_t count) : shift_(rng() % 8), bytes_(8 + count * sizeof(T)) {
    for (size_t i = 0; i < count; ++i) StoreElement(data(), i, RandomElement<T>(rng));
  }
  char* data() { return bytes_.data() + shift_; }
  T operator[](size_t i) { return LoadElement<T>(data(), i); }

 private:
  size_t shift_;
  std::vector<char> bytes_;
};

template <class T>
class Kernels : public testing::Test {
 protected:
  const Function& Find(FunctionKind kind, const char* name) {
    const Function* const found = FindFunction(kind, name, ElementOf<T>());
    EXPECT_NE(found, nullptr) << name;
    return *found;
  }

  template <template <class> class F>
  void CheckUpdate(const char* name) {
    const Function& f = Find(FunctionKind::kUpdate, name);
    constexpr size_t kOperands = F<T>::kOperands;
    ASSERT_EQ(f.operands, kOperands);
    for (const bool is_vector : {false, true}) {
      const size_t count = rng_() % kCountMax;
      Vector<T> in(rng_, count);
      Vector<T> operands(rng_, kOperands * (is_vector ? count : 1));
      // Half of the elements are equal to their operand.
      for (size_t i = 0; is_vector && i < count; i += 2)
        StoreElement(operands.data(), i * kOperands, in[i]);
      Vector<T> out = in;
      f.kernel.update(f, out.data(), operands.data(), is_vector, count);
      for (size_t i = 0; i < count; ++i) {
        T own[kOperands];
        for (size_t k = 0; k < kOperands; ++k)
          own[k] = operands[(is_vector ? i * kOperands : 0) + k];
        const T wanted = F<T>::Of(in[i], own);
        const T got = out[i];
        ASSERT_EQ(std::memcmp(&wanted, &got, sizeof(T)), 0) << name << " " << i << " of " << count;
      }
    }
  }

  template <template <class> class F>
  void CheckReduce(const char* name) {
    const Function& f = Find(FunctionKind::kReduce, name);
    using State = typename F<T>::State;
    const size_t count = rng_() % kCountMax;
    Vector<T> in(rng_, count);
    auto wanted = RandomElement<State>(rng_);
    char state[8];
    std::memcpy(state, &wanted, sizeof(state));
    f.kernel.reduce(f, in.data(), count, state);
    if constexpr (std::floating_point<T> && std::is_same_v<F<T>, elements::Sum<T>>) {
      double sums[16] = {};
      for (size_t i = 0; i < count; ++i) sums[i % 16] += static_cast<double>(in[i]);
      for (const double sum : sums) wanted += sum;
    } else {
      for (size_t i = 0; i < count; ++i) wanted = F<T>::Of(wanted, in[i]);
    }
    ASSERT_EQ(std::memcmp(&wanted, state, sizeof(state)), 0) << name << " of " << count;
  }

  template <template <class> class F>
  void CheckFilter(const char* name) {
    const Function& f = Find(FunctionKind::kFilter, name);
    const size_t count = rng_() % kCountMax;
    Vector<T> in(rng_, count);
    const T operand = count > 0 && rng_() % 2 == 0 ? in[0] : RandomElement<T>(rng_);
    char bytes[sizeof(T)];
    StoreElement(bytes, 0, operand);
    Vector<T> out(rng_, count);
    const size_t wanted = f.kernel.filter(f, in.data(), bytes, out.data(), count);
    size_t at = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!F<T>::Of(in[i], operand)) continue;
      ASSERT_LT(at, wanted) << name;
      ASSERT_EQ(out[at++], in[i]) << name << " " << i;
    }
    ASSERT_EQ(at, wanted) << name;
  }

  std::mt19937_64 rng_;
};

using Types = testing::Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                             uint64_t, float, double>;
TYPED_TEST_SUITE(Kernels, Types);

// Goal: whatever instructions a kernel is compiled to, it does what elements.h says.
// Method: random lengths, alignments and elements, with many at the edges of the type.
TYPED_TEST(Kernels, DoWhatElementsSay) {
  using namespace elements;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  this->rng_.seed(seed);
  for (int round = 0; round < 200 && !this->HasFatalFailure(); ++round) {
    this->template CheckUpdate<Add>("add");
    this->template CheckUpdate<Sub>("sub");
    this->template CheckUpdate<Mul>("mul");
    this->template CheckUpdate<Min>("min");
    this->template CheckUpdate<Max>("max");
    this->template CheckUpdate<elements::Set>("set");
    this->template CheckUpdate<CompareAndSet>("cas");
    this->template CheckUpdate<AddWrapping>("addwrap");
    if constexpr (std::integral<TypeParam>) {
      this->template CheckUpdate<And>("and");
      this->template CheckUpdate<Or>("or");
      this->template CheckUpdate<Xor>("xor");
      this->template CheckUpdate<AddSaturating>("addsat");
    }
    this->template CheckReduce<Sum>("sum");
    this->template CheckReduce<Smallest>("min");
    this->template CheckReduce<Largest>("max");
    this->template CheckReduce<elements::Count>("count");
    this->template CheckReduce<elements::Any>("any");
    this->template CheckFilter<Equal>("eq");
    this->template CheckFilter<NotEqual>("ne");
    this->template CheckFilter<Less>("lt");
    this->template CheckFilter<LessOrEqual>("le");
    this->template CheckFilter<Greater>("gt");
    this->template CheckFilter<GreaterOrEqual>("ge");
  }
}

template <class F, class T>
T Applied(T element, std::initializer_list<T> operands) {
  return F::Of(element, operands.begin());
}

// Goal: the specification itself has the values that were worked out by hand.
TEST(Elements, AtTheEdges) {
  using namespace elements;
  EXPECT_EQ(Applied<Add<int8_t>>(int8_t{127}, {int8_t{1}}), -128);
  EXPECT_EQ(Applied<Sub<uint32_t>>(0u, {1u}), UINT32_MAX);
  EXPECT_EQ(Applied<Mul<int16_t>>(int16_t{-32768}, {int16_t{-1}}), -32768);
  EXPECT_EQ(Applied<Mul<uint16_t>>(uint16_t{0xffff}, {uint16_t{0xffff}}), 1);
  EXPECT_EQ(Applied<Mul<int64_t>>(INT64_MIN, {int64_t{-1}}), INT64_MIN);
  EXPECT_EQ(Applied<AddSaturating<int8_t>>(int8_t{100}, {int8_t{100}}), 127);
  EXPECT_EQ(Applied<AddSaturating<int8_t>>(int8_t{-100}, {int8_t{-100}}), -128);
  EXPECT_EQ(Applied<AddSaturating<uint8_t>>(uint8_t{200}, {uint8_t{100}}), 255);
  EXPECT_EQ((Applied<CompareAndSet<int32_t>>(5, {5, 7})), 7);
  EXPECT_EQ((Applied<CompareAndSet<int32_t>>(6, {5, 7})), 6);
  // TPC-C, 2.4.2.2: the ordered quantity is subtracted, and 91 added if less than 10 would be left.
  EXPECT_EQ((Applied<AddWrapping<int32_t>>(20, {-10, 10, 91})), 10);
  EXPECT_EQ((Applied<AddWrapping<int32_t>>(19, {-10, 10, 91})), 100);
  EXPECT_EQ(Sum<uint8_t>::Of(1, 255), 256u);
  EXPECT_EQ(Sum<int64_t>::Of(INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(Smallest<int8_t>::kFirst, INT64_MAX);
  EXPECT_EQ(Largest<float>::kFirst, -INFINITY);
  EXPECT_EQ(Any<double>::Of(0, -0.0), 0);
  EXPECT_EQ(Any<double>::Of(0, 0.5), 1);
}

}  // namespace
}  // namespace skep
