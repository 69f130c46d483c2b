// options.h: how a store is opened.
#pragma once

#include <cstdint>
#include <string>

namespace skep {

struct Options {
  // The index of every keyspace; EngineNames() (store.h) lists what this build has.
  std::string engine = "model";
  // Keyspaces are numbered 0 .. keyspaces-1; one that was never written costs nothing.
  uint32_t keyspaces = 16;
  // Bytes the store may hold, its indexes included; 0 is no limit. Over it, writes that store are
  // refused with kOutOfMemory; reads and deletes go on.
  uint64_t memory_bytes_max = 0;
  // A snapshot older than this is revoked: reads at it answer kSnapshotTooOld.
  uint64_t snapshot_age_ms_max = 5 * 60 * 1000;
};

}  // namespace skep
