// FUNCTION and SCRIPT: the answers of a server that runs no scripts, and so has none. Test suites
// and tools empty both before they begin.
#include <fmt/format.h>

#include "server/command_tables.h"
#include "server/commands.h"
#include "server/server_call.h"
#include "server/subcommands.h"

namespace skep {
namespace commands_scripts {
namespace {

constexpr std::string_view kNoScripts =
    "ERR this server runs no scripts: functions at the data come from --function-library";

void ReplyOk(const ServerCall& call) { call.reply().SimpleString("OK"); }

void ReplyNothingRuns(const ServerCall& call) {
  call.Error("NOTBUSY No scripts in execution right now.");
}

void ReplyNoScripts(const ServerCall& call) { call.Error(kNoScripts); }

// Whether the words behind FLUSH are none, or say when the memory is freed.
bool SaysHowToFlush(std::span<const std::string_view> words) {
  return words.empty() || (words.size() == 1 && (EqualsIgnoringCase(words[0], "sync") ||
                                                 EqualsIgnoringCase(words[0], "async")));
}

// ---- FUNCTION ----

void FunctionFlush(const ServerCall& call) {
  constexpr size_t kWordsMax = 3;
  if (call.args().size() > kWordsMax) {
    return call.Error(
        fmt::format("ERR unknown subcommand or wrong number of arguments for '{}'. Try FUNCTION "
                    "HELP.",
                    call.arg(1)));
  }
  if (!SaysHowToFlush(call.args().subspan(2))) {
    return call.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  }
  ReplyOk(call);
}

void FunctionDelete(const ServerCall& call) { call.Error("ERR Library not found"); }

// FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE]: each word once, in either order.
void FunctionList(const ServerCall& call) {
  bool has_name = false;
  bool has_code = false;
  for (size_t i = 2; i < call.args().size(); ++i) {
    if (!has_code && EqualsIgnoringCase(call.arg(i), "withcode")) {
      has_code = true;
    } else if (!has_name && EqualsIgnoringCase(call.arg(i), "libraryname")) {
      if (++i == call.args().size()) {
        return call.Error("ERR library name argument was not given");
      }
      has_name = true;
    } else {
      return call.Error(fmt::format("ERR Unknown argument {}", call.arg(i)));
    }
  }
  call.reply().Array(0);
}

void FunctionStats(const ServerCall& call) {
  RespWriter reply = call.reply();
  reply.Map(2);
  reply.Bulk("running_script");
  reply.Null();
  reply.Bulk("engines");
  reply.Map(0);
}

constexpr Subcommand kFunctionSubcommands[] = {
    {"delete", 3, "<LIBRARY NAME>", "Return an error: there are no libraries.", FunctionDelete},
    {"flush", -2, "[ASYNC|SYNC]", "Do nothing: there are no libraries.", FunctionFlush},
    {"kill", 2, "", "Return an error: no function runs.", ReplyNothingRuns},
    {"list", -2, "[LIBRARYNAME PATTERN] [WITHCODE]",
     "Return an empty array: there are no libraries.", FunctionList},
    {"load", -3, "[REPLACE] <FUNCTION CODE>", "Return an error: this server runs no scripts.",
     ReplyNoScripts},
    {"stats", 2, "", "Return that no function runs.", FunctionStats},
};
std::span<const Subcommand> FunctionSubcommands() { return kFunctionSubcommands; }

// ---- SCRIPT ----

void ScriptExists(const ServerCall& call) {
  const size_t digests = call.args().size() - 2;
  call.reply().Array(digests);
  for (size_t i = 0; i < digests; ++i) call.reply().Integer(0);
}

void ScriptFlush(const ServerCall& call) {
  if (!SaysHowToFlush(call.args().subspan(2))) {
    return call.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  }
  ReplyOk(call);
}

constexpr Subcommand kScriptSubcommands[] = {
    {"exists", -3, "<sha1> [<sha1> ...]", "Return 0 for each: there are no scripts.", ScriptExists},
    {"flush", -2, "[ASYNC|SYNC]", "Do nothing: there are no scripts.", ScriptFlush},
    {"kill", 2, "", "Return an error: no script runs.", ReplyNothingRuns},
    {"load", 3, "<script>", "Return an error: this server runs no scripts.", ReplyNoScripts},
};
std::span<const Subcommand> ScriptSubcommands() { return kScriptSubcommands; }

constexpr Command kCommands[] = {
    {"function",
     -2,
     0,
     0,
     0,
     0,
     "scripting",
     "7.0.0",
     "subcommand [argument ...]",
     "Tells which libraries of functions there are: none.",
     nullptr,
     commands::FinishSubcommand,
     nullptr,
     {},
     FunctionSubcommands},
    {"script",
     -2,
     0,
     0,
     0,
     0,
     "scripting",
     "2.6.0",
     "subcommand [argument ...]",
     "Tells which scripts there are: none.",
     nullptr,
     commands::FinishSubcommand,
     nullptr,
     {},
     ScriptSubcommands},
};

}  // namespace
}  // namespace commands_scripts

std::span<const Command> ScriptCommands() { return commands_scripts::kCommands; }

}  // namespace skep
