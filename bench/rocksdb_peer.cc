// The peer RocksDB as a purely in-memory index: the file system is in memory too, there is no
// write-ahead log, and everything stays in one skip list, which is never flushed. Values are
// changed in place.
//
// Consecutive writes of a batch are one WriteBatch. RocksDB does not say whether a key existed; a
// deletion leaves a tombstone in the list.
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <memory>

#include "bench/loop_target.h"

namespace skep::bench {
namespace {

rocksdb::Slice SliceOf(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

rocksdb::Options MemoryOnly(rocksdb::Env* env) {
  rocksdb::Options options;
  options.env = env;
  options.create_if_missing = true;
  options.write_buffer_size = size_t{1} << 40;  // never full
  options.arena_block_size = size_t{32} << 20;  // so that malloc may put it on huge pages
  options.inplace_update_support = true;
  options.allow_concurrent_memtable_write = false;  // not with updates in place
  options.avoid_flush_during_shutdown = true;
  options.disable_auto_compactions = true;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.info_log_level = rocksdb::FATAL_LEVEL;
  return options;
}

class RocksdbIndex {
 public:
  class Access;

  static Result<std::unique_ptr<RocksdbIndex>> Open(const PeerSetup&) {
    auto index = std::make_unique<RocksdbIndex>();
    index->env_.reset(rocksdb::NewMemEnv(rocksdb::Env::Default()));
    rocksdb::DB* db = nullptr;
    if (!rocksdb::DB::Open(MemoryOnly(index->env_.get()), "/skep-bench", &db).ok()) {
      return Fail(Code::kIo, "RocksDB did not open");
    }
    index->db_.reset(db);
    return index;
  }

  Access access();
  std::optional<uint64_t> HeldBytes() const {
    uint64_t bytes = 0;
    if (!db_->GetIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &bytes)) return {};
    return bytes;
  }
  uint64_t size() const { return items_.load(std::memory_order_relaxed); }

 private:
  std::unique_ptr<rocksdb::Env> env_;  // must outlive the database
  std::unique_ptr<rocksdb::DB> db_;
  std::atomic<uint64_t> items_{0};  // as counted by the sessions
};

class RocksdbIndex::Access {
 public:
  Access(rocksdb::DB& db, std::atomic<uint64_t>& items) : db_(db), items_(items) {
    write_.disableWAL = true;
  }

  bool BeginBatch(bool) { return true; }
  bool EndBatch() {
    iterator_.reset();  // it pins the memory that it has seen
    return Flush();
  }

  template <typename Use>
  bool Read(std::string_view key, Use use) {
    if (!Flush()) return false;
    value_.Reset();
    if (!db_.Get(read_, db_.DefaultColumnFamily(), SliceOf(key), &value_).ok()) return false;
    use({value_.data(), value_.size()});
    return true;
  }
  bool Insert(std::string_view key, std::string_view value) {
    ++added_;
    return Update(key, value);
  }
  bool Update(std::string_view key, std::string_view value) {
    return pending_.Put(SliceOf(key), SliceOf(value)).ok();
  }
  bool Delete(std::string_view key) {
    --added_;
    return pending_.Delete(SliceOf(key)).ok();
  }
  template <typename Use>
  bool Scan(std::string_view key, uint32_t items, Use use) {
    if (!Flush()) return false;
    if (iterator_ == nullptr) iterator_.reset(db_.NewIterator(read_));
    for (iterator_->Seek(SliceOf(key)); items > 0 && iterator_->Valid(); iterator_->Next()) {
      const rocksdb::Slice at = iterator_->key();
      const rocksdb::Slice value = iterator_->value();
      use({at.data(), at.size()}, {value.data(), value.size()});
      --items;
    }
    return iterator_->status().ok();
  }

 private:
  // Writes pending changes, so that reads see them.
  bool Flush() {
    if (pending_.Count() == 0) return true;
    iterator_.reset();
    const bool done = db_.Write(write_, &pending_).ok();
    pending_.Clear();
    items_.fetch_add(static_cast<uint64_t>(added_), std::memory_order_relaxed);
    added_ = 0;
    return done;
  }

  rocksdb::DB& db_;
  std::atomic<uint64_t>& items_;
  rocksdb::ReadOptions read_;
  rocksdb::WriteOptions write_;
  rocksdb::WriteBatch pending_;
  rocksdb::PinnableSlice value_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
  int64_t added_ = 0;  // keys, by pending changes
};

RocksdbIndex::Access RocksdbIndex::access() { return {*db_, items_}; }

}  // namespace

Result<std::unique_ptr<YcsbTarget>> OpenRocksdb(const PeerSetup& setup) {
  return LoopTarget<RocksdbIndex>::Open(setup);
}

}  // namespace skep::bench
