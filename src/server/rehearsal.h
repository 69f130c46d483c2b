// rehearsal.h: commands of a transaction done beforehand, on copies of the keys that they name.
//
// A command that makes its writes of what it reads (optimistic_write.h: BITOP, COPY, SORT and their
// kin) can only be planned once the commands before it have been done, and those of a transaction
// are done all together. So EXEC rehearses:
//
//   1. The requests that were planned so far (Perform), and then the command itself (Run), are
//      executed on an engine of this object's own. A key that they name is copied there the first
//      time, after a watch of it was begun in the session's keyspace.
//   2. The command's reply is kept, and the writes that it has made are planned in its place.
//   3. EXEC executes the whole batch on the condition that no copied key has changed (Require). If
//      one has, EXEC begins again with another rehearsal.
//
// Safety. At the instant of EXEC every copied key has the value that was copied, because its watch
// was begun before it was read. Both engines do the same requests, in the same parts, as of the
// same now; and what a request makes of a key depends on the keys that it names alone. So the
// command finds in the copies what it would find at its place in the transaction. Requests of which
// that is not true are writes of the first keys of a range, and the condition that a range is
// empty: no command is rehearsed behind one of them. A write of a whole range is noted, and done to
// a key that is copied later. If memory runs out while EXEC is executed, no part that stores is
// applied, so neither is what was made of a part that is missing.
// Progress. An attempt fails only because somebody else has written one of the keys.
//
// Cost: a copy of each value that is named, and each request is executed twice. At most kWatchesMax
// keys can be named. Commands are refused once the batches have looked at kAtomicWorkBytesMax, or
// copies and writes take AnswerBytesMax of the call.
//
// Thread safety: the owning worker only.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/forwarding_engine.h"
#include "server/server_call.h"

namespace skep {

class Rehearsal final : public ForwardingEngine {
 public:
  // `call` is that of EXEC, and must outlive the rehearsal.
  explicit Rehearsal(const ServerCall& call);
  ~Rehearsal() override;
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;

  // Executes the requests of the batch from the slot `from` on, where a part begins. If it returns
  // an error, nothing was executed: no command can be rehearsed behind these requests.
  Status Perform(const Batch& batch, uint32_t from);
  // Runs the command of the call, which has Command::kReadsFirst, and adds what it has written to
  // the batch; those requests are executed here already. Returns its reply. The added requests view
  // bytes that live as long as the rehearsal.
  std::string Run(const ServerCall& call, Batch& batch);
  // Adds the conditions that no copied key has changed; returns how many.
  uint32_t Require(Batch& batch) const;

  // The engine that the command sees.
  const EngineTraits& traits() const override { return real_.traits(); }
  Version Execute(Batch& batch) override;
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override;

 private:
  Status Limit() const;
  Status CopyKeys(const Batch& batch);
  Status CopyKeys(std::vector<std::string_view> keys);
  Status ReadCopies(std::span<const std::string_view> keys);
  void DoRanges(std::string_view key);
  void ExecuteHere(Batch& batch);
  Request Kept(Request request);

  const ServerCall& call_;
  Engine& real_;
  const size_t collection_bytes_max_;
  std::map<std::string, uint64_t, std::less<>> watches_;  // of the copied keys
  size_t kept_bytes_ = 0;                                 // of copies, and of requests
  uint64_t work_bytes_ = 0;                               // of all batches that were executed here
  std::vector<Request> ranges_;                           // writes of whole ranges so far
  bool is_exact_ = true;         // the outcome of every request depends on the keys that it names
  std::vector<Request> writes_;  // of the command that runs
  Scratch scratch_;
};

}  // namespace skep
