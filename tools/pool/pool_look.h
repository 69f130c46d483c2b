// pool_look.h: who is there in a pool, and what each of its servers says, for skep-pool ctl.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pool/connected_pool.h"
#include "pool/map_watch.h"
#include "pool/messages.h"
#include "skep/options.h"
#include "tools/pool/pool_probe.h"

namespace skep {

// One server.
struct PoolRow {
  std::string role;
  uint32_t id = 0;
  bool answers = false;
  Address address;
  // Of a memory server: how many chunks of 2 MiB it has room for, and how many of these are free;
  // and what it is in the pool. Nothing: nobody has told.
  std::optional<uint64_t> chunks = {};
  std::optional<uint64_t> free_chunks = {};
  std::string standing = {};
};

struct PoolFindings {
  pool::PoolMap map;
  std::vector<PoolRow> rows;
  std::optional<pool::PoolStatus> status;  // of the hash server; nothing: it has not told all

  // The memory server of this number, of which the hash server has told. Null: there is none.
  const PoolRow* FindMemoryServer(uint32_t id) const;
};

// Thread safety: one owner.
class PoolLook {
 public:
  // On an error *problem is a line for a person.
  static Result<std::unique_ptr<PoolLook>> Open(const PoolOptions& pool, std::string* problem);

  // Asks each server that there is now, for a second each.
  PoolFindings Look();
  // Has the hash server drain a memory server. False: it refuses. Nothing: it does not answer, or
  // cannot tell now.
  std::optional<bool> AskToDrain(uint32_t id);

 private:
  PoolLook(const PoolOptions& pool, pool::PoolSurroundings around);
  void AskIndexServers(PoolFindings& findings);
  void AskMemoryServers(PoolFindings& findings);
  bool AskHashServer(PoolFindings& findings);
  std::optional<std::string> AskHashServer(const pool::PoolMap& map, std::string_view request);

  const pool::PoolSurroundings around_;
  pool::MapWatch watch_;
  std::unique_ptr<PoolProbe> probe_;
};

}  // namespace skep
