// The built-in functions of elements (elements.h) in loops, compiled once for each set of vector
// instructions; which set runs is decided at start (Highway). The compiler vectorises the loops: it
// does so for any type and function, which by hand could be done for only some of them.
#include <concepts>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/element_functions.h"
#include "engine/elements.h"

// HWY_AVX3_DL has nothing for these loops that HWY_AVX3 lacks.
#define HWY_DISABLED_TARGETS HWY_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/element_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace skep {
namespace HWY_NAMESPACE {
namespace {

using function_internal::LoadElement;
using function_internal::StoreElement;

template <class F, bool kIsVector>
void UpdateAll(char* __restrict elements, const char* __restrict operands, size_t count) {
  using T = typename F::Element;
  constexpr size_t kOperands = F::kOperands;
  T of_all[kOperands];
  if (!kIsVector) std::memcpy(of_all, operands, sizeof(of_all));
  for (size_t i = 0; i < count; ++i) {
    T each[kOperands];
    if (kIsVector) std::memcpy(each, operands + i * sizeof(each), sizeof(each));
    StoreElement(elements, i, F::Of(LoadElement<T>(elements, i), kIsVector ? each : of_all));
  }
}

template <class F>
void Update(const Function&, char* elements, const char* operands, bool is_vector, size_t count) {
  if (count == 1) {
    // One element, a counter: skips the checks that a vectorised loop begins with.
    UpdateAll<F, false>(elements, operands, 1);
  } else if (is_vector) {
    UpdateAll<F, true>(elements, operands, count);
  } else {
    UpdateAll<F, false>(elements, operands, count);
  }
}

template <class F, class T>
void Reduce(const Function&, const char* in, size_t count, char* at) {
  using State = typename F::State;
  auto state = LoadElement<State>(at, 0);
  for (size_t i = 0; i < count; ++i) state = F::Of(state, LoadElement<T>(in, i));
  StoreElement(at, 0, state);
}

// Addition of floats is not associative. The order is the one that function.h names, which gives
// the compiler 16 sums to keep in vectors.
template <class T>
void SumOfFloats(const Function&, const char* in, size_t count, char* at) {
  constexpr size_t kSums = 16;
  double sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (size_t k = 0; k < kSums; ++k) sums[k] += static_cast<double>(LoadElement<T>(in, i + k));
  }
  for (size_t k = 0; i + k < count; ++k) sums[k] += static_cast<double>(LoadElement<T>(in, i + k));
  auto state = LoadElement<double>(at, 0);
  for (const double sum : sums) state += sum;
  StoreElement(at, 0, state);
}

template <class F, class T>
size_t Filter(const Function&, const char* in, const char* operand, char* out, size_t count) {
  const T bound = LoadElement<T>(operand, 0);
  size_t wanted = 0;
  for (size_t i = 0; i < count; ++i) {
    const T element = LoadElement<T>(in, i);
    StoreElement(out, wanted, element);  // `wanted` is never above i
    wanted += F::Of(element, bound);
  }
  return wanted;
}

class Maker {
 public:
  template <class T>
  void MakeAll() {
    element_ = ElementOf<T>();
    using namespace elements;
    AddUpdate<Add<T>>("add");
    AddUpdate<Sub<T>>("sub");
    AddUpdate<Mul<T>>("mul");
    AddUpdate<Min<T>>("min");
    AddUpdate<Max<T>>("max");
    AddUpdate<elements::Set<T>>("set");
    AddUpdate<CompareAndSet<T>>("cas");
    AddUpdate<AddWrapping<T>>("addwrap");
    if constexpr (std::integral<T>) {
      AddUpdate<elements::And<T>>("and");
      AddUpdate<elements::Or<T>>("or");
      AddUpdate<elements::Xor<T>>("xor");
      AddUpdate<AddSaturating<T>>("addsat");
      AddReduce<Sum<T>>("sum", Reduce<Sum<T>, T>);
    } else {
      AddReduce<Sum<T>>("sum", SumOfFloats<T>);
      made_.back().reduces_in_order = false;
    }
    AddReduce<Smallest<T>>("min", Reduce<Smallest<T>, T>);
    AddReduce<Largest<T>>("max", Reduce<Largest<T>, T>);
    AddReduce<Count<T>>("count", Reduce<Count<T>, T>);
    AddReduce<Any<T>>("any", Reduce<Any<T>, T>);
    AddFilter<Equal<T>, T>("eq");
    AddFilter<NotEqual<T>, T>("ne");
    AddFilter<Less<T>, T>("lt");
    AddFilter<LessOrEqual<T>, T>("le");
    AddFilter<Greater<T>, T>("gt");
    AddFilter<GreaterOrEqual<T>, T>("ge");
  }
  std::vector<Function> made() { return std::move(made_); }

 private:
  Function& New(const char* name, FunctionKind kind) {
    made_.push_back({.name = name, .body = nullptr, .kind = kind, .element = element_});
    return made_.back();
  }
  template <class F>
  void AddUpdate(const char* name) {
    Function& made = New(name, FunctionKind::kUpdate);
    made.operands = F::kOperands;
    made.kernel.update = Update<F>;
  }
  template <class F>
  void AddReduce(const char* name, ElementKernel::Reduce kernel) {
    Function& made = New(name, FunctionKind::kReduce);
    made.state = ElementOf<typename F::State>();
    made.starts_with_first = F::kStartsWithFirst;
    const typename F::State first = F::kFirst;
    std::memcpy(&made.first_state, &first, sizeof(first));
    made.kernel.reduce = kernel;
  }
  template <class F, class T>
  void AddFilter(const char* name) {
    Function& made = New(name, FunctionKind::kFilter);
    made.operands = 1;
    made.kernel.filter = Filter<F, T>;
  }

  Element element_ = Element::kI8;
  std::vector<Function> made_;
};

std::vector<Function> MakeFunctions() {
  Maker maker;
  maker.MakeAll<int8_t>();
  maker.MakeAll<int16_t>();
  maker.MakeAll<int32_t>();
  maker.MakeAll<int64_t>();
  maker.MakeAll<uint8_t>();
  maker.MakeAll<uint16_t>();
  maker.MakeAll<uint32_t>();
  maker.MakeAll<uint64_t>();
  maker.MakeAll<float>();
  maker.MakeAll<double>();
  return maker.made();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace skep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skep {
HWY_EXPORT(MakeFunctions);

std::vector<Function> BuiltInElementFunctions() { return HWY_DYNAMIC_DISPATCH(MakeFunctions)(); }

}  // namespace skep
#endif
