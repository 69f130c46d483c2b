// function.h: functions that run at the data (KV-Direct, section 3.2).
//
// A function sees one value and an operand and says what becomes of the value. The engine runs it
// between reading and writing the value, so the whole is one atomic operation and one slot of a
// batch, without a round trip and without a compare-and-set loop.
//
// Functions of elements. A value may be a vector: elements of one type, little-endian, one behind
// the other, without a header; a number is a vector of one. A value does not know the type of its
// elements: the function has it, and the size of the value must be a multiple of the element's.
// Three kinds:
//
//   update   element, operands -> element, for each; one operand for all or one for each element
//   reduce   state, element -> state, from the first element to the last
//   filter   element, operand -> whether it is wanted; the answer is the elements that are
//
// Each function is registered for every type it makes sense of, under (kind, name, type). Built in:
//
//   update   add sub mul min max set    all types; integers wrap around
//            and or xor                 integers
//            addsat                     integers: stays at the smallest or largest number
//            cas                        all types; operands expected, desired: where the element
//                                       is the expected one
//            addwrap                    all types; operands delta, low, step: adds delta, and step
//                                       where the sum is below low (TPC-C's S_QUANTITY:
//                                       -quantity, 10, 91)
//   reduce   sum min max count any      any: 1 if an element is not 0, else 0
//   filter   eq ne lt le gt ge
//
// A sum of floats is the sum of 16 sums, of which number i % 16 has element i: the same on every
// machine, whatever its vector registers are.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "skep/scratch.h"
#include "skep/status.h"

namespace skep {

struct Function;

struct FunctionInput {
  std::optional<std::string_view> value;  // the value now; nullopt if the key is absent
  std::string_view operand;               // what the request carried
  Scratch* scratch;                       // where to build results; lives as long as the batch
  const Function* function;               // the one that runs
  size_t value_bytes_max;                 // a larger value is refused; do not build one
  // The time of the batch (Batch::now_ms), which a replay of a log gives again; only of functions
  // whose type is not 0.
  uint64_t now_ms = 0;
};

struct FunctionEffect {
  enum class Action : uint8_t { kKeep, kReplace, kErase };

  Action action = Action::kKeep;
  std::string_view value = {};     // kReplace: the new value; operand, input value or scratch bytes
  std::string_view returned = {};  // bytes for the caller, as above
  int64_t integer = 0;             // a number for the caller
  Status status = {};              // an error: the value is kept, `what` reaches the caller
};

// A function must be deterministic (a log may replay it), must not block, must not keep pointers to
// its input.
// Any thread may run it at any time.
using FunctionBody = FunctionEffect (*)(const FunctionInput& input);

// The type of the elements of a vector.
enum class Element : uint8_t { kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kF32, kF64 };
inline constexpr size_t kElements = 10;

size_t BytesOf(Element element);
std::string_view NameOf(Element element);  // "i8" .. "f64"
std::optional<Element> ElementNamed(std::string_view name);

// The Element of an arithmetic type.
template <class T>
constexpr Element ElementOf() {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8);
  constexpr int size = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  if constexpr (std::floating_point<T>) return sizeof(T) == 4 ? Element::kF32 : Element::kF64;
  return static_cast<Element>(size + (std::is_signed_v<T> ? 0 : 4));
}

// The state of a reduce function, by the type of its elements.
template <class T>
using StateOf = std::conditional_t<std::floating_point<T>, double,
                                   std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

enum class FunctionKind : uint8_t { kPlain, kUpdate, kReduce, kFilter };

std::string_view NameOf(FunctionKind kind);  // "plain", "update", "reduce", "filter"

// The loops over elements, which need not be aligned. Input and output do not overlap, but for the
// elements of an update, which are changed in place.
struct ElementKernel {
  // `operands`: one set for all elements, or one for each (is_vector).
  using Update = void (*)(const Function&, char* elements, const char* operands, bool is_vector,
                          size_t count);
  // `state`, 8 bytes, is read and written.
  using Reduce = void (*)(const Function&, const char* in, size_t count, char* state);
  // Returns how many elements it has written.
  using Filter = size_t (*)(const Function&, const char* in, const char* operand, char* out,
                            size_t count);
  Update update = nullptr;
  Reduce reduce = nullptr;
  Filter filter = nullptr;
  void (*user)() = nullptr;  // the one-element function that was registered, its type erased
};

// How a built-in function changes a value that lies in parts (src/engine/value_parts.h).
struct PartsInput;
struct PartsEffect;
using PartsBody = PartsEffect (*)(const PartsInput& input);

struct Function {
  std::string name;
  FunctionBody body;
  FunctionKind kind = FunctionKind::kPlain;
  // The type of the values that the function reads and stores (batch.h).
  uint8_t type = 0;
  // The function never changes a value: requests of it need no log.
  bool reads_only = false;
  PartsBody parts_body = nullptr;  // null: the function sees all bytes of a value
  // The fields from here on are only of functions of elements.
  Element element = Element::kI8;
  uint8_t operands = 0;            // operands for each element; 0 for a reduce function
  Element state = Element::kI64;   // kReduce: kI64, kU64 or kF64
  bool starts_with_first = false;  // kReduce: a vector without elements has no result
  uint64_t first_state = 0;        // kReduce: the state to begin with if the request gives none
  bool reduces_in_order = true;    // kReduce: one element after the other, so in any chunks
  ElementKernel kernel = {};

  size_t operand_bytes() const { return operands * BytesOf(element); }
};

