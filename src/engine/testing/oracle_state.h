// oracle_state.h: one state of a keyspace as the oracle has it, and what each operation must say of
// it and make of it.
//
// Keys past their deadline are absent for every operation, but stay in the map until Reclaim() or
// until they are written anew: an engine may have reclaimed them already or not.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace skep {

// What a slot must say. Some of it depends on choices the engine has (where a count stops, which
// key is sampled): those are taken from its outcome and then checked.
struct Expected {
  Verdict verdict = Verdict::kDone;
  Code code = Code::kOk;  // kRefused: its status
  int64_t integer = 0;
  bool is_point = false;  // `present` and `deadline_ms` say something
  bool present = false;
  uint64_t deadline_ms = 0;
  bool value_matters = false;
  std::string value = {};
  bool items_matter = false;
  std::vector<std::pair<std::string, std::string>> items = {};
  bool must_say_more = false;
  bool may_say_more = false;
  bool wrong_bound = false;  // where a range says to go on loses or repeats keys
  bool wrote = false;
  Version read_version_min = 0;          // kGet: of the write that stored the value
  bool changed_version_matters = false;  // kRequireUnchanged that fails
  Version changed_version = 0;
};

class OracleState {
 public:
  explicit OracleState(const EngineTraits& traits) : traits_(traits) {}

  // Time passes, and never goes back.
  void Advance(uint64_t now_ms) { now_ms_ = std::max(now_ms_, now_ms); }
  uint64_t now_ms() const { return now_ms_; }

  // Keys that are there, and with them those that are past their deadline and not reclaimed.
  size_t live() const;
  size_t stored() const { return map_.size(); }
  void Reclaim();

  void Watch(uint64_t watch, std::string_view key, uint64_t now_ms);
  void Unwatch(uint64_t watch) { watches_.erase(watch); }

  // Performs the request of a slot, which is well-formed, as the engine has with this outcome.
  Expected Perform(const Batch& batch, uint32_t slot);

 private:
  struct Stored {
    std::string value;
    uint64_t deadline_ms = 0;  // 0: none
    Version version = 0;       // of the write that stored the value
  };
  struct Watched {
    std::string key;
    bool present = false;
    uint64_t deadline_ms = 0;
    bool touched = false;
    bool expired_before = false;  // the touch
    Version version = 0;          // of the first write since
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
