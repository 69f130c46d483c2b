// aside_task.h: commands that look at the whole of values or collections (Command::kWhole), if
// these are large: they are run beside the worker (side_thread.h).
//
//   turn of the command   the lengths of its keys are read; if they are large, words and session
//                         are copied into a job, and the session gets the task
//   thread                the command is run as by a worker of its own, for a session of its own
//   a later turn          the reply is moved to the connection. It waits for the gates that the
//                         session of the job would wait for
//
// The command reads and writes behind all earlier ones of its connection, which are executed before
// it goes aside. A length that is no longer true does no harm: the command is then run by the
// worker though it is long, or beside it though it is not.
//
// Cost: a read of the record of each key.
//
// Thread safety: the owning worker only, but for the job (side_thread.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "server/server_call.h"
#include "server/session.h"
#include "server/side_thread.h"

namespace skep {

class AsideTask final : public Task {
 public:
  // The bytes of values and collections from which a command goes aside.
  static constexpr size_t kBytesMin = size_t{256} << 10;

  // Whether the command is to be run beside the worker.
  static bool Takes(const ServerCall& call);
  explicit AsideTask(const ServerCall& call);

  bool Step(const ServerCall& call) override;
  int patience_ms() const override { return SideThread::kPatienceMs; }
  uint64_t held_bytes() const override;

 private:
  class Job;

  const std::shared_ptr<Job> job_;
};

}  // namespace skep