// Registers `body` under `name`, for values of this type, at start-up, before any store is open; a
// registered function lives as long as the process. Thread-safe.
//   kInvalidArgument  the name is empty, longer than 64 bytes, or taken
Result<const Function*> RegisterFunction(std::string_view name, FunctionBody body,
                                         uint8_t type = 0);

// The function of that name; null if there is none. Thread-safe; takes a lock, so look up once.
const Function* FindFunction(std::string_view name);
// The function of elements with that kind, name and element; likewise.
const Function* FindFunction(FunctionKind kind, std::string_view name, Element element);
// All registered functions, by kind, name and element. Thread-safe.
std::vector<const Function*> AllFunctions();

// Each registers a function of elements, as above. It must be pure: any thread may run it, for
// elements in any order.
//   kInvalidArgument  the name is empty, longer than 64 bytes, has a capital letter (commands take
//                     either), or is taken for this kind and type
template <class T>
using UpdateFunction = T (*)(T element, T operand);
template <class T>
Result<const Function*> RegisterUpdate(std::string_view name, UpdateFunction<T> function);
// A reduce begins with 0 if the request gives no state.
template <class T>
using ReduceFunction = StateOf<T> (*)(StateOf<T> state, T element);
template <class T>
Result<const Function*> RegisterReduce(std::string_view name, ReduceFunction<T> function);
template <class T>
using FilterFunction = bool (*)(T element, T operand);
template <class T>
Result<const Function*> RegisterFilter(std::string_view name, FilterFunction<T> function);

// How an update is done. The operand of the request begins with these options.
struct UpdateOptions {
  enum class Returns : uint8_t { kNothing, kOld, kNew };

  Returns returns = Returns::kNothing;  // what Outcome::value has
  bool is_vector = false;               // a set of operands for each element, else one for all
  uint32_t create = 0;                  // an absent key becomes so many elements of 0; 0: an error
};

// The built-in functions.
namespace functions {
// Adds the decimal signed 64-bit operand to a decimal value (an absent key counts as 0), as Redis's
// INCRBY: `integer` is the new number. kInvalidArgument: the value is not such a number, or the sum
// overflows.
extern const Function* const kAddDecimal;
// Appends the operand: `integer` is the new length in bytes.
extern const Function* const kAppend;
// Redis's SETRANGE, SETBIT, BITFIELD and INCRBYFLOAT; src/engine/string_functions.h has their
// operands.
extern const Function* const kSetRange;
extern const Function* const kSetBit;
extern const Function* const kBitField;
extern const Function* const kAddFloat;
}  // namespace functions

namespace function_internal {

// Registers `function` under its kind, name and element; sets its body to that of its kind.
Result<const Function*> RegisterElements(Function function);

template <class T>
T LoadElement(const char* at, size_t i) {
  T element;
  std::memcpy(&element, at + i * sizeof(T), sizeof(T));
  return element;
}
template <class T>
void StoreElement(char* at, size_t i, T element) {
  std::memcpy(at + i * sizeof(T), &element, sizeof(T));
}
template <class Pointer>
Pointer UserOf(const Function& function) {
  return reinterpret_cast<Pointer>(function.kernel.user);
}

}  // namespace function_internal

template <class T>
Result<const Function*> RegisterUpdate(std::string_view name, UpdateFunction<T> function) {
  using namespace function_internal;
  return RegisterElements(
      {.name = std::string(name),
       .kind = FunctionKind::kUpdate,
       .element = ElementOf<T>(),
       .operands = 1,
       .kernel = {.update =
                      [](const Function& self, char* elements, const char* operands, bool is_vector,
                         size_t count) {
                        const auto update = UserOf<UpdateFunction<T>>(self);
                        for (size_t i = 0; i < count; ++i) {
                          const T operand = LoadElement<T>(operands, is_vector ? i : 0);
                          StoreElement(elements, i, update(LoadElement<T>(elements, i), operand));
                        }
                      },
                  .user = reinterpret_cast<void (*)()>(function)}});
}

template <class T>
Result<const Function*> RegisterReduce(std::string_view name, ReduceFunction<T> function) {
  using namespace function_internal;
  return RegisterElements(
      {.name = std::string(name),
       .kind = FunctionKind::kReduce,
       .element = ElementOf<T>(),
       .state = ElementOf<StateOf<T>>(),
       .kernel = {.reduce =
                      [](const Function& self, const char* in, size_t count, char* at) {
                        const auto reduce = UserOf<ReduceFunction<T>>(self);
                        auto state = LoadElement<StateOf<T>>(at, 0);
                        for (size_t i = 0; i < count; ++i) {
                          state = reduce(state, LoadElement<T>(in, i));
                        }
                        StoreElement(at, 0, state);
                      },
                  .user = reinterpret_cast<void (*)()>(function)}});
}

template <class T>
Result<const Function*> RegisterFilter(std::string_view name, FilterFunction<T> function) {
  using namespace function_internal;
  return RegisterElements({.name = std::string(name),
                           .kind = FunctionKind::kFilter,
                           .element = ElementOf<T>(),
                           .operands = 1,
                           .kernel = {.filter =
                                          [](const Function& self, const char* in,
                                             const char* operand, char* out, size_t count) {
                                            const auto is_wanted = UserOf<FilterFunction<T>>(self);
                                            const T bound = LoadElement<T>(operand, 0);
                                            size_t wanted = 0;
                                            for (size_t i = 0; i < count; ++i) {
                                              const T element = LoadElement<T>(in, i);
                                              if (is_wanted(element, bound))
                                                StoreElement(out, wanted++, element);
                                            }
                                            return wanted;
                                          },
                                      .user = reinterpret_cast<void (*)()>(function)}});
}

}  // namespace skep
