// aside_task.h: commands that are run beside the worker (side_thread.h):
//
//   - those that look at the whole of values or collections (Command::kWhole), if these are large
//   - those that store what their words bring, if that is much
//   - those whose requests act as one, and EXEC, if the engine leaves their batch out because it
//     would take long or would wait for what does (collection_engine.h)
//   - EXEC, if its words are much, or one of its commands would go aside by itself
//
//   turn of the command   the lengths of the keys of a kWhole command are read; if it goes aside,
//                         words and session go into a job, and the session gets the task. Words of
//                         kWordsBytesMin are not copied: the job takes the input they lie in
//   thread                the command is run as by a worker of its own, for a session of its own
//   a later turn          the reply is moved to the connection. It waits for the gates that the
//                         session of the job would wait for
//
// CLIENT PAUSE. A job that the thread begins while its command has to wait is not run: its task
// posts it again when the pause is over. So a pause holds no job but those that it is for.
//
// The command reads and writes behind all earlier ones of its connection, which are executed before
// it goes aside. A transaction goes with its watches: they are judged where it is executed. A
// length that is no longer true does no harm: the command is then run by the worker though it is
// long, or beside it though it is not.
//
// Cost: for a kWhole command a read of the record of each key.
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
  // The bytes of values and collections, or of the words of a transaction, from which a command
  // goes aside.
  static constexpr size_t kBytesMin = size_t{256} << 10;
  // The bytes of its words from which a command that stores them does.
  static constexpr size_t kWordsBytesMin = size_t{1} << 20;

  // Whether the command is to be run beside the worker; or EXEC, with these commands.
  static bool Takes(const ServerCall& call);
  static bool Takes(const ServerCall& call, Transaction& transaction);
  // `transaction`: of a call of EXEC. Nothing that is not executed yet may view the session's input
  // but the words of the call.
  explicit AsideTask(const ServerCall& call, std::unique_ptr<Transaction> transaction = nullptr);

  bool Step(const ServerCall& call) override;
  int patience_ms() const override { return SideThread::kPatienceMs; }
  uint64_t held_bytes() const override;
  bool waits_for_reader() const override { return false; }
  bool tells_monitors() const override;

 private:
  class Job;

  static bool AreLong(const ServerCall& call, size_t bytes);

  const std::shared_ptr<Job> job_;
};

}  // namespace skep
