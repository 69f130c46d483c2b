// DEBUG: what test suites of Redis ask for. It is refused unless enable-debug-command allows it,
// since a client that may use it can stop a worker.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/decimal.h"
#include "base/float_text.h"
#include "durable/rdb_payload.h"
#include "server/command_tables.h"
#include "server/commands.h"
#include "server/glob.h"
#include "server/object_encoding.h"
#include "server/optimistic_write.h"
#include "server/scan_args.h"
#include "server/server_call.h"
#include "types/hash_fields.h"
#include "types/value_type.h"

namespace skep {
namespace commands_debug {
namespace {

constexpr std::string_view kNotAllowed =
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you "
    "can run it from a local connection, otherwise you need to set this option in the "
    "configuration file, and then restart the server.";
constexpr size_t kNameBytesMax = 128;

bool IsAllowed(const ServerCall& call) {
  const std::string& who = call.turn().options().enable_debug_command;
  if (who == "yes") return true;
  const std::string& peer = call.session().info->peer;
  const bool is_local =
      peer.starts_with("127.") || peer.starts_with("[::1]:") || peer.starts_with("/");
  return who == "local" && is_local;
}

void ReplyOk(const ServerCall& call) { call.reply().SimpleString("OK"); }

// DEBUG SLEEP seconds: the worker does nothing, as all of Redis does.
void Sleep(const ServerCall& call) {
  constexpr double kSecondsMax = 60;
  const auto seconds = ParseDouble(call.arg(2));
  if (!seconds || !(*seconds >= 0)) return call.Error("ERR the time is not a number of seconds");
  std::this_thread::sleep_for(std::chrono::duration<double>(std::min(*seconds, kSecondsMax)));
  ReplyOk(call);
}

// DEBUG RELOAD: a server with a directory writes a snapshot. The keys stay as they are in memory,
// which is what a reader of the snapshot would find.
void Reload(const ServerCall& call) {
  if (call.administration().persistence() == nullptr) return ReplyOk(call);
  commands::RunSave(call);
}

void ReplyErrorText(const ServerCall& call) { call.Error(call.arg(2)); }

// Reads a key whatever its type. False: it is absent, or was refused, and the error is sent.
bool ReadKey(const ServerCall& call, std::string_view key, Batch& read) {
  for (int attempt = 0; attempt < kOptimisticAttemptsMax; ++attempt) {
    read.Clear();
    read.set_answer_bytes_max(call.AnswerBytesMax());
    const auto execute = [&](Batch& batch) { call.Execute(batch); };
    if (ReadOfAnyTypes(execute, {&key, 1}, read)) return !call.Refused(read);
  }
  call.Error(kWrittenAllTheTime);
  return false;
}

void DescribeObject(const ServerCall& call) {
  Batch read;
  if (!ReadKey(call, call.arg(2), read)) return;
  const Outcome& found = read.outcome(0);
  if (!found.present) return call.Error("ERR no such key");
  call.reply().SimpleString(fmt::format(
      "Value at:0x0 refcount:1 encoding:{} serializedlength:{} lru:0 lru_seconds_idle:0",
      EncodingOf(found.type, found.value, call.turn().options()), found.value.size()));
}

// 40 hexadecimal digits, as Redis has them.
std::string DigestText(const Digest& digest, uint32_t mark) {
  return fmt::format("{:016x}{:016x}{:08x}", digest.high, digest.low, mark);
}

// Equal values of one type have equal digests, whatever the order in which a hash got its fields.
Digest DigestOfValue(const Outcome& found, uint64_t now_ms) {
  if (found.type == types::kString) return DigestOf(found.value);
  Scratch scratch;
  std::string_view value = found.value;
  if (found.type == types::kHash) {
    if (auto fields = types::ReadLiveHash(value, now_ms)) {
      std::ranges::sort(*fields, {}, &types::HashField::name);
      value = types::WriteHash(*fields, scratch);
    }
  }
  const auto payload = durable::DumpCollection(found.type, value);
  return DigestOf(payload ? std::string_view(*payload) : value);
}

// 0 for an absent key.
std::string DigestTextOf(const ServerCall& call, const Outcome& found) {
  if (!found.present) return DigestText({}, 0);
  return DigestText(DigestOfValue(found, call.now().ms), found.type);
}

void DigestValues(const ServerCall& call) {
  std::vector<std::string> digests;
  for (const std::string_view key : call.args().subspan(2)) {
    Batch read;
    if (!ReadKey(call, key, read)) return;
    digests.push_back(DigestTextOf(call, read.outcome(0)));
  }
  call.reply().Array(digests.size());
  for (const std::string& digest : digests) call.reply().SimpleString(digest);
}

// Adds the digest of each key of the session's database, of its value, and of whether it has a
// deadline; the sum does not depend on their order. False: a read was refused, and the error is
// sent.
bool AddDigestOfDatabase(const ServerCall& call, Digest& sum) {
  constexpr uint32_t kKeysAtOnce = 256;
  const bool is_ordered = call.engine().traits().ordered;
  std::string lo;
  uint64_t cursor = 0;
  bool has_more = true;
  while (has_more) {
    Batch batch;
    batch.set_scan_visits_max(kKeysAtOnce);
    const uint32_t slot = is_ordered
                              ? batch.Scan(Range::From(lo), {.keys_only = true, .any_type = true})
                              : batch.Walk(cursor, {.keys_only = true});
    call.Execute(batch);
    if (call.Refused(batch)) return false;
    for (const Item& item : batch.items(slot)) {
      Batch read;
      if (!ReadKey(call, item.key, read)) return false;
      const Outcome& found = read.outcome(0);
      if (!found.present) continue;
      const Digest digest =
          DigestOf(fmt::format("{} {} {} {}", call.session().keyspace, DigestTextOf(call, found),
                               found.deadline_ms != 0, item.key));
      sum.low ^= digest.low;
      sum.high ^= digest.high;
    }
    const Outcome& out = batch.outcome(slot);
    lo.assign(out.value);
    cursor = static_cast<uint64_t>(out.integer);
    has_more = is_ordered ? out.more : cursor != 0;
  }
  return true;
}

// DEBUG DIGEST: of all databases, not at one instant; 0 if there are no keys.
void DigestAll(const ServerCall& call) {
  Session& session = call.session();
  const uint32_t own = session.keyspace;
  Digest sum{};
  bool goes_on = true;
  for (uint32_t i = 0; i < call.state().keyspaces().count() && goes_on; ++i) {
    if (call.state().keyspaces().if_used(i) == nullptr) continue;
    session.keyspace = i;
    goes_on = AddDigestOfDatabase(call, sum);
  }
  session.keyspace = own;
  if (goes_on) call.reply().SimpleString(DigestText(sum, 0));
}

// DEBUG STRINGMATCH-LEN length pattern: whether the pattern matches so many letters a.
void MatchLetters(const ServerCall& call) {
  constexpr int64_t kLengthMax = 1 << 16;
  const auto length = ParseInt64(call.arg(2));
  if (!length || *length < 0 || *length > kLengthMax) return call.Error(kNotAnInteger);
  if (call.arg(3).size() > kPatternBytesMax) return call.Error(kPatternTooLong);
  call.reply().Integer(GlobMatch(call.arg(3), std::string(static_cast<size_t>(*length), 'a')) ? 1
                                                                                              : 0);
}

// A reply of each type of the protocol; what RESP2 lacks is what Redis sends there.
void ReplyOfType(const ServerCall& call) {
  RespWriter reply = call.reply();
  const std::string type = LowerCase(call.arg(2));
  if (type == "string") return reply.Bulk("Hello World");
  if (type == "integer") return reply.Integer(12345);
  if (type == "double") return reply.Double(3.141);
  if (type == "null") return reply.Null();
  if (type == "bignum") return reply.BigNumber("1234567999999999999999999999999999999");
  if (type == "verbatim") return reply.Verbatim("txt", "This is a verbatim\nstring");
  if (type == "true") return reply.Boolean(true);
  if (type == "false") return reply.Boolean(false);
  if (type == "array" || type == "set") {
    type == "array" ? reply.Array(3) : reply.Set(3);
    for (int64_t i = 0; i < 3; ++i) reply.Integer(i);
    return;
  }
  if (type == "map") {
    reply.Map(3);
    for (int64_t i = 0; i < 3; ++i) {
      reply.Integer(i);
      reply.Boolean(i == 1);
    }
    return;
  }
  call.Error(
      "ERR Wrong protocol type name. Please use one of the following: "
      "string|integer|double|null|array|set|map|bignum|verbatim|true|false");
}

// DEBUG POPULATE count [prefix] [size]: keys that are not there get values.
void Populate(const ServerCall& call) {
  constexpr int64_t kKeysMax = 1 << 20;
  constexpr int64_t kValueBytesMax = 1 << 20;
  constexpr int64_t kKeysAtOnce = 256;
  const auto count = ParseInt64(call.arg(2));
  if (!count || *count < 0 || *count > kKeysMax) return call.Error(kNotAnInteger);
  const std::string_view prefix = call.args().size() > 3 ? call.arg(3) : "key";
  int64_t bytes = 0;
  if (call.args().size() > 4) {
    const auto size = ParseInt64(call.arg(4));
    if (!size || *size < 0 || *size > kValueBytesMax) return call.Error(kNotAnInteger);
    bytes = *size;
  }
  for (int64_t first = 0; first < *count; first += kKeysAtOnce) {
    Batch batch;
    for (int64_t i = first; i < std::min(*count, first + kKeysAtOnce); ++i) {
      std::string value = fmt::format("value:{}", i);
      if (bytes > 0) value.resize(static_cast<size_t>(bytes));
      batch.Insert(batch.scratch().Copy(fmt::format("{}:{}", prefix, i)),
                   batch.scratch().Copy(value));
    }
    call.Execute(batch);
    if (call.Refused(batch)) return;
  }
  ReplyOk(call);
}

struct Deed {
  std::string_view name;
  int arity;  // counts DEBUG and the name; negative: the least number
  std::string_view help;
  void (*run)(const ServerCall& call);
};

constexpr Deed kDeeds[] = {
    {"change-repl-id", 2, "Do nothing: there is no replication.", ReplyOk},
    {"dict-resizing", 3, "Do nothing: there are no such tables.", ReplyOk},
    {"digest", 2, "Return a digest of all keys and values.", DigestAll},
    {"digest-value", -2, "Return a digest of the value of each key.", DigestValues},
    {"error", 3, "Return an error of this text.", ReplyErrorText},
    {"loadaof", 2, "Do nothing: the log has what is in memory.", ReplyOk},
    {"object", -3, "Return how the value of a key is kept.", DescribeObject},
    {"pause-cron", 3, "Do nothing: there is no such timer.", ReplyOk},
    {"populate", -3, "Store keys that are not there: count [prefix] [size].", Populate},
    {"protocol", 3, "Return a reply of a type of the protocol.", ReplyOfType},
    {"quicklist-packed-threshold", 3, "Do nothing: lists are not kept so.", ReplyOk},
    {"reload", -2, "Write a snapshot, and wait for it; without a directory do nothing.", Reload},
    {"replybuffer", -3, "Do nothing: replies are not kept so.", ReplyOk},
    {"set-active-expire", 3, "Do nothing: expired keys are gone for every command.", ReplyOk},
    {"sleep", 3, "Let this worker do nothing for so many seconds.", Sleep},
    {"stringmatch-len", 4, "Match so many letters a with a pattern.", MatchLetters},
};

void ReplyHelp(const ServerCall& call) {
  RespWriter reply = call.reply();
  reply.Array(2 * std::size(kDeeds) + 1);
  reply.SimpleString("DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
  for (const Deed& deed : kDeeds) {
    reply.SimpleString(UpperCase(deed.name));
    reply.SimpleString(fmt::format("    {}", deed.help));
  }
}

void RunDebug(const ServerCall& call) {
  if (!IsAllowed(call)) return call.Error(kNotAllowed);
  const std::string_view name = call.arg(1);
  if (call.args().size() == 2 && EqualsIgnoringCase(name, "help")) return ReplyHelp(call);
  const auto deed =
      std::ranges::find_if(kDeeds, [&](const Deed& d) { return EqualsIgnoringCase(d.name, name); });
  if (deed == std::end(kDeeds) || !AcceptsCount(deed->arity, call.args().size())) {
    return call.Error(
        fmt::format("ERR unknown subcommand or wrong number of arguments for '{}'. Try DEBUG HELP.",
                    name.substr(0, kNameBytesMax)));
  }
  deed->run(call);
}

using enum Command::Flag;

constexpr Command kCommands[] = {
    {"debug", -2, kWrite | kStores | kAdmin, 0, 0, 0, "server", "1.0.0",
     "subcommand [argument ...]", "Does what test suites ask for, if it is allowed.", nullptr,
     nullptr, RunDebug, "it is not of the transaction"},
};

}  // namespace
}  // namespace commands_debug

std::span<const Command> DebugCommands() { return commands_debug::kCommands; }

}  // namespace skep
