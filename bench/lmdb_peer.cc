// The peer LMDB, in a file on tmpfs (/dev/shm) that is unlinked once it is open: it is mapped for
// writing, never synced, and gone with the process. The map asks for huge pages, which the system
// gives only where tmpfs has them (shmem_enabled).
//
// A batch is one transaction, read-only unless it writes.
#include <fcntl.h>
#include <lmdb.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "bench/loop_target.h"

namespace skep::bench {
namespace {

constexpr unsigned kReadersMax = 126;

MDB_val ValueOf(std::string_view bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};  // LMDB only reads them
}

std::string_view ViewOf(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

struct CloseEnv {
  void operator()(MDB_env* env) const { mdb_env_close(env); }
};
using Env = std::unique_ptr<MDB_env, CloseEnv>;

class LmdbIndex {
 public:
  class Access;

  static Result<std::unique_ptr<LmdbIndex>> Open(const PeerSetup& setup) {
    MDB_env* made = nullptr;
    if (mdb_env_create(&made) != MDB_SUCCESS) return Fail(Code::kIo, "LMDB has no memory");
    auto index = std::make_unique<LmdbIndex>();
    index->env_.reset(made);
    if (static_cast<int>(setup.key_bytes) > mdb_env_get_maxkeysize(made)) {
      return Fail(Code::kNotSupported, "keys are of 511 bytes at most");
    }
    if (!index->OpenFile(CapacityOf(setup)) || !index->OpenTree()) {
      return Fail(Code::kIo, "LMDB has no file in /dev/shm");
    }
    return index;
  }

  Access access();
  std::optional<uint64_t> HeldBytes() const {
    MDB_envinfo info;
    MDB_stat stat;
    if (mdb_env_info(env_.get(), &info) != 0 || mdb_env_stat(env_.get(), &stat) != 0) return {};
    return (info.me_last_pgno + 1) * stat.ms_psize;
  }
  uint64_t size() const {
    MDB_stat stat;
    return mdb_env_stat(env_.get(), &stat) == 0 ? stat.ms_entries : 0;
  }

 private:
  // This reserves address space only: several times what half-empty pages take.
  static size_t CapacityOf(const PeerSetup& setup) {
    constexpr size_t kBase = size_t{1} << 30;
    return kBase + setup.items_max * (setup.key_bytes + setup.values.value_bytes() + 16) * 8;
  }

  bool OpenFile(size_t capacity) {
    std::string path = "/dev/shm/skep-bench-XXXXXX";
    const int file = mkstemp(path.data());
    if (file < 0) return false;
    close(file);
    mdb_env_set_mapsize(env_.get(), capacity);
    mdb_env_set_maxreaders(env_.get(), kReadersMax);
    const unsigned flags = MDB_NOSUBDIR | MDB_WRITEMAP | MDB_NOSYNC | MDB_NOTLS | MDB_NORDAHEAD;
    const bool opened = mdb_env_open(env_.get(), path.c_str(), flags, S_IRUSR | S_IWUSR) == 0;
    unlink(path.c_str());
    unlink((path + "-lock").c_str());
    MDB_envinfo info;
    if (!opened || mdb_env_info(env_.get(), &info) != 0) return false;
    // If the system refuses, the pages stay small.
    (void)madvise(info.me_mapaddr, info.me_mapsize, MADV_HUGEPAGE);
    return true;
  }

  bool OpenTree() {
    MDB_txn* transaction = nullptr;
    if (mdb_txn_begin(env_.get(), nullptr, 0, &transaction) != 0) return false;
    if (mdb_dbi_open(transaction, nullptr, 0, &tree_) == 0) return mdb_txn_commit(transaction) == 0;
    mdb_txn_abort(transaction);
    return false;
  }

  Env env_;
  MDB_dbi tree_ = 0;
};

class LmdbIndex::Access {
 public:
  Access(MDB_env* env, MDB_dbi tree) : env_(env), tree_(tree) {}
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
  ~Access() {
    if (reading_ != nullptr) mdb_txn_abort(reading_);
  }

  bool BeginBatch(bool writes) {
    if (writes) return mdb_txn_begin(env_, nullptr, 0, &at_) == 0;
    const int begun = reading_ == nullptr ? mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reading_)
                                          : mdb_txn_renew(reading_);
    at_ = reading_;
    return begun == 0;
  }
  bool EndBatch() {
    if (cursor_ != nullptr) mdb_cursor_close(cursor_);
    cursor_ = nullptr;
    if (at_ != reading_) return mdb_txn_commit(at_) == 0;
    mdb_txn_reset(reading_);
    return true;
  }

  template <typename Use>
  bool Read(std::string_view key, Use use) {
    MDB_val name = ValueOf(key);
    MDB_val value;
    if (mdb_get(at_, tree_, &name, &value) != 0) return false;
    use(ViewOf(value));
    return true;
  }
  bool Insert(std::string_view key, std::string_view value) {
    return Put(key, value, MDB_NOOVERWRITE);
  }
  bool Update(std::string_view key, std::string_view value) { return Put(key, value, 0); }
  bool Delete(std::string_view key) {
    MDB_val name = ValueOf(key);
    return mdb_del(at_, tree_, &name, nullptr) == 0;
  }
  template <typename Use>
  bool Scan(std::string_view key, uint32_t items, Use use) {
    if (cursor_ == nullptr && mdb_cursor_open(at_, tree_, &cursor_) != 0) return false;
    MDB_val name = ValueOf(key);
    MDB_val value;
    int found = mdb_cursor_get(cursor_, &name, &value, MDB_SET_RANGE);
    for (; items > 0 && found == 0; --items) {
      use(ViewOf(name), ViewOf(value));
      found = mdb_cursor_get(cursor_, &name, &value, MDB_NEXT);
    }
    return found == 0 || found == MDB_NOTFOUND;
  }

 private:
  bool Put(std::string_view key, std::string_view value, unsigned flags) {
    MDB_val name = ValueOf(key);
    MDB_val stored = ValueOf(value);
    return mdb_put(at_, tree_, &name, &stored, flags) == 0;
  }

  MDB_env* const env_;
  const MDB_dbi tree_;
  MDB_txn* reading_ = nullptr;  // kept from batch to batch
  MDB_txn* at_ = nullptr;       // the batch's
  MDB_cursor* cursor_ = nullptr;
};

LmdbIndex::Access LmdbIndex::access() { return {env_.get(), tree_}; }

}  // namespace

Result<std::unique_ptr<YcsbTarget>> OpenLmdb(const PeerSetup& setup) {
  return LoopTarget<LmdbIndex>::Open(setup);
}

}  // namespace skep::bench
