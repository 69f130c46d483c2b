#include "tools/cli/session.h"

#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <utility>

#include "base/ascii.h"
#include "base/decimal.h"

namespace skep::cli {
namespace {

std::atomic<ServerClient*> interruptible{nullptr};
static_assert(std::atomic<ServerClient*>::is_always_lock_free);

void OnInterrupt(int) {
  if (ServerClient* const client = interruptible.load()) client->Interrupt();
}

bool IsOk(const RespReply& reply) {
  return reply.type == RespReply::Type::kSimple && reply.text == "OK";
}

bool EndsWithIgnoringCase(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         EqualsIgnoringCase(text.substr(text.size() - end.size()), end);
}

}  // namespace

InterruptScope::InterruptScope(Session& session) {
  interruptible = session.client_.get();
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  action.sa_flags = SA_RESTART;  // what is being printed is not cut
  sigaction(SIGINT, &action, &before_);
}

InterruptScope::~InterruptScope() {
  sigaction(SIGINT, &before_, nullptr);
  interruptible = nullptr;
}

bool Session::Connect(std::string* problem) {
  client_ = nullptr;
  in_transaction_ = false;
  asked_docs_ = false;
  auto client = ServerClient::Connect(options_.server, problem);
  if (!client) return false;
  client_ = std::move(*client);
  if (SetUp(problem)) {
    client_->set_patience_ms(-1);
    return true;
  }
  *problem = fmt::format("{}: {}", address(), *problem);
  client_ = nullptr;
  return false;
}

bool Session::SetUp(std::string* problem) {
  is_set_up_ = true;
  const auto call = [&](std::initializer_list<std::string_view> args) {
    const auto reply = client_->Call(args);
    if (reply && !reply->is_error()) return true;
    // One who has no password yet may still type it.
    is_set_up_ = false;
    *problem = reply ? reply->text : reply.error().ToString();
    return reply && reply->text.starts_with("NOAUTH");
  };
  if (options_.resp3 && !call({"HELLO", "3"})) return false;
  return options_.keyspace == 0 || call({"SELECT", std::to_string(options_.keyspace)});
}

Result<RespReply> Session::Run(std::span<const std::string_view> args) {
  client_->ForgetInterrupt();  // one that came behind the last reply
  client_->Send(args);
  // RESP3 answers these with pushes.
  const bool is_pushed = EndsWithIgnoringCase(args[0], "subscribe");
  for (;;) {
    auto reply = Receive();
    if (!reply) return reply;
    if (reply->type == RespReply::Type::kPush && !is_pushed) {
      on_push_(*reply);
      continue;
    }
    Note(args, *reply);
    return reply;
  }
}

Result<RespReply> Session::Next() { return Receive(); }

Result<RespReply> Session::Receive() {
  auto reply = client_->Receive();
  if (!reply) {
    interruptible = nullptr;
    client_ = nullptr;
  }
  return reply;
}

// Follows what the connection is in.
void Session::Note(std::span<const std::string_view> args, const RespReply& reply) {
  const auto is = [&](std::string_view name) { return EqualsIgnoringCase(args[0], name); };
  if (is("exec") || is("discard")) {
    in_transaction_ = in_transaction_ && reply.is_error() && reply.text.starts_with("ERR wrong");
  } else if (is("multi")) {
    in_transaction_ = in_transaction_ || IsOk(reply);
  } else if (is("select") && args.size() == 2 && IsOk(reply)) {
    options_.keyspace = ParseUint64(args[1]).value_or(options_.keyspace);
  } else if (is("auth") && IsOk(reply)) {
    options_.server.user = args.size() == 3 ? args[1] : "";
    options_.server.password = args.back();
    asked_docs_ = false;
    if (!is_set_up_) SetUpLate();
  } else if (is("hello") && args.size() > 1 && !reply.is_error()) {
    options_.resp3 = args[1] == "3";
  } else if (is("reset") && !reply.is_error()) {
    in_transaction_ = false;
    options_.keyspace = 0;
    options_.resp3 = false;
  }
}

// A password was typed. What is refused all the same is not what the prompt shows.
void Session::SetUpLate() {
  std::string problem;
  if (!SetUp(&problem)) options_.keyspace = 0;
}

bool Session::IsStream(std::string_view command) {
  return EqualsIgnoringCase(command, "monitor") || EqualsIgnoringCase(command, "subscribe") ||
         EqualsIgnoringCase(command, "psubscribe") || EqualsIgnoringCase(command, "ssubscribe");
}

std::string Session::Prompt() const {
  if (client_ == nullptr) return "not connected> ";
  std::string prompt = address();
  if (options_.keyspace != 0) prompt += fmt::format("[{}]", options_.keyspace);
  return prompt + (in_transaction_ ? "(TX)> " : "> ");
}

const CommandDocs& Session::docs() {
  if (!docs_.empty() || asked_docs_ || client_ == nullptr || in_transaction_) return docs_;
  asked_docs_ = true;
  const std::string_view args[] = {"COMMAND", "DOCS"};
  if (const auto reply = Run(args); reply && !reply->is_error()) docs_ = CommandDocs(*reply);
  return docs_;
}

}  // namespace skep::cli
