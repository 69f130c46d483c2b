#include "types/hyperloglog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "types/collection.h"
#include "types/function_table.h"

namespace skep::types {
namespace {

constexpr Status kNotOne(Code::kWrongType, "no HyperLogLog");
constexpr Status kCorrupted(Code::kCorrupt, "Corrupted HLL object detected");

constexpr std::string_view kMagic = "HYLL";
constexpr size_t kHeadBytes = 16;
constexpr size_t kEncodingAt = 4;
constexpr size_t kCountAt = 8;
constexpr uint8_t kCountUnknown = 0x80;  // in the last byte of the count
constexpr char kDense = 0;
constexpr char kSparse = 1;
constexpr int kRegisterBits = 6;
constexpr uint8_t kRegisterMask = (1 << kRegisterBits) - 1;
constexpr size_t kDenseBytes = kHeadBytes + kRegisters * kRegisterBits / 8;
constexpr int kIndexBits = 14;
constexpr int kRanks = 64 - kIndexBits;

// ---- Elements

// MurmurHash64A with Redis's seed.
uint64_t HashOf(std::string_view element) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  constexpr uint64_t kSeed = 0xadc83b19;
  constexpr int kShift = 47;
  uint64_t hash = kSeed ^ (element.size() * kMultiplier);
  for (; element.size() >= 8; element.remove_prefix(8)) {
    uint64_t word = 0;
    std::memcpy(&word, element.data(), 8);
    word *= kMultiplier;
    word ^= word >> kShift;
    word *= kMultiplier;
    hash ^= word;
    hash *= kMultiplier;
  }
  if (!element.empty()) {
    uint64_t rest = 0;
    std::memcpy(&rest, element.data(), element.size());
    hash ^= rest;
    hash *= kMultiplier;
  }
  hash ^= hash >> kShift;
  hash *= kMultiplier;
  hash ^= hash >> kShift;
  return hash;
}

struct Observation {
  size_t index;
  uint8_t rank;  // how many zero bits the rest of the hash ends with, and one
};
Observation ObservationOf(std::string_view element) {
  uint64_t hash = HashOf(element);
  const size_t index = hash & (kRegisters - 1);
  hash = (hash >> kIndexBits) | (uint64_t{1} << kRanks);
  return {index, static_cast<uint8_t>(std::countr_zero(hash) + 1)};
}

// ---- The dense form

uint8_t DenseAt(const char* registers, size_t index) {
  const size_t bit = index * kRegisterBits;
  const auto low = static_cast<uint8_t>(registers[bit / 8]);
  const auto shift = bit % 8;
  // The last register ends with the last byte.
  const auto high = shift > 2 ? static_cast<uint8_t>(registers[bit / 8 + 1]) : uint8_t{0};
  return static_cast<uint8_t>(((low >> shift) | (high << (8 - shift))) & kRegisterMask);
}

void SetDense(char* registers, size_t index, uint8_t value) {
  const size_t bit = index * kRegisterBits;
  const auto shift = bit % 8;
  const auto put = [&](char& byte, int mask, int bits) {
    byte = static_cast<char>((static_cast<uint8_t>(byte) & ~mask) | bits);
  };
  put(registers[bit / 8], (kRegisterMask << shift) & 0xff, (value << shift) & 0xff);
  if (shift > 2) put(registers[bit / 8 + 1], kRegisterMask >> (8 - shift), value >> (8 - shift));
}

// ---- The sparse form: runs

struct Run {
  size_t length = 0;
  uint8_t value = 0;
  size_t bytes = 1;
};
constexpr size_t kShortRunMax = 64;
constexpr size_t kValueRunMax = 4;
constexpr uint8_t kValueMax = 32;

// The run that begins there; nothing if the bytes end within it.
std::optional<Run> RunAt(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  const auto first = static_cast<uint8_t>(bytes[0]);
  if ((first & 0x80) != 0) {
    return Run{.length = (first & 3u) + 1,
               .value = static_cast<uint8_t>(((first >> 2) & 0x1f) + 1)};
  }
  if ((first & 0x40) == 0) return Run{.length = (first & 0x3fu) + 1};
  if (bytes.size() < 2) return std::nullopt;
  const size_t length = ((first & 0x3fu) << 8) | static_cast<uint8_t>(bytes[1]);
  return Run{.length = length + 1, .bytes = 2};
}

void AppendRun(std::string& to, size_t length, uint8_t value) {
  if (length == 0) return;
  const size_t count = length - 1;
  if (value > 0) {
    to += static_cast<char>(0x80 | ((value - 1) << 2) | count);
  } else if (length <= kShortRunMax) {
    to += static_cast<char>(count);
  } else {
    to += static_cast<char>(0x40 | (count >> 8));
    to += static_cast<char>(count & 0xff);
  }
}

// ---- Both forms

// The value of a key as one that can be changed.
class HyperLogLog {
 public:
  // A new one, in which every register is 0.
  HyperLogLog() : bytes_(kMagic) {
    bytes_ += kSparse;
    bytes_.resize(kHeadBytes);
    AppendRun(bytes_, kRegisters, 0);
  }
  explicit HyperLogLog(std::string_view bytes) : bytes_(bytes) {}

