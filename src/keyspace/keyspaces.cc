#include "keyspace/keyspaces.h"

#include <bit>
#include <map>
#include <string>

#include "base/check.h"

namespace skep {
namespace {

constexpr uint32_t kNodeBytesMin = 2048;
constexpr uint32_t kNodeBytesMax = 32768;
constexpr uint32_t kInlineBytesMax = 50;
constexpr uint32_t kFillSlotsMax = 40;
constexpr uint32_t kLeafBytesMin = 32 << 10;
constexpr uint32_t kLeafThreadsMax = 256;
constexpr uint32_t kLeafBytesMax = 4 << 20;
constexpr uint64_t kExpiryLagMs = 500;

Status CheckBtree(const BtreeOptions& options) {
  const uint32_t bytes = options.node_bytes;
  if (!std::has_single_bit(bytes) || bytes < kNodeBytesMin || bytes > kNodeBytesMax) {
    return {Code::kInvalidArgument, "the node bytes of a btree are a power of two, 2048 to 32768",
            bytes};
  }
  return {};
}

Status CheckHash(const HashOptions& options) {
  if (options.inline_bytes_max > kInlineBytesMax) {
    return {Code::kInvalidArgument, "at most 50 bytes of a hash table's pair lie inline",
            options.inline_bytes_max};
  }
  if (options.fill_slots == 0 || options.fill_slots > kFillSlotsMax) {
    return {Code::kInvalidArgument, "the fill slots of a hash table are 1 to 40",
            options.fill_slots};
  }
  return {};
}

Status CheckHashleaf(const EngineSpec& spec) {
  if (spec.info->name != "hashleaf") return {};
  const HashleafOptions& options = spec.hashleaf;
  for (const uint32_t bytes : {options.key_bytes, options.value_bytes}) {
    if (bytes != 4 && bytes != 8 && bytes != 16) {
      return {Code::kInvalidArgument, "keys and values of hash leaves have 4, 8 or 16 bytes",
              bytes};
    }
  }
  if (!std::has_single_bit(options.leaf_bytes) || options.leaf_bytes < kLeafBytesMin ||
      options.leaf_bytes > kLeafBytesMax) {
    return {Code::kInvalidArgument, "the bytes of a hash leaf are a power of two, 32 KiB to 4 MiB",
            options.leaf_bytes};
  }
  if (options.threads == 0 || options.threads > kLeafThreadsMax) {
    return {Code::kInvalidArgument, "the threads of hash leaves are 1 to 256", options.threads};
  }
  return {};
}

}  // namespace

Status Keyspaces::Check(const Options& options) {
  if (options.keyspaces == 0) return {Code::kInvalidArgument, "a store needs a keyspace"};
  std::map<const EngineInfo*, uint32_t> counts;  // keyspaces by engine
  const auto all = ParseEngine(options.engine, options.hashleaf);
  // Who names an engine of his own knows it.
  if (!all && options.engine.find(',') != std::string::npos) return all.error();
  if (all) {
    counts[all->info] = options.keyspaces;
    if (const Status s = CheckHashleaf(*all); !s.ok()) return s;
  }
  for (const auto& [index, engine] : options.keyspace_engines) {
    if (index >= options.keyspaces) {
      return {Code::kInvalidArgument, "an engine for a keyspace that there is not", index};
    }
    const auto spec = ParseEngine(engine, options.hashleaf);
    if (!spec) return {spec.error().code(), spec.error().what(), index};
    if (const Status s = CheckHashleaf(*spec); !s.ok()) return s;
    if (all) --counts[all->info];
    ++counts[spec->info];
  }
  for (const auto& [info, count] : counts) {
    if (count > info->keyspaces_max) {
      return {Code::kInvalidArgument, "too many keyspaces of one engine: fewer, or another engine",
              info->keyspaces_max};
    }
  }
  if (const Status s = CheckBtree(options.btree); !s.ok()) return s;
  return CheckHash(options.hash);
}

Result<std::unique_ptr<Keyspaces>> Keyspaces::Make(const Options& options, const EngineInfo* info,
                                                   EngineWrapper* wrapper) {
  EngineSpec spec{.info = info, .hashleaf = options.hashleaf};
  if (info == nullptr) {
    const auto parsed = ParseEngine(options.engine, options.hashleaf);
    if (!parsed) return Fail(parsed.error());
    spec = *parsed;
  }
  if (const Status s = Check(options); !s.ok()) return Fail(s);
  return std::unique_ptr<Keyspaces>(new Keyspaces(options, spec, wrapper));
}

Keyspaces::Keyspaces(const Options& options, const EngineSpec& spec, EngineWrapper* wrapper)
    : budget_(options.memory_bytes_max),
      options_{.budget = &budget_,
               .snapshot_age_ms_max = options.snapshot_age_ms_max,
               .expiry_lag_ms = kExpiryLagMs,
               .numbers_writes = wrapper != nullptr,
               .btree = options.btree,
               .hash = options.hash},
      specs_(options.keyspaces, spec),
      wrapper_(wrapper),
      engines_(options.keyspaces) {
  for (const auto& [index, engine] : options.keyspace_engines) {
    specs_[index] = *ParseEngine(engine, options.hashleaf);
  }
  at(0);  // what a process cannot do without, it should have at start
}

Keyspaces::Keyspaces(std::vector<std::unique_ptr<Engine>> engines)
    : budget_(0), engines_(engines.size()) {
  for (size_t i = 0; i < engines.size(); ++i) {
    engines_[i].store(engines[i].release(), std::memory_order_release);
  }
}

Keyspaces::~Keyspaces() {
  for (auto& engine : engines_) delete engine.load(std::memory_order_acquire);
}

Engine& Keyspaces::MakeEngine(uint32_t index) {
  std::lock_guard lock(mutex_);
  Engine* engine = engines_[index].load(std::memory_order_acquire);
  if (engine == nullptr) {
    EngineOptions own = options_;
    own.hashleaf = specs_[index].hashleaf;
    auto made = specs_[index].info->make(own);
    SKEP_CHECK(made != nullptr);  // else there is not even address space
    if (wrapper_ != nullptr) made = wrapper_->Wrap(index, std::move(made));
    engine = made.release();
    engines_[index].store(engine, std::memory_order_release);
  }
  return *engine;
}

bool Keyspaces::Maintain(uint64_t now_ms) {
  bool more = false;
  for (auto& slot : engines_) {
    Engine* const engine = slot.load(std::memory_order_acquire);
    if (engine != nullptr) more |= engine->Maintain(now_ms);
  }
  return more;
}

}  // namespace skep
