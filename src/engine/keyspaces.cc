#include "engine/keyspaces.h"

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
constexpr uint32_t kLeafBytesMin = 4096;
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

Status CheckHashleaf(const HashleafOptions& options) {
  for (const uint32_t bytes : {options.key_bytes, options.value_bytes}) {
    if (bytes != 4 && bytes != 8 && bytes != 16) {
      return {Code::kInvalidArgument, "keys and values of hash leaves have 4, 8 or 16 bytes",
              bytes};
    }
  }
  if (!std::has_single_bit(options.leaf_bytes) || options.leaf_bytes < kLeafBytesMin ||
      options.leaf_bytes > kLeafBytesMax) {
    return {Code::kInvalidArgument, "the bytes of a hash leaf are a power of two, 4096 to 4 MiB",
            options.leaf_bytes};
  }
  return {};
}

}  // namespace

Status Keyspaces::Check(const Options& options) {
  if (options.keyspaces == 0) return {Code::kInvalidArgument, "a store needs a keyspace"};
  std::map<std::string, uint32_t> counts;  // keyspaces by engine
  counts[options.engine] = options.keyspaces;
  for (const auto& [index, engine] : options.keyspace_engines) {
    if (index >= options.keyspaces) {
      return {Code::kInvalidArgument, "an engine for a keyspace that there is not", index};
    }
    if (FindEngine(engine) == nullptr) {
      return {Code::kInvalidArgument, "no engine of the name for a keyspace", index};
    }
    --counts[options.engine];
    ++counts[engine];
  }
  for (const auto& [engine, count] : counts) {
    const EngineInfo* const info = FindEngine(engine);
    if (info != nullptr && count > info->keyspaces_max) {
      return {Code::kInvalidArgument, "too many keyspaces of one engine: fewer, or another engine",
              info->keyspaces_max};
    }
  }
  if (const Status s = CheckBtree(options.btree); !s.ok()) return s;
  if (const Status s = CheckHash(options.hash); !s.ok()) return s;
  return CheckHashleaf(options.hashleaf);
}

Result<std::unique_ptr<Keyspaces>> Keyspaces::Make(const Options& options, const EngineInfo* info,
                                                   EngineWrapper* wrapper) {
  if (info == nullptr) info = FindEngine(options.engine);
  if (info == nullptr) return Fail(Code::kInvalidArgument, "no engine of that name");
  if (const Status s = Check(options); !s.ok()) return Fail(s);
  return std::unique_ptr<Keyspaces>(new Keyspaces(options, *info, wrapper));
}

Keyspaces::Keyspaces(const Options& options, const EngineInfo& info, EngineWrapper* wrapper)
    : budget_(options.memory_bytes_max),
      options_{.budget = &budget_,
               .snapshot_age_ms_max = options.snapshot_age_ms_max,
               .expiry_lag_ms = kExpiryLagMs,
               .numbers_writes = wrapper != nullptr,
               .btree = options.btree,
               .hash = options.hash,
               .hashleaf = options.hashleaf},
      infos_(options.keyspaces, &info),
      wrapper_(wrapper),
      engines_(options.keyspaces) {
  for (const auto& [index, engine] : options.keyspace_engines) infos_[index] = FindEngine(engine);
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
    auto made = infos_[index]->make(options_);
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