  // Whether the bytes begin as one, and have the length of their form.
  static bool IsOne(std::string_view bytes) {
    if (bytes.size() < kHeadBytes || !bytes.starts_with(kMagic)) return false;
    return bytes[kEncodingAt] == kSparse ||
           (bytes[kEncodingAt] == kDense && bytes.size() == kDenseBytes);
  }

  const std::string& bytes() const { return bytes_; }
  bool is_dense() const { return bytes_[kEncodingAt] == kDense; }

  // The count that is stored, if it is known.
  std::optional<int64_t> KnownCount() const {
    if ((static_cast<uint8_t>(bytes_[kHeadBytes - 1]) & kCountUnknown) != 0) return std::nullopt;
    uint64_t count = 0;
    std::memcpy(&count, bytes_.data() + kCountAt, sizeof count);
    return static_cast<int64_t>(count);
  }
  void ForgetCount() {
    bytes_[kHeadBytes - 1] =
        static_cast<char>(static_cast<uint8_t>(bytes_[kHeadBytes - 1]) | kCountUnknown);
  }

  // Raises the values to those of the registers. False: the bytes are wrong.
  bool RaiseTo(std::array<uint8_t, kRegisters>& values) const {
    if (is_dense()) {
      for (size_t i = 0; i < kRegisters; ++i) {
        values[i] = std::max(values[i], DenseAt(bytes_.data() + kHeadBytes, i));
      }
      return true;
    }
    size_t index = 0;
    std::string_view rest = std::string_view(bytes_).substr(kHeadBytes);
    while (!rest.empty()) {
      const auto run = RunAt(rest);
      if (!run || run->length > kRegisters - index) return false;
      rest.remove_prefix(run->bytes);
      for (size_t end = index + run->length; index < end; ++index) {
        values[index] = std::max(values[index], run->value);
      }
    }
    return index == kRegisters;
  }

  bool MakeDense() {
    if (is_dense()) return true;
    std::array<uint8_t, kRegisters> values{};
    if (!RaiseTo(values)) return false;
    bytes_.resize(kHeadBytes);
    bytes_[kEncodingAt] = kDense;
    bytes_.resize(kDenseBytes);
    for (size_t i = 0; i < kRegisters; ++i) SetDense(bytes_.data() + kHeadBytes, i, values[i]);
    return true;
  }

  // Raises a register. Returns whether that changed it; nothing: the bytes are wrong.
  std::optional<bool> Raise(size_t index, uint8_t value) {
    if (!is_dense()) return RaiseSparse(index, value);
    char* const registers = bytes_.data() + kHeadBytes;
    if (DenseAt(registers, index) >= value) return false;
    SetDense(registers, index, value);
    return true;
  }

 private:
  // Splits the run that has the register, and joins equal neighbours, as Redis does it.
  std::optional<bool> RaiseSparse(size_t index, uint8_t value) {
    if (value > kValueMax) return RaiseAsDense(index, value);
    size_t at = kHeadBytes;
    size_t before = kHeadBytes;  // where the run before begins
    size_t first = 0;            // the run's first register
    std::optional<Run> run;
    while (true) {
      run = RunAt(std::string_view(bytes_).substr(at));
      if (!run) return std::nullopt;
      if (index < first + run->length) break;
      before = at;
      at += run->bytes;
      first += run->length;
    }
    if (run->value >= value) return false;
    std::string runs;
    AppendRun(runs, index - first, run->value);
    AppendRun(runs, 1, value);
    AppendRun(runs, first + run->length - 1 - index, run->value);
    const bool grows = runs.size() > run->bytes;
    if (grows && bytes_.size() + runs.size() - run->bytes > kSparseBytesMax) {
      return RaiseAsDense(index, value);
    }
    bytes_.replace(at, run->bytes, runs);
    JoinRuns(before);
    return true;
  }

