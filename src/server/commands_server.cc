// Commands about the server as a whole.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "server/commands.h"
#include "server/glob.h"
#include "server/options.h"
#include "server/server_call.h"
#include "server/subcommands.h"

namespace skep::commands {
namespace {

void ConfigGet(const ServerCall& call) {
  const ServerOptions options = call.administration().options();
  // By the names that they were asked by, of which an option may have two.
  std::vector<std::pair<std::string_view, std::string>> found;
  const auto add = [&](std::string_view name, std::string value) {
    if (std::ranges::find(found, name, [](const auto& pair) { return pair.first; }) ==
        found.end()) {
      found.emplace_back(name, std::move(value));
    }
  };
  for (const std::string_view pattern : call.args().subspan(2)) {
    for (const OptionInfo* option : MatchOptions(pattern)) add(option->name, option->get(options));
    const std::string lower = LowerCase(pattern);
    for (const OldOptionName& old : OldOptionNames()) {
      if (GlobMatch(lower, old.name)) add(old.name, FindOption(old.option)->get(options));
    }
    for (const UnusedOption& option : AllUnusedOptions()) {
      if (GlobMatch(lower, option.name))
        add(option.name, call.state().unused_options().Get(option));
    }
  }
  RespWriter reply = call.reply();
  reply.Map(found.size());
  for (const auto& [name, value] : found) {
    reply.Bulk(name);
    reply.Bulk(value);
  }
}

std::string ConfigSetFailure(std::string_view name, std::string_view why) {
  return fmt::format("ERR CONFIG SET failed (possibly related to argument '{}') - {}", name, why);
}

// Why these changes cannot be made while the server runs; empty if they can.
std::string ConfigSetError(std::span<const OptionChange> changes) {
  for (size_t i = 0; i < changes.size(); ++i) {
    const auto& [name, value] = changes[i];
    const OptionInfo* const option = FindOption(name);
    const UnusedOption* const unused = FindUnusedOption(name);
    if (option == nullptr && unused == nullptr) {
      return fmt::format("ERR Unknown option or number of arguments for CONFIG SET - '{}'", name);
    }
    if (option != nullptr && !option->mutable_at_run_time) {
      return ConfigSetFailure(name, "can't set immutable config");
    }
    if (unused != nullptr) {
      const Status s = CheckUnusedOption(*unused, value);
      if (!s.ok()) return ConfigSetFailure(name, s.what());
    }
    // An option that has two names may be given by both, as in Redis: the last one holds.
    const bool is_double = std::ranges::any_of(changes.first(i), [&](const OptionChange& before) {
      return EqualsIgnoringCase(before.first, name);
    });
    if (is_double) return ConfigSetFailure(name, "duplicate parameter");
  }
  return {};
}

// With appendfsync always, writes that were acknowledged earlier may not be synced yet: the reply
// waits until they are. (It does not wait if they are, or with another policy.)
void AwaitSyncOfAll(const ServerCall& call) {
  Keyspaces& keyspaces = call.state().keyspaces();
  for (uint32_t i = 0; i < keyspaces.count(); ++i) {
    if (keyspaces.if_used(i) == nullptr) continue;
    Engine& engine = keyspaces.at(i);
    if (engine.syncs_to_release()) call.Await(engine, engine.Latest());
  }
}

void ConfigSet(const ServerCall& call) {
  if (call.args().size() % 2 != 0) {
    return call.Error(kSyntaxError);
  }
  std::vector<OptionChange> changes;
  for (size_t i = 2; i + 1 < call.args().size(); i += 2) {
    changes.emplace_back(call.arg(i), call.arg(i + 1));
  }
  if (const std::string error = ConfigSetError(changes); !error.empty()) return call.Error(error);
  std::vector<OptionChange> used = changes;
  std::erase_if(used, [](const OptionChange& change) { return FindUnusedOption(change.first); });
  if (const std::string error = call.administration().SetOptions(used); !error.empty()) {
    return call.Error("ERR " + error);
  }
  for (const auto& [name, value] : changes) {
    const UnusedOption* const unused = FindUnusedOption(name);
    if (unused != nullptr) call.state().unused_options().Set(*unused, value);
  }
  AwaitSyncOfAll(call);
  call.reply().SimpleString("OK");
}

void ConfigRewrite(const ServerCall& call) {
  if (const std::string error = call.administration().RewriteConfigFile(); !error.empty()) {
    return call.Error("ERR " + error);
  }
  call.reply().SimpleString("OK");
}

void ConfigResetStat(const ServerCall& call) {
  call.administration().ResetCounts();
  call.reply().SimpleString("OK");
}

constexpr Subcommand kConfigSubcommands[] = {
    {"get", -3, "<pattern> [<pattern> ...]", "Return the options that match, and their values.",
     ConfigGet},
    {"resetstat", 2, "", "Let the counters of INFO begin at 0 again.", ConfigResetStat},
    {"rewrite", 2, "", "Write the options as they are into the file they were read from.",
     ConfigRewrite},
    {"set", -4, "<option> <value> [<option> <value> ...]",
     "Set options, all or none, until the server ends; CONFIG REWRITE makes them last.", ConfigSet},
};

// FLUSHDB and FLUSHALL take SYNC or ASYNC, which are the same here. False for other arguments.
bool IsFlush(std::span<const std::string_view> args) {
  return args.size() == 1 || (args.size() == 2 && (EqualsIgnoringCase(args[1], "sync") ||
                                                   EqualsIgnoringCase(args[1], "async")));
}

}  // namespace

void RunConfig(const ServerCall& call) { RunSubcommand(call); }

std::span<const Subcommand> ConfigSubcommands() { return kConfigSubcommands; }

Plan PlanDbsize(const ServerCall& call, Batch& batch) {
  // Without an order, a count of everything visits no key.
  const bool visits = call.engine().traits().ordered;
  if (visits && batch.kind() != Batch::Kind::kAtomic) return Plan::Alone();
  batch.Count(Range::All(), visits ? kTransactionScanKeysMax : kNoLimit);
  return Plan::Requests();
}

void RunDbsize(const ServerCall& call) {
  Engine& engine = call.engine();
  if (!engine.traits().counts_itself) {
    Batch batch;
    const uint32_t slot = batch.Count(Range::All());
    call.Execute(batch);
    return FinishCount(call, batch, slot);
  }
  const EngineStatistics now = engine.Statistics();
  call.Await(engine, now.version);
  call.reply().Integer(static_cast<int64_t>(now.items));
}

void RunInfo(const ServerCall& call) {
  call.reply().Verbatim("txt", call.administration().Describe(call.args().subspan(1)));
}

void FinishTime(const ServerCall& call, const Batch&, uint32_t) {
  const uint64_t now_us = call.state().environment().clock.WallUs();
  call.reply().Array(2);
  call.reply().Bulk(std::to_string(now_us / 1'000'000));
  call.reply().Bulk(std::to_string(now_us % 1'000'000));
}

Plan PlanFlushDb(const Call& call, Batch& batch) {
  if (!IsFlush(call.args())) return Plan::Error(kSyntaxError);
  if (batch.kind() != Batch::Kind::kAtomic) return Plan::Alone();
  batch.DeleteAll();
  return Plan::Requests();
}

void FinishFlushDb(const Call& call, const Batch& batch, uint32_t slot) {
  if (!call.Refused(batch.outcome(slot))) call.reply().SimpleString("OK");
}

void RunFlushDb(const Call& call) {
  Batch batch;
  const uint32_t slot = batch.DeleteAll();
  call.Execute(batch);
  FinishFlushDb(call, batch, slot);
}

void RunFlushAll(const ServerCall& call) {
  if (!IsFlush(call.args())) return call.Error(kSyntaxError);
  Keyspaces& keyspaces = call.state().keyspaces();
  for (uint32_t i = 0; i < keyspaces.count(); ++i) {
    const Engine* const engine = keyspaces.if_used(i);
    if (engine == nullptr || engine->traits().range_writes) continue;
    return call.Error("ERR the engine of a database has no deletes of ranges: FLUSHDB one by one");
  }
  Session& session = call.session();
  const uint32_t own = session.keyspace;
  bool refused = false;
  for (uint32_t i = 0; i < call.state().keyspaces().count() && !refused; ++i) {
    if (call.state().keyspaces().if_used(i) == nullptr) continue;
    session.keyspace = i;
    Batch batch;
    batch.DeleteAll();
    call.Execute(batch);
    refused = call.Refused(batch);
  }
  session.keyspace = own;
  if (!refused) call.reply().SimpleString("OK");
}

// SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE], or ABORT alone, which ends a shutdown that waits for
// replicas: none does.
void RunShutdown(const ServerCall& call) {
  bool saves = false;
  bool does_not_save = false;
  bool aborts = false;
  bool has_other = false;
  for (const std::string_view arg : call.args().subspan(1)) {
    if (EqualsIgnoringCase(arg, "abort")) {
      aborts = true;
      continue;
    }
    has_other = true;
    if (EqualsIgnoringCase(arg, "save")) {
      saves = true;
    } else if (EqualsIgnoringCase(arg, "nosave")) {
      does_not_save = true;
    } else if (!EqualsIgnoringCase(arg, "now") && !EqualsIgnoringCase(arg, "force")) {
      return call.Error(kSyntaxError);
    }
  }
  if ((aborts && has_other) || (saves && does_not_save)) return call.Error(kSyntaxError);
  if (aborts) return call.Error("ERR No shutdown in progress.");
  // As in Redis there is no reply: the connection closes.
  call.session().closing = true;
  call.administration().Stop();
}

}  // namespace skep::commands
