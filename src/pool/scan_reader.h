// scan_reader.h: SCANs and COUNTs: slots from the sorted server, items from the memory servers, and
// rule A (pool_engine.h has it, and the argument).
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/batch_writer.h"
#include "pool/client_session.h"
#include "pool/lookup.h"

namespace skep::pool {

class ScanReader {
 public:
  // Reads at most `window` items side by side.
  ScanReader(ClientSession& session, ItemFinder& finder, uint32_t window)
      : session_(session), finder_(finder), window_(window) {}

  // A kScan or kCount of a batch. Refused with kUnavailable if it has not come about by the
  // session's deadline, and with kCorrupt if an item of it was lost with its memory server.
  void Run(const Batch& batch, uint32_t slot, BatchWriter& out);

 private:
  // Whether the word tells that the scan's state is the hash server's, too.
  enum class Applied : uint8_t { kYes, kNotYet, kOtherEpoch };

  // How long one try may take: see "A scan's items" in pool_engine.h.
  uint64_t TryNsMax() const { return 256 * session_.times().read_ns_max; }
  bool Ask(const Batch& batch, const Request& request);
  // False: it is to be made again.
  bool Try(const Batch& batch, uint32_t slot, BatchWriter& out);
  bool AddItems(const Batch& batch, uint32_t slot, BatchWriter& out);
  bool AddWindow(const Batch& batch, uint32_t slot, std::span<const Slot> slots, BatchWriter& out);
  void StopAfter(const Request& request, std::string_view key, Outcome& outcome, BatchWriter& out);
  // How many of these slots' items are read side by side.
  size_t WindowOf(std::span<const Slot> slots) const;
  Applied IsApplied(uint64_t word) const;
  bool AwaitApplied();

  ClientSession& session_;
  ItemFinder& finder_;
  const uint32_t window_;
  // Of the present try.
  std::string bytes_;  // the reply
  uint64_t epoch_ = 0;
  uint64_t applied_ = 0;  // R
  uint64_t count_ = 0;
  bool more_ = false;
  std::string next_;
  std::vector<Slot> slots_;
  size_t item_bytes_ = 0;  // of those that were added
  bool is_full_ = false;
  std::vector<std::optional<ItemView>> items_;
  std::vector<bool> lost_;
  bool has_lost_ = false;  // an item that is wanted
};

}  // namespace skep::pool
