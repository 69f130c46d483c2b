#include "tools/cli/session.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "base/ascii.h"
#include "tools/cli/resp_session.h"
#include "tools/cli/store_session.h"

namespace skep::cli {
namespace {

std::atomic<ServerClient*> interrupted_client{nullptr};
static_assert(std::atomic<ServerClient*>::is_always_lock_free);

void OnInterrupt(int) {
  if (ServerClient* const client = interrupted_client.load()) client->Interrupt();
}

}  // namespace

InterruptScope::InterruptScope(Session& session) : is_on_(session.interruptible() != nullptr) {
  if (!is_on_) return;
  interrupted_client = session.interruptible();
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  action.sa_flags = SA_RESTART;  // writes to the terminal are not interrupted
  sigaction(SIGINT, &action, &before_);
}

InterruptScope::~InterruptScope() {
  if (!is_on_) return;
  sigaction(SIGINT, &before_, nullptr);
  Forget();
}

void InterruptScope::Forget() { interrupted_client = nullptr; }

std::unique_ptr<Session> MakeSession(const SessionOptions& options, OnPush on_push) {
  if (options.packed) return std::make_unique<StoreSession>(options);
  return std::make_unique<RespSession>(options, std::move(on_push));
}

bool Session::IsStream(std::string_view command) {
  return EqualsIgnoringCase(command, "monitor") || EqualsIgnoringCase(command, "subscribe") ||
         EqualsIgnoringCase(command, "psubscribe") || EqualsIgnoringCase(command, "ssubscribe");
}

std::string PromptOf(const Session& session, bool is_connected, uint64_t keyspace,
                     std::string_view mark) {
  if (!is_connected) return "not connected> ";
  std::string prompt = session.address();
  if (keyspace != 0) prompt += fmt::format("[{}]", keyspace);
  return fmt::format("{}{}{}> ", prompt, mark, session.in_transaction() ? "(TX)" : "");
}

}  // namespace skep::cli
