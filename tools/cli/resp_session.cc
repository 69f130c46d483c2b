#include "tools/cli/resp_session.h"

#include <fmt/format.h>

#include <utility>

#include "base/ascii.h"
#include "base/decimal.h"

namespace skep::cli {
namespace {

bool IsOk(const RespReply& reply) {
  return reply.type == RespReply::Type::kSimple && reply.text == "OK";
}

bool EndsWithIgnoringCase(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         EqualsIgnoringCase(text.substr(text.size() - end.size()), end);
}

}  // namespace

bool RespSession::Connect(std::string* problem) {
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

bool RespSession::SetUp(std::string* problem) {
  is_set_up_ = true;
  const auto call = [&](std::initializer_list<std::string_view> args) {
    const auto reply = client_->Call(args);
    if (reply && !reply->is_error()) return true;
    // A person without a password may still type one.
    is_set_up_ = false;
    *problem = reply ? reply->text : reply.error().ToString();
    return reply && reply->text.starts_with("NOAUTH");
  };
  if (options_.resp3 && !call({"HELLO", "3"})) return false;
  return options_.keyspace == 0 || call({"SELECT", std::to_string(options_.keyspace)});
}

Result<RespReply> RespSession::Run(std::span<const std::string_view> args) {
  client_->ForgetInterrupt();  // an interrupt that came after the last reply
  client_->Send(args);
  // RESP3 answers (un)subscribe commands with pushes.
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

Result<RespReply> RespSession::Next() { return Receive(); }

Result<RespReply> RespSession::Receive() {
  auto reply = client_->Receive();
  if (!reply) {
    InterruptScope::Forget();
    client_ = nullptr;
  }
  return reply;
}

// Follows the changes that a command makes to the connection's state.
void RespSession::Note(std::span<const std::string_view> args, const RespReply& reply) {
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

// Sets up the connection after a password was typed. If the keyspace is refused, the prompt must
// not show it.
void RespSession::SetUpLate() {
  std::string problem;
  if (!SetUp(&problem)) options_.keyspace = 0;
}

std::string RespSession::Prompt() const {
  return PromptOf(*this, client_ != nullptr, options_.keyspace, "");
}

const CommandDocs& RespSession::docs() {
  if (!docs_.empty() || asked_docs_ || client_ == nullptr || in_transaction_) return docs_;
  asked_docs_ = true;
  const std::string_view args[] = {"COMMAND", "DOCS"};
  if (const auto reply = Run(args); reply && !reply->is_error()) docs_ = CommandDocs(*reply);
  return docs_;
}

}  // namespace skep::cli
