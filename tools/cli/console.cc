#include "tools/cli/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <iostream>
#include <memory>

#include "base/ascii.h"
#include "base/hex.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/history_file.h"
#include "tools/cli/line_editor.h"
#include "tools/escape.h"
#include "wire/inline_request.h"

namespace skep::cli {
namespace {

void Write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// Replaces words that begin with "0x" by the bytes they stand for, which are kept in *bytes.
// Returns false if one is not hex.
bool DecodeHex(std::vector<std::string_view>* words, std::deque<std::string>* bytes) {
  for (std::string_view& word : *words) {
    if (!word.starts_with("0x")) continue;
    if (!FromHex(word, &bytes->emplace_back())) {
      Complain(fmt::format("{} is not hex", Quoted(word)));
      return false;
    }
    word = bytes->back();
  }
  return true;
}

}  // namespace

Console::Console(const SessionOptions& options, ReplyFormat format)
    : session_(MakeSession(options,
                           [this](const RespReply& push) {
                             if (format_.style == ReplyStyle::kReadable)
                               Write("-> " + FormatReply(push, format_));
                           })),
      format_(format) {}

bool Console::Connect() {
  std::string problem;
  if (session_->Connect(&problem)) {
    if (was_connected_) fmt::print(stderr, "connected to {} again\n", session_->address());
    was_connected_ = true;
    return true;
  }
  Complain(problem);
  return false;
}

bool Console::Reconnect() {
  if (session_->IsConnected()) return true;
  if (session_->in_transaction()) Complain("the transaction is gone with its connection");
  return Connect();
}

int Console::RunOnce(const std::vector<std::string>& args) {
  if (!Connect()) return kNotConnected;
  const std::vector<std::string_view> words(args.begin(), args.end());
  return Run(words);
}

int Console::Run(std::span<const std::string_view> words) {
  std::vector<std::string_view> args(words.begin(), words.end());
  std::deque<std::string> bytes;
  if (format_.hex && !DecodeHex(&args, &bytes)) return kErrorReply;
  const auto reply = session_->Run(args);
  if (!reply) return TellBroken(reply.error(), args);
  Print(*reply, args);
  if (reply->is_error()) return kErrorReply;
  return Session::IsStream(args[0]) ? Stream(args) : kDone;
}

int Console::Stream(std::span<const std::string_view> args) {
  for (;;) {
    const auto reply = session_->Next();
    if (!reply) return TellBroken(reply.error(), args);
    Print(*reply, args);
  }
}

void Console::Print(const RespReply& reply, std::span<const std::string_view> args) const {
  ReplyFormat format = format_;
  const bool is_text = !reply.is_error() && reply.elements.empty() && RepliesText(args);
  if (format.style == ReplyStyle::kReadable && is_text) format.style = ReplyStyle::kRaw;
  Write(FormatReply(reply, format));
}

int Console::TellBroken(Status status, std::span<const std::string_view> args) {
  const bool is_end =
      EqualsIgnoringCase(args[0], "shutdown") || EqualsIgnoringCase(args[0], "quit");
  if (status.code() == Code::kUnavailable && is_end) return kDone;
  if (status.code() == Code::kAborted) {
    if (!Session::IsStream(args[0]))
      Complain("interrupted; the command goes on, its reply is lost");
    return kDone;
  }
  Complain(fmt::format("{}: {}; the command may or may not have been executed", session_->address(),
                       status.ToString()));
  return kNotConnected;
}

int Console::RunInput() {
  if (!Connect()) return kNotConnected;
  int result = kDone;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::unique_ptr<char[]> unquoted;
    std::vector<std::string_view> words;
    if (!SplitInlineRequest(line, unquoted, words)) {
      Complain("the quotes of a line are not closed: " + Quoted(line));
      result = kErrorReply;
      continue;
    }
    if (words.empty()) continue;
    const int status = Run(words);
    if (status == kNotConnected) return status;
    result = std::max(result, status);
  }
  return result;
}

int Console::Converse() {
  LineEditor editor(
      {.complete = [this](std::string_view before) { return session_->docs().Complete(before); },
       .hint = [this](std::string_view line) { return session_->docs().Hint(line); }});
  HistoryFile history(HistoryPath());
  for (const std::string& line : history.Load()) editor.Remember(line);
  Connect();
  session_->docs();
  for (;;) {
    std::string line;
    const auto event = editor.Read(session_->Prompt(), &line);
    if (event == LineEditor::Event::kInterrupted) continue;
    if (event == LineEditor::Event::kEnd) break;
    std::unique_ptr<char[]> unquoted;
    std::vector<std::string_view> words;
    const bool is_closed = SplitInlineRequest(line, unquoted, words);
    if (!words.empty() && !HasSecret(words)) {
      editor.Remember(line);
      history.Append(line);
    }
    if (!is_closed) {
      Complain("the quotes are not closed");
    } else if (!words.empty() && !RunTyped(words)) {
      return kDone;
    }
  }
  Write("\n");
  return kDone;
}

int Console::RunInterruptibly(std::span<const std::string_view> words) {
  const InterruptScope scope(*session_);
  return Run(words);
}

bool Console::RunTyped(std::span<const std::string_view> words) {
  const auto is = [&](std::string_view name) { return EqualsIgnoringCase(words[0], name); };
  if (is("quit") || is("exit")) return false;
  if (is("clear")) {
    Write("\033[H\033[2J");
  } else if (is("help") || is("?")) {
    if (Reconnect()) Write(session_->docs().Help(words.subspan(1)));
  } else if (Reconnect() && RunInterruptibly(words) != kErrorReply && !session_->IsConnected()) {
    Connect();
  }
  return true;
}

}  // namespace skep::cli
