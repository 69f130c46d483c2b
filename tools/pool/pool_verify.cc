// What skep-pool ctl verify does: each key that a scan shows is looked up by its hash, too.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "pool/connected_pool.h"
#include "tools/pool/pool_commands.h"

namespace skep {
namespace {

constexpr uint32_t kPageItems = 1000;
constexpr size_t kPageBytes = 16 << 20;
// Others write meanwhile: a difference counts if it is seen in so many of so many looks.
constexpr int kLooks = 20;
constexpr int kDifferencesMin = 5;

struct Report {
  uint64_t items = 0;
  uint64_t different = 0;          // keys with which scan and GET do not agree
  bool counts_differ = false;      // the indexes have different numbers of keys
  std::vector<std::string> first;  // some of the keys
  Status status;                   // of what could not be asked
};

struct Pair {
  std::string key;
  std::string value;
};

class Verifier {
 public:
  explicit Verifier(Engine& pool) : pool_(pool) {}

  Report Run() {
    std::string next;
    for (bool more = true; more && report_.status.ok();) more = VerifyPage(&next);
    if (report_.status.ok()) CompareCounts();
    return std::move(report_);
  }

 private:
  // False: the request of this slot was refused.
  bool IsGood(const Batch& batch, uint32_t slot) {
    const Outcome& outcome = batch.outcome(slot);
    if (outcome.verdict == Verdict::kRefused) report_.status = outcome.status;
    return outcome.verdict != Verdict::kRefused;
  }

  // Up to `limit` items from `lo` on, and where to go on; nothing: it was refused.
  std::optional<std::vector<Pair>> Scan(std::string_view lo, uint32_t limit, std::string* next) {
    Batch batch;
    batch.set_scan_bytes_max(kPageBytes);
    const uint32_t slot = batch.Scan(Range::From(lo), {.limit = limit});
    pool_.Execute(batch);
    if (!IsGood(batch, slot)) return std::nullopt;
    std::vector<Pair> pairs;
    for (const Item& item : batch.items(slot)) {
      pairs.push_back({std::string(item.key), std::string(item.value)});
    }
    if (next != nullptr) {
      const bool more = batch.outcome(slot).more;
      *next = more ? std::string(batch.outcome(slot).value) : std::string();
    }
    return pairs;
  }

  // Whether there may be more; `*next` is the key from which on.
  bool VerifyPage(std::string* next) {
    std::string after;
    const auto pairs = Scan(*next, kPageItems, &after);
    if (!pairs) return false;
    Batch gets;
    for (const Pair& pair : *pairs) gets.Get(pair.key);
    if (!pairs->empty()) pool_.Execute(gets);
    for (uint32_t i = 0; i < pairs->size(); ++i) {
      if (!IsGood(gets, i)) return false;
      const Outcome& got = gets.outcome(i);
      const bool is_same = got.verdict == Verdict::kDone && got.value == (*pairs)[i].value;
      if (!is_same && !AgreesNow((*pairs)[i].key)) NoteDifference((*pairs)[i].key);
    }
    report_.items += pairs->size();
    *next = after;
    return !after.empty();
  }

  // The value; nothing: there is none, or it was refused.
  std::optional<std::string> Get(const std::string& key) {
    Batch get;
    get.Get(key);
    pool_.Execute(get);
    if (!IsGood(get, 0) || get.outcome(0).verdict != Verdict::kDone) return std::nullopt;
    return std::string(get.outcome(0).value);
  }

  // A scan between two GETs that agree has to agree with them. While others write the key they
  // seldom do: then it counts as good.
  bool AgreesNow(const std::string& key) {
    int different = 0;
    for (int look = 0; look < kLooks && report_.status.ok(); ++look) {
      const auto before = Get(key);
      const auto pairs = Scan(key, 1, nullptr);
      const auto after = Get(key);
      if (!pairs || before != after) continue;
      const bool is_scanned = !pairs->empty() && pairs->front().key == key;
      if (is_scanned == before.has_value() && (!is_scanned || pairs->front().value == *before)) {
        return true;
      }
      ++different;
    }
    return different < kDifferencesMin;
  }

  void NoteDifference(const std::string& key) {
    constexpr size_t kNamed = 10;
    ++report_.different;
    if (report_.first.size() < kNamed) report_.first.push_back(key);
  }

  // The hash index's number of keys is known by the statistics, the sorted one's by counting. While
  // others add and delete, nothing can be said.
  void CompareCounts() {
    int different = 0;
    for (int look = 0; look < kLooks; ++look) {
      const uint64_t before = pool_.Statistics().items;
      Batch count;
      const uint32_t slot = count.Count(Range::All());
      pool_.Execute(count);
      if (!IsGood(count, slot)) return;
      const uint64_t after = pool_.Statistics().items;
      if (static_cast<uint64_t>(count.outcome(slot).integer) == before) return;
      if (before == after && before != 0) ++different;
    }
    report_.counts_differ = different >= kDifferencesMin;
  }

  Engine& pool_;
  Report report_;
};

void Print(const PoolLookOptions& options, const Report& report) {
  const bool is_good = report.different == 0 && !report.counts_differ;
  if (options.as_json) {
    nlohmann::ordered_json json = {{"pool", options.pool.name},
                                   {"items", report.items},
                                   {"different", report.different},
                                   {"counts_differ", report.counts_differ},
                                   {"keys", report.first}};
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  fmt::print("{} items read: {}\n", report.items,
             is_good ? "both indexes and all checksums agree" : "NOT GOOD");
  if (report.different > 0) fmt::print("{} keys differ between scan and GET:\n", report.different);
  for (const std::string& key : report.first) fmt::print("  {:?}\n", key);
  if (report.counts_differ) fmt::print("the two indexes have different numbers of keys\n");
}

}  // namespace

int VerifyPool(const PoolLookOptions& options) {
  std::string problem;
  auto pool = pool::ConnectPool(options.pool, &problem);
  const Status opened = pool ? Status() : pool.error();
  const Report report = pool ? Verifier(**pool).Run() : Report{.status = opened};
  if (!report.status.ok()) {
    fmt::print(stderr, "skep-pool: {}\n", problem.empty() ? report.status.ToString() : problem);
    return 1;
  }
  Print(options, report);
  return report.different == 0 && !report.counts_differ ? 0 : 1;
}

}  // namespace skep
