#include "keyspace/keyspaces.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "base/check.h"
#include "base/mutex.h"
#include "collections/collection_engine.h"

namespace skep {
namespace {

constexpr uint64_t kExpiryLagMs = 500;

// The options of engines that no keyspace has are checked, too, so that a mistake shows, except
// those options that each keyspace may name behind the engine's name.
Status CheckOthers(const std::map<const EngineInfo*, uint32_t>& counts,
                   const IndexOptions& options) {
  for (const EngineInfo& info : AllEngines()) {
    if (counts.contains(&info) || info.read_option != nullptr) continue;
    if (const Status s = CheckEngine({.info = &info, .options = options}); !s.ok()) return s;
  }
  return {};
}

// *problem is set only where it says more than the status.
Status CheckAll(const Options& options, std::string* problem) {
  if (options.keyspaces == 0) return {Code::kInvalidArgument, "a store needs a keyspace"};
  std::map<const EngineInfo*, uint32_t> counts;  // keyspaces by engine
  const IndexOptions index_options = IndexOptionsOf(options);
  const auto all = ParseEngine(options.engine, index_options, problem);
  // A name that is not known, without options, is no error here: the caller of Make may bring its
  // engine.
  if (!all && options.engine.find(',') != std::string::npos) return all.error();
  problem->clear();
  if (all) {
    if (all->info->external && options.keyspaces > 1) {
      return {Code::kInvalidArgument,
              "an engine whose data are elsewhere is that of one keyspace, not of all"};
    }
    counts[all->info] = options.keyspaces;
    if (const Status s = CheckEngine(*all); !s.ok()) return s;
  }
  for (const auto& [index, engine] : options.keyspace_engines) {
    if (index >= options.keyspaces) {
      return {Code::kInvalidArgument, "an engine for a keyspace that there is not", index};
    }
    const auto spec = ParseEngine(engine, index_options, problem);
    if (!spec) {
      *problem = fmt::format("keyspace {}: {}", index, *problem);
      return {spec.error().code(), spec.error().what(), index};
    }
    if (const Status s = CheckEngine(*spec); !s.ok()) return s;
    if (all) --counts[all->info];
    ++counts[spec->info];
  }
  for (const auto& [info, count] : counts) {
    if (count > info->keyspaces_max) {
      return {Code::kInvalidArgument, "too many keyspaces of one engine: fewer, or another engine",
              info->keyspaces_max};
    }
  }
  return CheckOthers(counts, index_options);
}

}  // namespace

Status Keyspaces::Check(const Options& options, std::string* problem) {
  std::string text;
  const Status s = CheckAll(options, &text);
  if (!s.ok() && problem != nullptr) *problem = text.empty() ? s.ToString() : text;
  return s;
}

Result<std::unique_ptr<Keyspaces>> Keyspaces::Make(const Options& options, const EngineInfo* info,
                                                   EngineWrapper* wrapper, std::string* problem) {
  EngineSpec spec{.info = info, .options = IndexOptionsOf(options)};
  if (info == nullptr) {
    const auto parsed = ParseEngine(options.engine, spec.options, problem);
    if (!parsed) return Fail(parsed.error());
    spec = *parsed;
  }
  if (const Status s = Check(options, problem); !s.ok()) return Fail(s);
  auto keyspaces = std::unique_ptr<Keyspaces>(new Keyspaces(options, spec, wrapper));
  if (const Status s = keyspaces->Connect(problem); !s.ok()) return Fail(s);
  return keyspaces;
}

Status Keyspaces::Connect(std::string* problem) {
  std::string unwanted;
  for (uint32_t i = 0; i < count(); ++i) {
    if (specs_[i].info->connect == nullptr) continue;
    auto engine = specs_[i].info->connect(specs_[i].options, problem ? problem : &unwanted);
    if (!engine) return engine.error();
    Set(i, engine->release());
  }
  at(0);  // makes at start the engine that every process needs
  return {};
}

Keyspaces::Keyspaces(const Options& options, const EngineSpec& spec, EngineWrapper* wrapper)
    : budget_(options.memory_bytes_max),
      options_{.budget = &budget_,
               .snapshot_age_ms_max = options.snapshot_age_ms_max,
               .expiry_lag_ms = kExpiryLagMs,
               .numbers_writes = wrapper != nullptr},
      specs_(options.keyspaces, spec),
      wrapper_(wrapper),
      collection_value_bytes_(options.collection_value_bytes),
      engines_(options.keyspaces),
      plain_gets_(options.keyspaces) {
  for (const auto& [index, engine] : options.keyspace_engines) {
    specs_[index] = *ParseEngine(engine, IndexOptionsOf(options));
  }
  for (uint32_t index = 1; index < count(); ++index) specs_[index].options.btree.shared = false;
}

Keyspaces::Keyspaces(std::vector<std::unique_ptr<Engine>> engines)
    : budget_(0), engines_(engines.size()), plain_gets_(engines.size()) {
  for (size_t i = 0; i < engines.size(); ++i) {
    Set(static_cast<uint32_t>(i), engines[i].release());
  }
}

Keyspaces::~Keyspaces() {
  for (auto& engine : engines_) delete engine.load(std::memory_order_acquire);
}

Engine& Keyspaces::MakeEngine(uint32_t index) {
  const MutexLock lock(mutex_);
  Engine* engine = engines_[index].load(std::memory_order_acquire);
  if (engine == nullptr) {
    EngineOptions own = options_;
    own.index = specs_[index].options;
    auto made = specs_[index].info->make(own);
    SKEP_CHECK(made != nullptr);  // else there is not even address space
    if (wrapper_ != nullptr && !specs_[index].info->external) {
      made = wrapper_->Wrap(index, std::move(made));
    }
    // An engine that the caller has brought is left as it is.
    const EngineInfo* const info = specs_[index].info;
    if (collection_value_bytes_ != 0 && !info->external && FindEngine(info->name) == info &&
        collections::CanHaveCollections(made->traits())) {
      made = std::make_unique<collections::CollectionEngine>(std::move(made),
                                                             collection_value_bytes_, &budget_);
    }
    engine = made.release();
    if (visit_) visit_(index, *engine);
    Set(index, engine);
  }
  return *engine;
}

void Keyspaces::Set(uint32_t index, Engine* engine) {
  plain_gets_[index] = PlainGetsOf(*engine);
  engines_[index].store(engine, std::memory_order_release);
}

std::optional<uint32_t> Keyspaces::index_of(const Engine& engine) const {
  for (uint32_t i = 0; i < count(); ++i) {
    if (if_used(i) == &engine) return i;
  }
  return std::nullopt;
}

void Keyspaces::VisitEach(Visit visit) {
  const MutexLock lock(mutex_);
  for (uint32_t i = 0; i < count(); ++i) {
    if (Engine* const engine = if_used(i)) visit(i, *engine);
  }
  visit_ = std::move(visit);
}

Status Keyspaces::CheckCollections(std::string* problem) {
  for (auto& slot : engines_) {
    Engine* const engine = slot.load(std::memory_order_acquire);
    auto* const with_collections = dynamic_cast<collections::CollectionEngine*>(engine);
    if (with_collections != nullptr && !with_collections->ReadsRecords()) {
      if (problem != nullptr) {
        *problem =
            "the directory has hashes, sets, lists or sorted sets that are kept in parts as "
            "another "
            "version of Skep has them: this version does not read them";
      }
      return {Code::kInvalidArgument, "the directory has large collections of another format"};
    }
    if (collection_value_bytes_ != 0 || engine == nullptr ||
        !collections::CanHaveCollections(engine->traits())) {
      continue;
    }
    if (!collections::HasParts(*engine)) continue;
    if (problem != nullptr) {
      *problem =
          "the directory has hashes, sets, lists or sorted sets that are kept in parts: "
          "collection-value-bytes must not be 0, and ranges and share-leaves cannot be used";
    }
    return {Code::kInvalidArgument, "the directory has large collections, which are switched off"};
  }
  return {};
}

bool Keyspaces::has_large_collections(uint32_t index) {
  return dynamic_cast<const collections::CollectionEngine*>(&at(index)) != nullptr;
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
