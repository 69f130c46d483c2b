#include "tools/cli/store_peer.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "tools/cli/store_link.h"
#include "tools/cli/store_pipeline.h"
#include "tools/dump_writer.h"

namespace skep::cli {
namespace {

constexpr uint32_t kChunkItems = 256;
constexpr size_t kChunkBytes = 1 << 20;

class StoreExporter {
 public:
  StoreExporter(Store& store, const ExportOptions& options, const DumpTarget& target,
                ExportSummary* summary)
      : store_(store), options_(options), summary_(*summary), writer_(options, target, summary) {}

  std::string Run() {
    if (!HasKeyspace(store_, options_.db)) return std::string(kNoSuchKeyspace);
    keyspace_ = static_cast<uint32_t>(options_.db);
    const Status s = HasOrder() ? ReadRange() : status_.ok() ? ReadAll() : status_;
    if (!s.ok()) return s.ToString();
    writer_.Flush();
    return {};
  }

 private:
  // Returns whether the keyspace has an order; false with a status: that could not be found out.
  bool HasOrder() {
    Batch batch;
    batch.Scan(Range::All(), {.limit = 1, .keys_only = true});
    status_ = Execute(batch);
    if (status_.code() != Code::kNotSupported) return status_.ok();
    status_ = {};
    return false;
  }

  // Executes a batch whose slots all succeed or fail together. Returns the status of the first one.
  Status Execute(Batch& batch) {
    if (const Status s = store_.Execute(batch, keyspace_); !s.ok() || batch.empty()) return s;
    const Outcome& out = batch.outcome(0);
    return out.verdict == Verdict::kRefused ? out.status : Status();
  }

  // Reads a range, at one version if the keyspace has snapshots. A scan does not return deadlines:
  // they are read at the same version, or together with the value.
  Status ReadRange() {
    auto at = store_.TakeSnapshot(keyspace_);
    if (!at && at.error().code() != Code::kNotSupported) return at.error();
    const SnapshotRef version = at ? at->ref() : SnapshotRef();
    summary_.is_one_version = at.has_value();
    Scratch scratch;
    Range left =
        options_.to ? Range::Between(options_.from, *options_.to) : Range::From(options_.from);
    if (options_.prefix) left = PrefixRange(*options_.prefix, scratch);
    std::string lo(left.lo);
    for (bool more = true; more;) {
      left.lo = lo;
      Batch items;
      items.set_snapshot(version);
      items.set_scan_bytes_max(kChunkBytes);
      items.Scan(left, {.limit = kChunkItems});
      if (const Status s = Execute(items); !s.ok()) return s;
      Batch looks;
      looks.set_snapshot(version);
      for (const Item& item : items.items(0)) AddLook(looks, item.key, at ? Request::kNoValue : 0);
      if (const Status s = Execute(looks); !s.ok()) return s;
      uint32_t slot = 0;
      for (const Item& item : items.items(0)) {
        const Outcome& look = looks.outcome(slot++);
        const DumpItem now = {.key = item.key,
                              .value = at ? item.value : look.value,
                              .deadline_ms = look.deadline_ms};
        if (look.present && !writer_.Write(now)) return {};
      }
      more = items.outcome(0).more;
      lo.assign(items.outcome(0).value);
    }
    return {};
  }

  // Reads key by key: a key's value and deadline are of one instant.
  Status ReadAll() {
    uint64_t cursor = 0;
    do {
      Batch walk;
      walk.Walk(cursor, {.limit = kChunkItems, .keys_only = true});
      if (const Status s = Execute(walk); !s.ok()) return s;
      Batch looks;
      for (const Item& item : walk.items(0)) {
        if (writer_.IsWanted(item.key)) AddLook(looks, item.key, 0);
      }
      if (const Status s = Execute(looks); !s.ok()) return s;
      for (uint32_t slot = 0; slot < looks.size(); ++slot) {
        const Outcome& out = looks.outcome(slot);
        if (out.verdict == Verdict::kRefused) return out.status;
        const DumpItem item = {
            .key = looks.requests()[slot].key, .value = out.value, .deadline_ms = out.deadline_ms};
        if (out.present && !writer_.Write(item)) return {};
      }
      cursor = static_cast<uint64_t>(walk.outcome(0).integer);
    } while (cursor != 0);
    return {};
  }

  static void AddLook(Batch& batch, std::string_view key, uint8_t flags) {
    batch.Add({.op = Op::kGet, .flags = flags, .key = key, .other = {}});
  }

  Store& store_;
  const ExportOptions& options_;
  ExportSummary& summary_;
  DumpWriter writer_;
  uint32_t keyspace_ = 0;
  Status status_;
};

class StorePeer final : public DumpPeer {
 public:
  explicit StorePeer(std::unique_ptr<Store> store) : store_(std::move(store)), pipeline_(*store_) {}

  std::string Export(const ExportOptions& options, const DumpTarget& target,
                     ExportSummary* summary) override {
    return StoreExporter(*store_, options, target, summary).Run();
  }
  CommandPipeline& pipeline() override { return pipeline_; }

 private:
  const std::unique_ptr<Store> store_;
  StorePipeline pipeline_;
};

}  // namespace

std::unique_ptr<DumpPeer> ConnectStorePeer(const ServerAddress& server, std::string* problem) {
  auto store = ConnectStore(server, problem);
  return store ? std::make_unique<StorePeer>(std::move(store)) : nullptr;
}

}  // namespace skep::cli
