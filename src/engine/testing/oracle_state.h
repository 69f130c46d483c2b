// oracle_state.h: one state of a keyspace as the oracle has it, with the answer and the effect of
// each operation on it.
//
// Keys past their deadline are absent for every operation, but stay in the map until Reclaim() or
// until they are written anew: an engine may or may not have reclaimed them already.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace skep {

// The outcome that a slot must have. Some of it depends on choices of the engine (where a count
// stops, which key is sampled): those are taken from the slot's outcome and then checked.
struct Expected {
  Verdict verdict = Verdict::kDone;
  Code code = Code::kOk;  // kRefused: its status
  int64_t integer = 0;
  bool is_point = false;  // whether `present`, `type` and `deadline_ms` are checked
  bool present = false;
  uint8_t type = kPlainType;
  uint64_t deadline_ms = 0;
  bool value_matters = false;
  std::string value = {};
  bool items_matter = false;
  std::vector<std::pair<std::string, std::string>> items = {};
  bool must_say_more = false;
  bool may_say_more = false;
  bool wrong_bound = false;  // the bound to go on from loses or repeats keys
  bool wrote = false;
  Version read_version_min = 0;          // kGet: the version of the write that stored the value
  bool changed_version_matters = false;  // kRequireUnchanged that fails
  Version changed_version = 0;
};

class OracleState {
 public:
  explicit OracleState(const EngineTraits& traits) : traits_(traits) {}

  // Lets time pass; it never goes back.
  void Advance(uint64_t now_ms) { now_ms_ = std::max(now_ms_, now_ms); }
  uint64_t now_ms() const { return now_ms_; }

  // Number of present keys; number of keys including those past their deadline that are not
  // reclaimed.
  size_t live() const;
  size_t stored() const { return map_.size(); }
  void Reclaim();

  void Watch(uint64_t watch, std::string_view key, uint64_t now_ms);
  void Unwatch(uint64_t watch) { watches_.erase(watch); }

  // Performs the request of a slot, which is well-formed, with the choices of this outcome.
  Expected Perform(const Batch& batch, uint32_t slot);

 private:
  struct Stored {
    std::string value;
    uint8_t type = kPlainType;
    uint64_t deadline_ms = 0;  // 0: none
    Version version = 0;       // of the write that stored the value
  };
  struct Watched {
    std::string key;
    bool present = false;
    uint64_t deadline_ms = 0;
    bool touched = false;
    bool expired_before = false;  // whether the key had expired before the touch
    Version version = 0;          // of the first write since the watch
  };
  using Keys = std::vector<std::string>;
  // The version of a write to one key of a kExpireRange, which may have many.
  static constexpr Version kUnknown = 0;

  bool IsGone(uint64_t deadline_ms) const { return deadline_ms != 0 && deadline_ms <= now_ms_; }
  bool HasExpired(const Watched& watched) const {
    return watched.present && IsGone(watched.deadline_ms);
  }
  const Stored* Find(std::string_view key) const;
  Keys KeysIn(const Request& request) const;
  bool FitsWhen(const Request& request, const Stored* now) const;

  void Store(std::string_view key, Stored stored, Version at);
  void Erase(std::string_view key, Version at);
  void Touch(std::string_view key, Version at);

  Expected Point(const Request& request, const Outcome& outcome);
  static bool FitsType(const Request& request, const Stored& now);
  Verdict Judge(const Request& request, const Stored* now) const;
  bool StorePoint(const Request& request, const Stored* now, Version at);
  void Expire(std::string_view key, uint64_t deadline_ms, Version at);
  Expected Apply(const Request& request, const Outcome& outcome);
  Expected Move(const Request& request, const Outcome& outcome);
  Expected Scan(const Batch& batch, uint32_t slot) const;
  bool MayGoOnFrom(const Batch& batch, uint32_t slot) const;
  Expected Count(const Request& request, const Outcome& outcome) const;
  Expected DeleteRange(const Request& request, const Outcome& outcome);
  Expected ExpireRange(const Request& request, const Outcome& outcome);
  Expected ChangeFirst(Keys keys, const Request& request, const Outcome& outcome) const;
  Expected DeleteAll(const Outcome& outcome);
  Expected Sample(const Batch& batch, uint32_t slot) const;
  Expected Walk(const Batch& batch, uint32_t slot) const;
  Expected RequireEmpty(const Request& request) const;
  Expected RequireUnchanged(const Request& request) const;

  EngineTraits traits_;
  std::map<std::string, Stored, std::less<>> map_;
  std::map<uint64_t, Watched> watches_;
  uint64_t now_ms_ = 0;
};

}  // namespace skep
