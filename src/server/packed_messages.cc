#include "server/packed_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/varint.h"
#include "engine/leaf_links.h"
#include "server/password.h"
#include "server/server_call.h"
#include "wire/byte_writer.h"
#include "wire/packed_control.h"
#include "wire/packed_reply.h"
#include "wire/packed_top.h"

namespace skep {
namespace {

using packed::Header;
using packed::Kind;

constexpr Status kMalformed(Code::kInvalidArgument, "the payload is not that of its kind");

struct Message {
  ServerHost& host;
  Session& session;
  const Header& header;
  std::string_view payload;

  Engine& engine() const { return host.state().keyspaces().at(header.keyspace); }
};

// The payload of a reply, or an error.
using Answer = Result<std::string>;

Answer Varints(std::initializer_list<uint64_t> numbers) {
  std::string payload;
  for (const uint64_t number : numbers) AppendVarint(payload, number);
  return payload;
}

// The number in a payload that has nothing else.
std::optional<uint64_t> OnlyVarint(std::string_view payload) {
  uint64_t number = 0;
  if (!TakeVarint(payload, &number) || !payload.empty()) return std::nullopt;
  return number;
}

Answer Authenticate(const Message& message) {
  const std::string& required = message.host.turn().options().requirepass;
  if (!required.empty() && !IsPassword(message.payload, required)) {
    message.host.state().log().Report(
        Incident::kWrongPassword,
        fmt::format("a wrong password came from {}", message.session.info->peer));
    return Fail(Code::kInvalidArgument, "the password is wrong");
  }
  message.session.authenticated = true;
  message.session.has_logged_in = true;
  message.session.packed->EnterClient(message.host.state().replies());
  return std::string();
}

Answer ReportTraits(const Message& message) {
  std::string payload;
  packed::AppendTraits(payload, message.engine().traits());
  return payload;
}

Answer OpenSnapshot(const Message& message) {
  Engine& engine = message.engine();
  const auto ref = engine.OpenSnapshot(message.host.turn().now().ms);
  if (!ref) return Fail(ref.error());
  const auto number = message.session.packed->Keep(message.header.keyspace, Snapshot(engine, *ref));
  if (!number) return Fail(number.error());
  return Varints({*number, ref->version, ref->now_ms});
}

Answer CloseSnapshot(const Message& message) {
  const auto number = OnlyVarint(message.payload);
  if (!number) return Fail(kMalformed);
  message.session.packed->Drop(*number);
  return std::string();
}

Answer BeginWatch(const Message& message) {
  Engine& engine = message.engine();
  const auto id = engine.Watch(message.payload, message.host.turn().now().ms);
  if (!id) return Fail(id.error());
  const Status kept = message.session.packed->Keep(message.header.keyspace, Watch(engine, *id),
                                                   message.payload.size());
  if (!kept.ok()) return Fail(kept);
  return Varints({*id});
}

Answer EndWatch(const Message& message) {
  const auto number = OnlyVarint(message.payload);
  if (!number) return Fail(kMalformed);
  message.session.packed->Unwatch(message.header.keyspace, *number);
  return std::string();
}

Answer ReportStatistics(const Message& message) {
  Engine* const used = message.host.state().keyspaces().if_used(message.header.keyspace);
  if (used == nullptr) {
    std::string none;
    packed::AppendStatistics(none, {});
    return none;
  }
  Engine& engine = *used;
  packed::KeyspaceStatistics statistics{
      .engine = engine.Statistics(), .released = engine.told(), .details = {}};
  engine.Describe(message.host.turn().now().ms, [&](std::string_view name, uint64_t value) {
    statistics.details.emplace_back(name, value);
  });
  std::string payload;
  packed::AppendStatistics(payload, statistics);
  return payload;
}

Answer ReportTop(const Message& message) {
  packed::TopQuestion question;
  if (!packed::ReadTopQuestion(message.payload, &question)) return Fail(kMalformed);
  const HasLeafLinks* const tree = LeafLinksOf(message.engine());
  if (tree == nullptr) return Fail(Code::kNotSupported, "the keyspace's engine has no such links");
  const uint64_t links_max = question.links_max == 0 ? packed::kTopLinksMax : question.links_max;
  std::string payload;
  packed::AppendTop(
      payload,
      tree->LinksFrom(question.from,
                      static_cast<uint32_t>(std::min<uint64_t>(links_max, packed::kTopLinksMax)),
                      packed::kTopBytesMax));
  return payload;
}

// Begins a snapshot, or returns the result of the one that was begun when `snapshots` - 1 had
// ended.
Answer Save(const Message& message) {
  durable::Persistence* const persistence = message.host.state().persistence();
  if (persistence == nullptr) return Fail(Code::kNotSupported, "the server has no directory");
  const auto asked = OnlyVarint(message.payload);
  if (!asked) return Fail(kMalformed);
  const auto snapshots = persistence->saver().statistics();
  if (*asked == 0) {
    if (!persistence->saver().Request()) {
      return Fail(Code::kUnavailable, "a snapshot is being written");
    }
    return Varints({snapshots.finished + 1});
  }
  if (snapshots.finished < *asked) return Varints({*asked});
  if (!snapshots.last_status.ok()) return Fail(snapshots.last_status);
  return Varints({0});
}

Answer AnswerOf(const Message& message) {
  switch (message.header.kind) {
    case Kind::kAuth:
      return Authenticate(message);
    case Kind::kPing:
      return std::string(message.payload);
    case Kind::kKeyspace:
      return ReportTraits(message);
    case Kind::kOpenSnapshot:
      return OpenSnapshot(message);
    case Kind::kCloseSnapshot:
      return CloseSnapshot(message);
    case Kind::kWatch:
      return BeginWatch(message);
    case Kind::kUnwatch:
      return EndWatch(message);
    case Kind::kStatistics:
      return ReportStatistics(message);
    case Kind::kSave:
      return Save(message);
    case Kind::kTop:
      return ReportTop(message);
    case Kind::kBatch:
    case Kind::kAtomic:
    case Kind::kError:
      break;
  }
  return Fail(Code::kInvalidArgument, "a client sends no messages of this kind");
}

}  // namespace

void RunMessage(ServerHost& host, Session& session, const Header& header,
                std::string_view payload) {
  const Answer answer = AnswerOf({host, session, header, payload});
  if (!answer) return packed::AppendFailure(session.out, header, answer.error());
  const size_t begin = packed::BeginMessage(
      session.out, {.id = header.id, .kind = header.kind, .keyspace = header.keyspace});
  session.out.append(*answer);
  packed::EndMessage(session.out, begin);
}

}  // namespace skep
