#include "bench/ordered_load.h"

#include <charconv>
#include <numeric>

#include "base/random.h"
#include "bench/zipf.h"

namespace skep::bench {
namespace {

constexpr std::string_view kZipfSuffix = "_zipf";
constexpr std::string_view kScanPrefix = "scan";

// 0 if that is not the name of a scan.
uint32_t ScanItemsOf(std::string_view name) {
  if (!name.starts_with(kScanPrefix)) return 0;
  const std::string_view digits = name.substr(kScanPrefix.size());
  uint32_t items = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), items);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && items <= kScanItemsMax ? items : 0;
}

std::optional<OpKind> KindOf(std::string_view name) {
  if (name == "insert") return OpKind::kInsert;
  if (name == "get") return OpKind::kRead;
  if (name == "update") return OpKind::kUpdate;
  if (name == "delete") return OpKind::kDelete;
  if (ScanItemsOf(name) != 0) return OpKind::kScan;
  return std::nullopt;
}

// Streams of different threads must not be shifted copies of each other; SeededRandom spreads
// whatever it is given.
uint64_t SeedOf(const OrderedShare& share) {
  return share.seed * 0x9e3779b97f4a7c15 + share.thread;
}

class Choices final : public OpSource {
 public:
  Choices(const OrderedLoad& load, const OrderedShare& share)
      : load_(load), share_(share), random_(SeedOf(share)), zipf_(share.items) {}

  void Fill(OpStream& stream, size_t count) override {
    for (size_t i = 0; i < count; ++i) {
      const uint64_t number = Draw();
      stream.Add(load_.kind, load_.kind == OpKind::kUpdate ? Own(number) : number,
                 load_.scan_items);
    }
  }

 private:
  uint64_t Draw() {
    return load_.distribution == Distribution::kZipfian ? zipf_.Draw(random_)
                                                        : random_.Below(share_.items);
  }

  // The number itself or one near it: every key belongs to one thread.
  uint64_t Own(uint64_t number) const {
    const uint64_t own = number - number % share_.threads + share_.thread;
    return own < share_.items ? own : own - share_.threads;
  }

  const OrderedLoad load_;
  const OrderedShare share_;
  SeededRandom random_;
  ScrambledZipf zipf_;
};

// Steps through the numbers by a stride that has no factor in common with how many there are.
class Sweep final : public OpSource {
 public:
  Sweep(OpKind kind, const OrderedShare& share) : kind_(kind), items_(share.items) {
    const uint64_t stride = StrideOf(items_);
    const uint64_t start = SeededRandom(share.seed).Below(items_);
    next_ = Modulo(start, share.thread, stride);
    step_ = Modulo(0, share.threads, stride);
  }

  void Fill(OpStream& stream, size_t count) override {
    for (size_t i = 0; i < count; ++i) {
      stream.Add(kind_, next_);
      next_ = Modulo(next_, 1, step_);
    }
  }

 private:
  // Near the golden section of `items`: neighbours in time are not neighbours in number.
  static uint64_t StrideOf(uint64_t items) {
    uint64_t stride = static_cast<uint64_t>(static_cast<double>(items) * 0.6180339887) + 1;
    while (std::gcd(stride, items) != 1) ++stride;
    return stride;
  }

  // (base + times * step) modulo items.
  uint64_t Modulo(uint64_t base, uint64_t times, uint64_t step) const {
    const auto sum = static_cast<unsigned __int128>(times) * step + base;
    return static_cast<uint64_t>(sum % items_);
  }

  const OpKind kind_;
  const uint64_t items_;
  uint64_t next_;
  uint64_t step_;
};

}  // namespace

std::optional<OrderedLoad> FindOrderedLoad(std::string_view name) {
  std::string_view base = name;
  const bool zipf = base.ends_with(kZipfSuffix);
  if (zipf) base.remove_suffix(kZipfSuffix.size());
  const auto kind = KindOf(base);
  if (!kind || (zipf && (*kind == OpKind::kInsert || *kind == OpKind::kDelete))) return {};
  return OrderedLoad{.name = std::string(name),
                     .kind = *kind,
                     .scan_items = ScanItemsOf(base),
                     .distribution = zipf ? Distribution::kZipfian : Distribution::kUniform};
}

std::unique_ptr<OpSource> MakeChoices(const OrderedLoad& load, const OrderedShare& share) {
  return std::make_unique<Choices>(load, share);
}

std::unique_ptr<OpSource> MakeSweep(OpKind kind, const OrderedShare& share) {
  return std::make_unique<Sweep>(kind, share);
}

}  // namespace skep::bench
