// Commands about the data in the directory.
#include <fmt/format.h>

#include "server/commands.h"
#include "server/server_call.h"

namespace skep::commands {
namespace {

constexpr std::string_view kNoDirectory =
    "ERR the data are in memory only: start the server with --dir";

// Replies when the snapshot that was asked for has been written.
class SaveTask final : public Task {
 public:
  explicit SaveTask(uint64_t finished) : finished_(finished) {}

  bool Step(const ServerCall& call) override {
    const auto snapshots = call.administration().persistence()->saver().statistics();
    if (snapshots.finished == finished_) return true;
    if (snapshots.last_status.ok()) {
      call.reply().SimpleString("OK");
    } else {
      call.Error(fmt::format("ERR the snapshot failed: {}", snapshots.last_status.ToString()));
    }
    return false;
  }
  int patience_ms() const override { return 5; }

 private:
  const uint64_t finished_;  // snapshots finished when the task was made
};

}  // namespace

void RunSave(const ServerCall& call) {
  durable::Persistence* const persistence = call.administration().persistence();
  if (persistence == nullptr) return call.Error(kNoDirectory);
  const uint64_t finished = persistence->saver().statistics().finished;
  if (!persistence->saver().Request()) return call.Error("ERR Background save already in progress");
  call.Start(std::make_unique<SaveTask>(finished));
}

void RunBgSave(const ServerCall& call) {
  durable::Persistence* const persistence = call.administration().persistence();
  const bool schedules = call.args().size() == 2 && EqualsIgnoringCase(call.arg(1), "schedule");
  if (call.args().size() > 1 && !schedules) return call.Error(kSyntaxError);
  if (persistence == nullptr) return call.Error(kNoDirectory);
  if (!persistence->saver().Request()) return call.Error("ERR Background save already in progress");
  call.reply().SimpleString("Background saving started");
}

// A log is shortened by snapshots.
void RunBgRewriteAof(const ServerCall& call) {
  durable::Persistence* const persistence = call.administration().persistence();
  if (persistence == nullptr) return call.Error(kNoDirectory);
  if (!persistence->saver().Request()) {
    return call.Error("ERR Background append only file rewriting already in progress");
  }
  call.reply().SimpleString("Background append only file rewriting started");
}

void FinishLastSave(const ServerCall& call, const Batch&, uint32_t) {
  durable::Persistence* const persistence = call.administration().persistence();
  const uint64_t last_ms = persistence == nullptr ? 0 : persistence->saver().statistics().last_ms;
  // As in Redis, a server that has saved nothing tells when it was started.
  const uint64_t last_s = last_ms == 0 ? call.state().start_unix_s() : last_ms / 1000;
  call.reply().Integer(static_cast<int64_t>(last_s));
}

}  // namespace skep::commands
