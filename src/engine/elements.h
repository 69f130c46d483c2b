// elements.h: the result of each built-in function for one element. The specification of the
// kernels (element_kernels.cc), which are these functions in a loop.
#pragma once

#include <concepts>
#include <limits>
#include <type_traits>

namespace skep::elements {

// Integers wrap around.
template <class T>
using Wrapping = std::conditional_t<std::integral<T>, std::make_unsigned<T>, std::type_identity<T>>;
template <class T, class Operation>
T Wrap(T a, T b, Operation operation) {
  using Wide = typename Wrapping<T>::type;
  // The product of two small integers would be of type int, and could overflow.
  using Number = std::conditional_t<(sizeof(Wide) < sizeof(unsigned)), unsigned, Wide>;
  return static_cast<T>(operation(static_cast<Number>(static_cast<Wide>(a)),
                                  static_cast<Number>(static_cast<Wide>(b))));
}

// --- updates: Of(element, operands) ---

template <class T, int kOperandCount = 1>
struct UpdateOf {
  static constexpr int kOperands = kOperandCount;
  using Element = T;
};

template <class T>
struct Add : UpdateOf<T> {
  static T Of(T a, const T* b) {
    return Wrap(a, b[0], [](auto x, auto y) { return x + y; });
  }
};
template <class T>
struct Sub : UpdateOf<T> {
  static T Of(T a, const T* b) {
    return Wrap(a, b[0], [](auto x, auto y) { return x - y; });
  }
};
template <class T>
struct Mul : UpdateOf<T> {
  static T Of(T a, const T* b) {
    return Wrap(a, b[0], [](auto x, auto y) { return x * y; });
  }
};
template <class T>
struct Min : UpdateOf<T> {
  static T Of(T a, const T* b) { return b[0] < a ? b[0] : a; }
};
template <class T>
struct Max : UpdateOf<T> {
  static T Of(T a, const T* b) { return a < b[0] ? b[0] : a; }
};
template <class T>
struct Set : UpdateOf<T> {
  static T Of(T, const T* b) { return b[0]; }
};
template <class T>
struct And : UpdateOf<T> {
  static T Of(T a, const T* b) { return static_cast<T>(a & b[0]); }
};
template <class T>
struct Or : UpdateOf<T> {
  static T Of(T a, const T* b) { return static_cast<T>(a | b[0]); }
};
template <class T>
struct Xor : UpdateOf<T> {
  static T Of(T a, const T* b) { return static_cast<T>(a ^ b[0]); }
};
template <class T>
struct AddSaturating : UpdateOf<T> {
  static T Of(T a, const T* b) {
    T sum;
    if (!__builtin_add_overflow(a, b[0], &sum)) return sum;
    return std::is_signed_v<T> && b[0] < 0 ? std::numeric_limits<T>::min()
                                           : std::numeric_limits<T>::max();
  }
};
// Operands: expected, desired.
template <class T>
struct CompareAndSet : UpdateOf<T, 2> {
  static T Of(T a, const T* b) { return a == b[0] ? b[1] : a; }
};
// Operands: delta, low, step.
template <class T>
struct AddWrapping : UpdateOf<T, 3> {
  static T Of(T a, const T* b) {
    const T sum = Add<T>::Of(a, b);
    return sum < b[1] ? Add<T>::Of(sum, b + 2) : sum;
  }
};

// --- reductions: Of(state, element) ---

template <class T>
using SumState =
    std::conditional_t<std::floating_point<T>, double,
                       std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>>;

template <class T>
struct Sum {
  using State = SumState<T>;
  static constexpr bool kStartsWithFirst = false;
  static constexpr State kFirst = 0;
  static State Of(State state, T element) {
    const auto addend = static_cast<State>(element);
    return Add<State>::Of(state, &addend);
  }
};
template <class T>
struct Smallest {
  using State = SumState<T>;
  static constexpr bool kStartsWithFirst = true;
  static constexpr State kFirst = std::floating_point<T> ? std::numeric_limits<State>::infinity()
                                                         : std::numeric_limits<State>::max();
  static State Of(State state, T element) {
    return static_cast<State>(element) < state ? static_cast<State>(element) : state;
  }
};
template <class T>
struct Largest {
  using State = SumState<T>;
  static constexpr bool kStartsWithFirst = true;
  static constexpr State kFirst = std::floating_point<T> ? -std::numeric_limits<State>::infinity()
                                                         : std::numeric_limits<State>::min();
  static State Of(State state, T element) {
    return state < static_cast<State>(element) ? static_cast<State>(element) : state;
  }
};
template <class T>
struct Count {
  using State = long long;
  static constexpr bool kStartsWithFirst = false;
  static constexpr State kFirst = 0;
  static State Of(State state, T) { return Sum<long long>::Of(state, 1); }
};
template <class T>
struct Any {
  using State = long long;
  static constexpr bool kStartsWithFirst = false;
  static constexpr State kFirst = 0;
  static State Of(State state, T element) { return state | (element != T{0} ? 1 : 0); }
};

// --- filters: Of(element, operand) ---

template <class T>
struct Equal {
  static bool Of(T a, T b) { return a == b; }
};
template <class T>
struct NotEqual {
  static bool Of(T a, T b) { return a != b; }
};
template <class T>
struct Less {
  static bool Of(T a, T b) { return a < b; }
};
template <class T>
struct LessOrEqual {
  static bool Of(T a, T b) { return a <= b; }
};
template <class T>
struct Greater {
  static bool Of(T a, T b) { return a > b; }
};
template <class T>
struct GreaterOrEqual {
  static bool Of(T a, T b) { return a >= b; }
};

}  // namespace skep::elements
