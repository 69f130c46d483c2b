// keyspaces.h: the numbered keyspaces of one store, each an engine of its own, under one budget.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/plain_gets.h"
#include "keyspace/factory.h"
#include "skep/options.h"

namespace skep {

// The refusal of a call on a keyspace that a store does not have.
inline constexpr Status kNoSuchKeyspace(Code::kInvalidArgument, "no such keyspace");

// Wraps the engines of a store, to add something to them.
class EngineWrapper {
 public:
  virtual ~EngineWrapper() = default;
  virtual std::unique_ptr<Engine> Wrap(uint32_t keyspace, std::unique_ptr<Engine> engine) = 0;
};

// Thread-safe.
class Keyspaces {
 public:
  // Whether there can be keyspaces with these options, of whatever engine. On an error *problem, if
  // given, is a line for a person.
  //   kInvalidArgument  no keyspaces; a number that options.h does not allow; keyspace_engines
  //                     names a keyspace or an engine that does not exist
  static Status Check(const Options& options, std::string* problem = nullptr);

  // `info`, if given, is the engine used for options.engine, whatever that names. With a `wrapper`,
  // each engine numbers its writes and is wrapped when it is made, unless its data are elsewhere
  // (EngineInfo::external). Both must outlive the keyspaces.
  // `problem`: as Check.
  //   kInvalidArgument  no such engine, or as Check
  static Result<std::unique_ptr<Keyspaces>> Make(const Options& options,
                                                 const EngineInfo* info = nullptr,
                                                 EngineWrapper* wrapper = nullptr,
                                                 std::string* problem = nullptr);
  // Keyspaces with these engines, at least one.
  explicit Keyspaces(std::vector<std::unique_ptr<Engine>> engines);
  ~Keyspaces();

  // The name of the engine that a keyspace has, or will have.
  std::string_view engine_name(uint32_t index) const {
    return specs_.empty() ? if_used(index)->traits().name : specs_[index].info->name;
  }
  uint32_t count() const { return static_cast<uint32_t>(engines_.size()); }
  // The engine of a keyspace, made on first use. `index` < count().
  Engine& at(uint32_t index) {
    Engine* engine = engines_[index].load(std::memory_order_acquire);
    return engine != nullptr ? *engine : MakeEngine(index);
  }
  // The plain gets of a keyspace's engine, which is made on first use; null: it has none. `index` <
  // count(). Cost: two loads.
  PlainGets* plain_gets(uint32_t index) {
    at(index);
    return plain_gets_[index];
  }
  // Null if the keyspace was never used.
  Engine* if_used(uint32_t index) const { return engines_[index].load(std::memory_order_acquire); }

  // The number of the keyspace that has this engine; nothing: none has. Cost: a look at each.
  std::optional<uint32_t> index_of(const Engine& engine) const;
  // Calls `visit` for each engine that there is, and for each that is made later, before others use
  // it. Of several functions that were given here the last one is called for later engines.
  // Thread-safe.
  using Visit = std::function<void(uint32_t index, Engine& engine)>;
  void VisitEach(Visit visit);

  // Whether a collection may be larger than one value (collections/collection_engine.h); the engine
  // is made for it on first use. `index` < count().
  bool has_large_collections(uint32_t index);

  MemoryBudget& budget() { return budget_; }
  const MemoryBudget& budget() const { return budget_; }

  // Whether every engine can read the collections that were loaded into it.
  //   kInvalidArgument  a keyspace has parts of large collections (src/collections), and they are
  //                     switched off; *problem has the sentence for people
  // Cost: a scan of one item a keyspace.
  Status CheckCollections(std::string* problem);

  // A bounded piece of every engine's background work; true if there is more to do now.
  bool Maintain(uint64_t now_ms);

 private:
  Keyspaces(const Options& options, const EngineSpec& spec, EngineWrapper* wrapper);
  Engine& MakeEngine(uint32_t index);
  void Set(uint32_t index, Engine* engine);
  // Makes the engines that have to reach others, and that of keyspace 0.
  Status Connect(std::string* problem);

  MemoryBudget budget_;
  EngineOptions options_;
  std::vector<EngineSpec> specs_;  // of keyspaces that are made on first use
  EngineWrapper* const wrapper_ = nullptr;
  const size_t collection_value_bytes_ = 0;  // Options::collection_value_bytes
  Mutex mutex_;                              // held while an engine is made
  Visit visit_ SKEP_GUARDED_BY(mutex_);
  // Acquire pairs with the release store in Set: a thread that sees the pointer sees the engine,
  // and its plain gets.
  std::vector<std::atomic<Engine*>> engines_;  // owned
  std::vector<PlainGets*> plain_gets_;         // set once, before the engine
};

}  // namespace skep
