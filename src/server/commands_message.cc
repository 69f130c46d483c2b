// Commands of messages: SUBSCRIBE, PUBLISH and their kin (subscriptions.h).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "server/command_tables.h"
#include "server/message_delivery.h"
#include "server/server_call.h"
#include "server/subcommands.h"

namespace skep {
namespace {

constexpr std::string_view kSubscribed[] = {"subscribe", "psubscribe", "ssubscribe"};
constexpr std::string_view kUnsubscribed[] = {"unsubscribe", "punsubscribe", "sunsubscribe"};

constexpr std::string_view kNameTooLong =
    "ERR the name of a channel, or a pattern, has at most 4096 bytes";
constexpr std::string_view kTooManySubscriptions =
    "ERR a connection has at most 131072 subscriptions";
static_assert(kNameBytesMax == 4096 && kSubscriptionsMax == 131072);

// How many names the confirmation of this kind counts: shard channels are counted apart.
size_t CountFor(const Subscriber* who, ChannelKind kind) {
  if (who == nullptr) return 0;
  if (kind == ChannelKind::kShard) return who->count(kind);
  return who->count(ChannelKind::kChannel) + who->count(ChannelKind::kPattern);
}

void Confirm(const ServerCall& call, std::string_view word, std::optional<std::string_view> name,
             ChannelKind kind) {
  Session& session = call.session();
  session.silence.is_confirmed = session.transaction == nullptr;
  RespWriter reply = call.reply();
  reply.Push(3);
  reply.Bulk(word);
  name ? reply.Bulk(*name) : reply.Null();
  reply.Integer(static_cast<int64_t>(CountFor(session.subscriber.get(), kind)));
}

template <ChannelKind kKind>
void RunSubscribe(const ServerCall& call) {
  const auto names = call.args().subspan(1);
  const auto is_too_long = [](std::string_view name) { return name.size() > kNameBytesMax; };
  if (std::ranges::any_of(names, is_too_long)) return call.Error(kNameTooLong);
  const auto& who = call.deliveries().Join(call.session());
  if (who->count() + names.size() > kSubscriptionsMax) return call.Error(kTooManySubscriptions);
  for (const std::string_view name : names) {
    call.state().subscriptions().Subscribe(who, kKind, name);
    Confirm(call, kSubscribed[static_cast<size_t>(kKind)], name, kKind);
  }
  MessageDelivery::Note(call.session());
}

template <ChannelKind kKind>
void RunUnsubscribe(const ServerCall& call) {
  constexpr std::string_view kWord = kUnsubscribed[static_cast<size_t>(kKind)];
  Subscriber* const who = call.session().subscriber.get();
  const auto end = [&](std::string_view name) {
    if (who != nullptr) call.state().subscriptions().Unsubscribe(*who, kKind, name);
    Confirm(call, kWord, name, kKind);
  };
  if (call.args().size() > 1) {
    for (const std::string_view name : call.args().subspan(1)) end(name);
  } else if (who == nullptr || who->count(kKind) == 0) {
    Confirm(call, kWord, std::nullopt, kKind);
  } else {
    const Subscriber::Names names = who->names[static_cast<size_t>(kKind)];
    for (const auto& [name, since] : names) end(name);
  }
  if (who != nullptr) MessageDelivery::Note(call.session());
}

template <ChannelKind kKind>
void RunPublish(const ServerCall& call) {
  if (call.arg(1).size() > kNameBytesMax) return call.Error(kNameTooLong);
  Message message{.channel = std::string(call.arg(1)),
                  .payload = std::string(call.arg(2)),
                  .kind = kKind,
                  .gates = {}};
  for (const Session::Mark& mark : call.session().marks) {
    const auto at =
        std::ranges::find(message.gates, mark.gate, &std::pair<ReleaseGate*, Version>::first);
    if (at == message.gates.end()) {
      message.gates.emplace_back(mark.gate, mark.ticket);
    } else {
      at->second = std::max(at->second, mark.ticket);
    }
  }
  const uint64_t bytes_max = call.turn().options().client_output_buffer_limit.pubsub.hard_bytes;
  call.reply().Integer(
      static_cast<int64_t>(call.state().subscriptions().Publish(std::move(message), bytes_max)));
}

void RunMonitor(const ServerCall& call) {
  const auto& who = call.deliveries().Join(call.session());
  call.state().subscriptions().Subscribe(who, ChannelKind::kCommands, "");
  call.reply().SimpleString("OK");
}

// ---- PUBSUB ----

template <ChannelKind kKind>
void ListNames(const ServerCall& call) {
  if (call.args().size() > 3) return ReplyWrongCount(call);
  const std::string_view pattern = call.args().size() == 3 ? call.arg(2) : "*";
  const auto names = call.state().subscriptions().Names(kKind, pattern);
  RespWriter reply = call.reply();
  reply.Array(names.size());
  for (const std::string& name : names) reply.Bulk(name);
}

template <ChannelKind kKind>
void CountSubscribers(const ServerCall& call) {
  const auto names = call.args().subspan(2);
  RespWriter reply = call.reply();
  reply.Array(2 * names.size());
  for (const std::string_view name : names) {
    reply.Bulk(name);
    reply.Integer(static_cast<int64_t>(call.state().subscriptions().CountOf(kKind, name)));
  }
}

void CountPatterns(const ServerCall& call) {
  call.reply().Integer(
      static_cast<int64_t>(call.state().subscriptions().NameCount(ChannelKind::kPattern)));
}

std::span<const Subcommand> PubSubSubcommands() {
  static constexpr Subcommand kSubcommands[] = {
      {"channels", -2, "[<pattern>]", "Return the channels that have subscribers.",
       ListNames<ChannelKind::kChannel>},
      {"numpat", 2, "", "Return the number of patterns that have subscribers.", CountPatterns},
      {"numsub", -2, "[<channel> ...]", "Return how many subscribers the channels have.",
       CountSubscribers<ChannelKind::kChannel>},
      {"shardchannels", -2, "[<pattern>]", "Return the shard channels that have subscribers.",
       ListNames<ChannelKind::kShard>},
      {"shardnumsub", -2, "[<shardchannel> ...]",
       "Return how many subscribers the shard channels have.",
       CountSubscribers<ChannelKind::kShard>},
  };
  return kSubcommands;
}

using enum Command::Flag;

constexpr Command kCommands[] = {
    {"monitor", 1, kAdmin, 0, 0, 0, "server", "1.0.0", "", "Sends a line for each command.",
     nullptr, nullptr, RunMonitor, "its lines have no place among the replies"},
    {"psubscribe", -2, kMessages | kWhenSubscribed, 0, 0, 0, "pubsub", "2.0.0",
     "pattern [pattern ...]", "Subscribes to the channels that match the patterns.", nullptr,
     nullptr, RunSubscribe<ChannelKind::kPattern>},
    {"publish", 3, kMessages | kFast, 0, 0, 0, "pubsub", "2.0.0", "channel message",
     "Sends a message to the subscribers of a channel, and returns how many there are.", nullptr,
     nullptr, RunPublish<ChannelKind::kChannel>},
    {"pubsub",
     -2,
     0,
     0,
     0,
     0,
     "pubsub",
     "2.8.0",
     "subcommand [argument ...]",
     "Tells which channels have subscribers.",
     nullptr,
     nullptr,
     RunSubcommand,
     {},
     PubSubSubcommands},
    {"punsubscribe", -1, kMessages | kWhenSubscribed, 0, 0, 0, "pubsub", "2.0.0",
     "[pattern [pattern ...]]", "Ends subscriptions to patterns, or all of them.", nullptr, nullptr,
     RunUnsubscribe<ChannelKind::kPattern>},
    {"spublish", 3, kMessages | kFast, 1, 1, 1, "pubsub", "7.0.0", "shardchannel message",
     "Sends a message to the subscribers of a shard channel, and returns how many there are.",
     nullptr, nullptr, RunPublish<ChannelKind::kShard>},
    {"ssubscribe", -2, kMessages | kWhenSubscribed, 1, -1, 1, "pubsub", "7.0.0",
     "shardchannel [shardchannel ...]", "Subscribes to shard channels.", nullptr, nullptr,
     RunSubscribe<ChannelKind::kShard>},
    {"subscribe", -2, kMessages | kWhenSubscribed, 0, 0, 0, "pubsub", "2.0.0",
     "channel [channel ...]", "Subscribes to channels.", nullptr, nullptr,
     RunSubscribe<ChannelKind::kChannel>},
    {"sunsubscribe", -1, kMessages | kWhenSubscribed, 1, -1, 1, "pubsub", "7.0.0",
     "[shardchannel [shardchannel ...]]", "Ends subscriptions to shard channels, or all of them.",
     nullptr, nullptr, RunUnsubscribe<ChannelKind::kShard>},
    {"unsubscribe", -1, kMessages | kWhenSubscribed, 0, 0, 0, "pubsub", "2.0.0",
     "[channel [channel ...]]", "Ends subscriptions to channels, or all of them.", nullptr, nullptr,
     RunUnsubscribe<ChannelKind::kChannel>},
};

}  // namespace

std::span<const Command> MessageCommands() { return kCommands; }

}  // namespace skep