  std::optional<bool> RaiseAsDense(size_t index, uint8_t value) {
    return MakeDense() ? Raise(index, value) : std::nullopt;
  }

  // Joins runs of the same value from there on: five steps.
  void JoinRuns(size_t at) {
    constexpr int kSteps = 5;
    for (int step = 0; step < kSteps && at < bytes_.size(); ++step) {
      const auto run = RunAt(std::string_view(bytes_).substr(at));
      if (!run) return;
      const auto next = RunAt(std::string_view(bytes_).substr(at + run->bytes));
      const bool joins = run->value > 0 && next && next->value == run->value &&
                         run->length + next->length <= kValueRunMax;
      if (joins) {
        std::string joined;
        AppendRun(joined, run->length + next->length, run->value);
        bytes_.replace(at, 2, joined);
      } else {
        at += run->bytes;
      }
    }
  }

  std::string bytes_;
};

// ---- Estimates

double Sigma(double x) {
  if (x == 1) return INFINITY;
  double y = 1;
  double z = x;
  for (double before = -1; before != z;) {
    x *= x;
    before = z;
    z += x * y;
    y += y;
  }
  return z;
}

double Tau(double x) {
  if (x == 0 || x == 1) return 0;
  double y = 1;
  double z = 1 - x;
  for (double before = -1; before != z;) {
    x = std::sqrt(x);
    before = z;
    y *= 0.5;
    z -= std::pow(1 - x, 2) * y;
  }
  return z / 3;
}

// ---- Functions

FunctionEffect Replaced(const HyperLogLog& changed, int64_t integer, Scratch& scratch) {
  return {.action = FunctionEffect::Action::kReplace,
          .value = scratch.Copy(changed.bytes()),
          .integer = integer};
}

FunctionEffect AddElements(const FunctionInput& input) {
  Texts elements;
  if (!TakeTexts(input.operand, &elements)) return Failure(kBadOperand);
  if (input.value && !HyperLogLog::IsOne(*input.value)) return Failure(kNotOne);
  HyperLogLog log = input.value ? HyperLogLog(*input.value) : HyperLogLog();
  bool has_changed = !input.value;
  for (const std::string_view element : elements) {
    const Observation seen = ObservationOf(element);
    const auto raised = log.Raise(seen.index, seen.rank);
    if (!raised) return Failure(kCorrupted);
    has_changed |= *raised;
  }
  if (!has_changed) return Number(0);
  log.ForgetCount();
  return Replaced(log, 1, *input.scratch);
}

FunctionEffect CountElements(const FunctionInput& input) {
  if (!input.value) return Number(0);
  if (!HyperLogLog::IsOne(*input.value)) return Failure(kNotOne);
  const HyperLogLog log(*input.value);
  if (const auto count = log.KnownCount()) return Number(*count);
  Registers registers;
  if (!log.RaiseTo(registers.values)) return Failure(kCorrupted);
  return Number(EstimateOf(registers.values));
}

// The registers of an operand; nothing if it has none.
std::optional<Registers> ReadRegisters(std::string_view operand) {
  Registers registers;
  if (operand.empty()) return registers;
  if (operand.size() != sizeof(registers)) return std::nullopt;
  std::memcpy(&registers, operand.data(), sizeof(registers));
  for (const uint8_t value : registers.values) {
    if (value > kRegisterMask) return std::nullopt;
  }
  return registers;
}

FunctionEffect UniteRegisters(const FunctionInput& input) {
  auto registers = ReadRegisters(input.operand);
  if (!registers) return Failure(kBadOperand);
  if (input.value) {
    if (!HyperLogLog::IsOne(*input.value)) return Failure(kNotOne);
    const HyperLogLog log(*input.value);
    if (!log.RaiseTo(registers->values)) return Failure(kCorrupted);
    if (log.is_dense()) registers->is_dense = 1;
  }
  const char* const bytes = reinterpret_cast<const char*>(&*registers);
  return {.returned = input.scratch->Copy({bytes, sizeof(*registers)}),
          .integer = EstimateOf(registers->values)};
}

FunctionEffect StoreRegisters(const FunctionInput& input) {
  const auto registers = ReadRegisters(input.operand);
  if (!registers) return Failure(kBadOperand);
  if (input.value && !HyperLogLog::IsOne(*input.value)) return Failure(kNotOne);
  HyperLogLog log = input.value ? HyperLogLog(*input.value) : HyperLogLog();
  if (registers->is_dense != 0 && !log.MakeDense()) return Failure(kCorrupted);
  for (size_t i = 0; i < kRegisters; ++i) {
    if (registers->values[i] > 0 && !log.Raise(i, registers->values[i])) return Failure(kCorrupted);
  }
  log.ForgetCount();
  return Replaced(log, 0, *input.scratch);
}

FunctionEffect MakeDense(const FunctionInput& input) {
  if (!input.value) return Number(0);
  if (!HyperLogLog::IsOne(*input.value)) return Failure(kNotOne);
  HyperLogLog log(*input.value);
  if (log.is_dense()) return Number(0);
  if (!log.MakeDense()) return Failure(kCorrupted);
  return Replaced(log, 1, *input.scratch);
}

// z:5 five registers are 0, as a short run; Z:500 as a long one; v:3,2 two have the value 3.
FunctionEffect DescribeRuns(const FunctionInput& input) {
  if (!input.value) return Number(0);
  if (!HyperLogLog::IsOne(*input.value)) return Failure(kNotOne);
  if (HyperLogLog(*input.value).is_dense()) return Number(0);
  std::string text;
  std::string_view rest = input.value->substr(kHeadBytes);
  while (!rest.empty()) {
    const auto run = RunAt(rest);
    if (!run) return Failure(kCorrupted);
    rest.remove_prefix(run->bytes);
    if (run->value > 0) {
      text += fmt::format("v:{},{} ", run->value, run->length);
    } else {
      text += fmt::format("{}:{} ", run->bytes == 1 ? 'z' : 'Z', run->length);
    }
  }
  if (!text.empty()) text.pop_back();
  return {.returned = input.scratch->Copy(text), .integer = 1};
}

constexpr TypeFunction kHyperLogLogFunctions[] = {
    {"hll-add", AddElements, kString},
    {"hll-count", CountElements, kString, true},
    {"hll-union", UniteRegisters, kString, true},
    {"hll-store", StoreRegisters, kString},
    {"hll-dense", MakeDense, kString},
    {"hll-runs", DescribeRuns, kString, true},
};

}  // namespace

int64_t EstimateOf(std::span<const uint8_t, kRegisters> registers) {
  constexpr double kAlpha = 0.721347520444481703680;  // 1 / (2 ln 2)
  constexpr double kCount = kRegisters;
  std::array<int, 64> of_value{};
  for (const uint8_t value : registers) ++of_value[value & kRegisterMask];
  double z = kCount * Tau((kCount - of_value[kRanks + 1]) / kCount);
  for (int value = kRanks; value >= 1; --value) {
    z += of_value[static_cast<size_t>(value)];
    z *= 0.5;
  }
  z += kCount * Sigma(of_value[0] / kCount);
  return std::llround(kAlpha * kCount * kCount / z);
}

bool PassesSelfTest() {
  constexpr uint64_t kElementsMax = 100'000;
  // Six times the standard error, 1.04 / sqrt(kRegisters), and one for counts that are small.
  constexpr double kErrorMax = 6 * 1.04 / 128;
  HyperLogLog log;
  HyperLogLog dense;
  if (!dense.MakeDense()) return false;
  uint64_t next = 10;
  for (uint64_t n = 1; n <= kElementsMax; ++n) {
    const Observation seen = ObservationOf({reinterpret_cast<const char*>(&n), sizeof n});
    if (!log.Raise(seen.index, seen.rank) || !dense.Raise(seen.index, seen.rank)) return false;
    if (n != next) continue;
    next *= 10;
    Registers registers;
    Registers same;
    if (!log.RaiseTo(registers.values) || !dense.RaiseTo(same.values)) return false;
    if (registers.values != same.values) return false;
    const auto error = static_cast<double>(EstimateOf(registers.values)) - static_cast<double>(n);
    if (std::abs(error) > kErrorMax * static_cast<double>(n) + 1) return false;
  }
  return log.is_dense();
}

std::span<const TypeFunction> HyperLogLogFunctions() { return kHyperLogLogFunctions; }

}  // namespace skep::types
