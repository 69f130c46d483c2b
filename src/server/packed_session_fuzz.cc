// Property: clients that speak the packed protocol correctly get one reply to each message, and it
// says what the operations must say; a message that is sent again gets the reply of the first time
// and is not done twice, however connections end; the server keeps nothing of clients that left.
//
// Input: a program. Byte 0 chooses (bit 0: the hash engine, else the tree; 1: a password is set; 2:
// replies have neither deadlines nor versions), then each byte is one choice: what a client does
// next, what its batch asks for (random_batch.h), how much of it is sent, who reads. When no byte
// is left, everything is sent, read and checked.
//
// The oracle of engines (oracle.h), one a keyspace, knows the right answers: it is given the
// batches in the order in which they were sent. The server may order messages that are under way at
// the same time otherwise, so a message is sent only if that makes no difference (Overlap).
//
// One server of each engine lives through many inputs and is emptied before each.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include "base/varint.h"
#include "engine/testing/oracle.h"
#include "engine/testing/random_batch.h"
#include "packed_session_fuzz_client.h"
#include "wire/packed_control.h"
#include "wire/packed_reply.h"
#include "wire/packed_request.h"

namespace skep::packed_session_fuzz {
namespace {

using packed::Header;
using packed::Kind;

constexpr size_t kInputBytesMax = 4096;
// The bytes that an input may store, about: so no scan is so long that the server cuts it.
constexpr size_t kStoredBytesMax = 24 * 1024;
constexpr int kInputsMax = 500;  // of one server
constexpr int kTurnsMax = 100'000;
constexpr size_t kClients = 3;
static_assert(kClients <= World::kKeyspaces);
// Another connection of the first client, which only repeats messages of the first connection.
constexpr size_t kTwin = kClients;
constexpr uint32_t kTwinMessages = 1 << 20;  // its own messages have ids above

// The bytes of the input; then zeros.
class Choices final : public Random {
 public:
  Choices(const uint8_t* data, size_t size) : left_(data), end_(data + size) {}
  // Returns the same byte eight times, so that small bounds and large ones get all of their range.
  uint64_t Next() override { return left_ == end_ ? 0 : *left_++ * 0x0101'0101'0101'0101u; }
  bool done() const { return left_ == end_; }

 private:
  const uint8_t* left_;
  const uint8_t* end_;
};

// ---- What may be under way together ----

bool ConcernsOneKey(Op op) {
  return !IsRange(op) && op != Op::kDeleteAll && op != Op::kSample && op != Op::kWalk;
}

Touches TouchesOf(const Batch& batch) {
  Touches touches;
  for (const Request& request : batch.requests()) {
    touches.writes |= IsWrite(request.op);
    touches.everything |= !ConcernsOneKey(request.op);
    touches.keys.insert(request.key);
    if (request.op == Op::kMove) touches.keys.insert(request.other);
  }
  touches.reads_released = batch.kind() == Batch::Kind::kAtomic && !touches.writes;
  return touches;
}

// Whether the answers of both, and their effects on the keys, are determined if `b` is sent after
// `a` and before a's reply.
bool Overlap(const Touches& a, const Touches& b, bool same_connection) {
  if ((!a.writes && !b.writes) || a.nothing() || b.nothing()) return true;
  if (a.everything || b.everything) return false;
  const bool disjoint =
      std::ranges::none_of(a.keys, [&](std::string_view key) { return b.keys.contains(key); });
  // Operations on one key take effect in the order in which a connection sent them.
  return disjoint || (same_connection && !a.reads_released && !b.reads_released);
}

// ---- Messages ----

// The requests are views of `batch`.
Batch WithoutDeadlines(const Batch& batch) {
  Batch without(batch.kind());
  auto part = batch.part_begins().begin();
  for (Request request : batch.requests()) {
    for (; part != batch.part_begins().end() && *part == without.size(); ++part) {
      without.BeginPart();
    }
    request.deadline_ms = 0;
    without.Add(request);
  }
  without.set_now_ms(batch.now_ms());
  without.set_snapshot(batch.snapshot());
  without.set_scan_bytes_max(batch.scan_bytes_max());
  without.set_scan_visits_max(batch.scan_visits_max());
  return without;
}

std::string Varint(uint64_t number) {
  std::string bytes;
  AppendVarint(bytes, number);
  return bytes;
}

uint64_t TakeNumber(std::string_view& payload) {
  uint64_t number = 0;
  SKEP_CHECK(TakeVarint(payload, &number));
  return number;
}

std::string_view PayloadOf(const std::string& message) {
  return std::string_view(message).substr(sizeof(Header));
}

class Program {
 public:
  Program(World& world, uint8_t choice, Choices& choices);

  void Run();

 private:
  uint64_t Below(uint64_t bound) { return choices_.Below(bound); }
  auto AnyOf(auto& list) {
    return std::next(list.begin(), static_cast<ptrdiff_t>(Below(list.size())));
  }
  Client& ClientOf(const Message& message) { return clients_[message.client]; }
  Oracle& OracleOf(const Message& message) { return oracles_[message.header.keyspace]; }
  uint64_t version_max() const { return tells_ && traits_.multi_version ? UINT64_MAX : 0; }

  // What a program may do.
  void Move();
  void MoveBytes();
  void SendBatch();
  void FillBatch(Message& message);
  void SendPing(size_t client);
  void Ask();
  void Flood(size_t client);
  void LogIn(size_t client);
  void OpenSnapshot();
  void CloseSnapshot();
  void BeginWatch();
  void EndWatch();
  void Repeat();
  const Message* OnlyUnanswered(size_t client) const;
  void Break(size_t client);

  // Parts of sending and checking messages.
  using Take = std::function<void(std::string_view payload)>;
  Message& Control(size_t client, Kind kind, uint32_t keyspace, std::string_view payload,
                   Take take = {}, Code refusal = Code::kOk);
  bool IsStranger(const Message& message);
  void Send(std::unique_ptr<Message> message);
  void Turn();
  void Settle();
  void CheckAnswered();
  void Check(Message& message);
  void CheckBatch(Message& message);

  void Begin(size_t client, bool authenticates);
  void LoseHandles(size_t client);
  void CheckContents();
  void End();

  World& world_;
  Choices& choices_;
  const bool needs_password_;
  const bool tells_;  // replies have deadlines and versions
  const EngineTraits traits_;
  RandomBatch random_;
  std::vector<Oracle> oracles_;  // by keyspace
  std::vector<Client> clients_;
  std::deque<std::unique_ptr<Message>> sent_;  // in the order of sending; not yet checked
  uint64_t snapshots_ = 0;                     // snapshots opened so far
  size_t stored_bytes_ = 0;                    // bytes stored if nothing was deleted
  std::array<std::vector<RandomBatch::WatchedKey>, World::kKeyspaces> watched_;  // ever watched
};

// The traits that the oracle expects.
EngineTraits TraitsOf(World& world, bool tells) {
  EngineTraits traits = world.engine(0).traits();
  traits.multi_version = traits.multi_version && tells;
  return traits;
}

Program::Program(World& world, uint8_t choice, Choices& choices)
    : world_(world),
      choices_(choices),
      needs_password_((choice & 2) != 0),
      tells_((choice & 4) == 0),
      traits_(TraitsOf(world, tells_)),
      random_(choices) {
  static uint64_t last_client_id = 0;  // servers remember the clients of other inputs
  world_.Reset(needs_password_);
  for (uint32_t i = 0; i < World::kKeyspaces; ++i) {
    oracles_.emplace_back(traits_).Advance(world_.now_ms());
  }
  const uint64_t first_id = last_client_id + 1;
  for (size_t i = 0; i < kClients; ++i) clients_.emplace_back(world_, ++last_client_id, 0);
  clients_.emplace_back(world_, first_id, kTwinMessages);
}

void Program::Run() {
  for (size_t i = 0; i < clients_.size(); ++i) {
    Begin(i, needs_password_ && Below(4) != 0);
  }
  while (!choices_.done() && stored_bytes_ < kStoredBytesMax) {
    Move();
    MoveBytes();
    CheckAnswered();
  }
  Settle();
  CheckContents();
  End();
}

void Program::Move() {
  switch (Below(40)) {
    case 0:
      return SendPing(Below(clients_.size()));
    case 1:
      return Ask();
    case 2:
      return needs_password_ ? LogIn(Below(clients_.size()))
             : Below(4) == 0 ? Flood(Below(clients_.size()))
                             : SendBatch();
    case 3:
    case 4:
      return OpenSnapshot();
    case 5:
      return CloseSnapshot();
    case 6:
      return BeginWatch();
    case 7:
      return EndWatch();
    case 8:
    case 9:
      return Repeat();
    case 10:
    case 11:
      return Break(Below(clients_.size()));
    case 12:
      Settle();
      return world_.LetTimePass(Below(16) == 0 ? 150 : 1 + Below(4));
    default:
      for (uint64_t left = 1 + Below(4); left > 0; --left) SendBatch();
  }
}

// Sends some of the bytes that are to be sent; the server has a turn or not, with or without
// releasing writes; and a client reads or not.
void Program::MoveBytes() {
  for (uint32_t i = 0; i < World::kKeyspaces; ++i) {
    if (Below(8) == 0) world_.engine(i).set_late(Below(4) != 0);
  }
  const uint64_t lot = Below(8);
  if (lot == 0) return;
  Client& client = clients_[Below(clients_.size())];
  if (lot < 4) {
    client.Push(Below(client.unsent() + 1));
  } else {
    for (Client& each : clients_) each.Push();
  }
  if (lot % 4 >= 1) world_.Turn();
  if (lot % 4 >= 2) client.Pull();
  if (lot == 7) Turn();
}

// ---- Moves ----

void Program::SendBatch() {
  auto message =
      std::make_unique<Message>(Below(3) == 0 ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
  message->client = Below(kClients);
  Header& header = message->header;
  header.id = ClientOf(*message).NewMessageId();
  // Mostly a keyspace of its own, so that much can be under way.
  header.keyspace =
      static_cast<uint16_t>(Below(3) == 0 ? Below(World::kKeyspaces) : message->client);
  if (tells_) header.flags = packed::kWantDeadlines | packed::kWantVersions;
  if (Below(2) == 0) header.flags |= packed::kRemember;
  if (Below(8) == 0) header.flags |= packed::kSync;
  FillBatch(*message);
  if (Below(64) == 0) {
    header.keyspace = World::kKeyspaces;
    message->refusal = Code::kInvalidArgument;
  }
  packed::AppendBatch(message->bytes, header, message->batch, message->snapshot);
  header = packed::Read<Header>(message->bytes);
  // Before the password, a message of this length ends the connection.
  if (IsStranger(*message) && message->bytes.size() > kStrangerBytesMax) return;
  Send(std::move(message));
}

void Program::FillBatch(Message& message) {
  constexpr uint64_t kNoSnapshot = 1'000'000;
  Batch& batch = message.batch;
  std::vector<Client::Snapshot>& snapshots = ClientOf(message).snapshots;
  batch.set_now_ms(world_.now_ms());
  if (!snapshots.empty() && Below(4) == 0) {
    const Client::Snapshot& snapshot = *AnyOf(snapshots);
    message.header.keyspace = static_cast<uint16_t>(snapshot.keyspace);
    message.snapshot = snapshot.number;
    batch.set_snapshot(snapshot.ref);
  } else if (Below(64) == 0) {
    message.snapshot = kNoSnapshot;
    message.refusal = Code::kSnapshotTooOld;
  }
  random_.set_watched(watched_[message.header.keyspace]);
  // Writes at a snapshot, rarely: they must be refused.
  message.snapshot != 0 && Below(8) != 0 ? random_.FillWithReads(batch) : random_.Fill(batch);
  for (const Request& request : batch.requests()) {
    stored_bytes_ += request.key.size() + request.value.size();
  }
  batch.DropFrom(static_cast<uint32_t>(batch.size()));  // a part without requests is not sent
  if (!tells_) {
    message.original = std::move(batch);
    batch = WithoutDeadlines(message.original);
  }
  message.names_handles =
      message.snapshot != 0 || std::ranges::any_of(batch.requests(), [](const Request& r) {
        return r.op == Op::kRequireUnchanged;
      });
  if (message.snapshot == 0) message.touches = TouchesOf(batch);
}

// Some pings are long: a client that does not read their replies is not read any more.
void Program::SendPing(size_t client) {
  constexpr size_t kStep = 250;
  const bool is_long = Below(4) == 0 && (!needs_password_ || clients_[client].is_authenticated);
  std::string payload(is_long ? kStep * Below(256) : Below(32), 'p');
  if (!payload.empty()) payload.back() = 'q';
  Control(client, Kind::kPing, 0, payload,
          [payload](std::string_view reply) { SKEP_CHECK(reply == payload); });
}

void Program::Ask() {
  const size_t client = Below(clients_.size());
  const auto keyspace = static_cast<uint32_t>(Below(World::kKeyspaces));
  switch (Below(5)) {
    case 0:
      Control(client, Kind::kKeyspace, keyspace, {}, [this](std::string_view reply) {
        EngineTraits told;
        SKEP_CHECK(packed::ReadTraits(reply, &told));
        SKEP_CHECK(told.name == traits_.name && told.ordered == traits_.ordered);
      });
      break;
    case 1:
      Control(client, Kind::kStatistics, keyspace, {}, [](std::string_view reply) {
        packed::KeyspaceStatistics told;
        SKEP_CHECK(packed::ReadStatistics(reply, &told));
      });
      break;
    case 2:
      Control(client, Kind::kSave, keyspace, Varint(0), {}, Code::kNotSupported);
      break;
    case 3:
      Control(client, Kind::kTop, keyspace, Varint(Below(4)) + "k", CheckTop,
              traits_.ordered ? Code::kOk : Code::kNotSupported);
      break;
    default:
      Control(client, Kind::kError, keyspace, {}, {}, Code::kInvalidArgument);
  }
}

// Asks for more replies than a server keeps for a client that does not read.
void Program::Flood(size_t client) {
  constexpr size_t kBytes = 64 * 1024;
  constexpr size_t kPings = kUnsentMax / kBytes + 4;
  for (size_t i = 0; i < kPings; ++i) {
    Control(client, Kind::kPing, 0, std::string(kBytes, 'f'),
            [](std::string_view reply) { SKEP_CHECK(reply.size() == kBytes); });
  }
  for (size_t turns = 0; turns < kPings * kBytes / World::kBufferBytes; ++turns) {
    clients_[client].Push();
    world_.Turn();
  }
}

// Now and then uses the wrong password.
void Program::LogIn(size_t client) {
  Settle();
  const bool is_right = Below(4) != 0;
  Control(
      client, Kind::kAuth, 0, is_right ? World::kPassword : "wrong",
      [this, client](std::string_view reply) {
        SKEP_CHECK(reply.empty());
        clients_[client].is_authenticated = true;
      },
      is_right || !needs_password_ ? Code::kOk : Code::kInvalidArgument);
  Settle();
}

void Program::OpenSnapshot() {
  const size_t client = Below(kClients);
  const auto keyspace = static_cast<uint32_t>(Below(World::kKeyspaces));
  Settle();
  Control(
      client, Kind::kOpenSnapshot, keyspace, {},
      [this, client, keyspace](std::string_view reply) {
        const uint64_t number = TakeNumber(reply);
        const Version version = TakeNumber(reply);
        const uint64_t now_ms = TakeNumber(reply);
        SKEP_CHECK(reply.empty() && now_ms == world_.now_ms());
        const SnapshotRef ref{.version = version, .id = ++snapshots_, .now_ms = now_ms};
        oracles_[keyspace].Advance(now_ms);
        oracles_[keyspace].OpenSnapshot(ref);
        clients_[client].snapshots.push_back({keyspace, number, ref});
      },
      traits_.snapshots ? Code::kOk : Code::kNotSupported);
  Settle();
}

void Program::CloseSnapshot() {
  const size_t client = Below(kClients);
  std::vector<Client::Snapshot>& snapshots = clients_[client].snapshots;
  if (snapshots.empty()) return;
  Settle();
  const auto at = AnyOf(snapshots);
  const Client::Snapshot closed = *at;
  snapshots.erase(at);
  oracles_[closed.keyspace].DropSnapshot(closed.ref);
  Control(client, Kind::kCloseSnapshot, closed.keyspace, Varint(closed.number));
  Settle();
}

void Program::BeginWatch() {
  const size_t client = Below(kClients);
  const auto keyspace = static_cast<uint32_t>(Below(World::kKeyspaces));
  Settle();
  Batch bytes;
  const std::string key(random_.Key(bytes));
  Control(client, Kind::kWatch, keyspace, key, [=, this](std::string_view reply) {
    const uint64_t number = TakeNumber(reply);
    SKEP_CHECK(reply.empty());
    oracles_[keyspace].Watch(number, key, world_.now_ms());
    clients_[client].watches.push_back({keyspace, number, key});
    watched_[keyspace].push_back({.watch = number, .key = key});
  });
  Settle();
}

void Program::EndWatch() {
  const size_t client = Below(kClients);
  std::vector<Client::Watch>& watches = clients_[client].watches;
  if (watches.empty()) return;
  Settle();
  const auto at = AnyOf(watches);
  const Client::Watch ended = *at;
  watches.erase(at);
  oracles_[ended.keyspace].Unwatch(ended.number);
  Control(client, Kind::kUnwatch, ended.keyspace, Varint(ended.number));
  Settle();
}

// Sends a message again, on its connection or on another one of its client. It was answered; or, on
// the other connection, it may still be under way, if no message before it must be done first.
void Program::Repeat() {
  const size_t client = Below(kClients);
  const auto& remembered = clients_[client].remembered;
  const bool on_twin = client == 0 && Below(2) == 0;
  const Message* const first = on_twin ? OnlyUnanswered(client) : nullptr;
  if (first == nullptr && remembered.empty()) return;
  auto message = std::make_unique<Message>();
  message->bytes = first != nullptr ? first->bytes : AnyOf(remembered)->second.message;
  message->header = packed::Read<Header>(message->bytes);
  message->is_repeat = true;
  message->client = on_twin ? kTwin : client;
  if (ClientOf(*message).IsUnderWay(message->header.id)) return;
  Send(std::move(message));
}

// A batch of the client that can be sent again, if it is the only message under way.
const Message* Program::OnlyUnanswered(size_t client) const {
  const Message* only = nullptr;
  for (const auto& message : sent_) {
    const bool is_waited_for = message->client == client && message->reply.empty();
    if (!is_waited_for || message->touches.nothing()) continue;
    if (only != nullptr || !message->may_repeat()) return nullptr;
    only = message.get();
  }
  return only;
}

// Ends the connection, perhaps in the middle of a message.
void Program::Break(size_t which) {
  Client& client = clients_[which];
  // Other clients may be using its watches.
  if (!client.watches.empty()) Settle();
  while (client.WouldLose()) Turn();
  client.Disconnect();
  CheckAnswered();
  LoseHandles(which);
  Begin(which, std::exchange(client.is_authenticated, false));
}

Message& Program::Control(size_t client, Kind kind, uint32_t keyspace, std::string_view payload,
                          Take take, Code refusal) {
  auto message = std::make_unique<Message>();
  message->client = client;
  message->refusal = refusal;
  message->take = std::move(take);
  const size_t begin =
      packed::BeginMessage(message->bytes, {.id = clients_[client].NewMessageId(),
                                            .kind = kind,
                                            .keyspace = static_cast<uint16_t>(keyspace)});
  message->bytes.append(payload);
  packed::EndMessage(message->bytes, begin);
  message->header = packed::Read<Header>(message->bytes);
  Message& sent = *message;
  Send(std::move(message));
  return sent;
}

bool Program::IsStranger(const Message& message) {
  return needs_password_ && !ClientOf(message).is_authenticated;
}

void Program::Send(std::unique_ptr<Message> message) {
  // Before the password, a client that does not read some KiB of replies is cut off.
  constexpr size_t kStrangerMessagesMax = 16;
  const bool is_free = message->header.kind == Kind::kAuth || message->header.kind == Kind::kPing;
  if (IsStranger(*message)) {
    if (!is_free) message->refusal = Code::kInvalidArgument;
    if (ClientOf(*message).under_way() >= kStrangerMessagesMax) Settle();
  }
  if (message->refusal != Code::kOk) message->touches = {};
  const bool may_overlap = std::ranges::all_of(sent_, [&](const auto& other) {
    return other->header.keyspace != message->header.keyspace ||
           Overlap(other->touches, message->touches, other->client == message->client);
  });
  if (!may_overlap) Settle();
  ClientOf(*message).Send(*message);
  sent_.push_back(std::move(message));
}

// The server has a turn without being sent more, all writes are released, and every client reads.
void Program::Turn() {
  for (uint32_t i = 0; i < World::kKeyspaces; ++i) world_.engine(i).ReleaseAll();
  world_.Turn();
  for (Client& client : clients_) client.Pull();
}

// Turns until every message is answered, and nothing more has come.
void Program::Settle() {
  CheckAnswered();
  for (int turns = 0; !sent_.empty() || !std::ranges::all_of(clients_, &Client::IsQuiet); ++turns) {
    SKEP_CHECK(turns < kTurnsMax);
    for (Client& client : clients_) client.Push();
    Turn();
    CheckAnswered();
  }
}

// Checks the answers in the order of sending, as far as it matters.
void Program::CheckAnswered() {
  bool all_before = true;
  std::erase_if(sent_, [&](const std::unique_ptr<Message>& message) {
    const bool is_answered = !message->reply.empty();
    all_before = all_before && is_answered;
    const bool may_overtake = message->touches.nothing() && !message->is_repeat;
    if (!is_answered || !(all_before || may_overtake)) return false;
    Check(*message);
    return true;
  });
}

void Program::Check(Message& message) {
  const auto header = packed::Read<Header>(message.reply);
  std::string_view payload = PayloadOf(message.reply);
  SKEP_CHECK(header.keyspace == message.header.keyspace);
  if (header.has(packed::kFailed) || message.refusal != Code::kOk) {
    Status why;
    SKEP_CHECK(header.has(packed::kFailed) && packed::TakeStatus(payload, &why));
    SKEP_CHECK(payload.empty() && why.code() == message.refusal);
    return;
  }
  if (message.is_repeat) {
    const auto& remembered = clients_[message.client == kTwin ? 0 : message.client].remembered;
    SKEP_CHECK(message.reply == remembered.at(message.header.id).reply);
  } else if (message.is_batch()) {
    CheckBatch(message);
  } else if (message.take) {
    message.take(payload);
  } else {
    SKEP_CHECK(payload.empty());
  }
}

void Program::CheckBatch(Message& message) {
  const auto header = packed::Read<Header>(message.reply);
  SKEP_CHECK(header.count == message.batch.size());
  SKEP_CHECK(message.batch.now_ms() == world_.now_ms());
  SKEP_CHECK(packed::ReadReply(header, PayloadOf(message.reply), message.batch).ok());
  const std::string difference = OracleOf(message).Check(message.batch, version_max(), 0);
  if (!difference.empty()) fmt::print(stderr, "message {}: {}\n", message.header.id, difference);
  SKEP_CHECK(difference.empty());
  if (!message.may_repeat()) return;
  ClientOf(message).remembered[message.header.id] = {message.bytes, message.reply};
}

// Begins a connection, on which the password comes first, if it is given; then all messages under
// way.
void Program::Begin(size_t which, bool authenticates) {
  Client& client = clients_[which];
  client.Connect();
  if (authenticates) {
    const Message& login = Control(which, Kind::kAuth, 0, World::kPassword);
    while (login.reply.empty()) {
      client.Push();
      Turn();
    }
    client.is_authenticated = true;
  }
  client.SendAgain();
}

// Forgets the snapshots and watches of a connection that has ended.
void Program::LoseHandles(size_t which) {
  Client& client = clients_[which];
  for (const Client::Snapshot& snapshot : client.snapshots) {
    oracles_[snapshot.keyspace].DropSnapshot(snapshot.ref);
  }
  client.snapshots.clear();
  for (const auto& message : sent_) {
    const bool reads_at = message->client == which && message->snapshot != 0;
    if (reads_at && message->refusal == Code::kOk) message->refusal = Code::kSnapshotTooOld;
  }
  for (const Client::Watch& watch : client.watches) {
    oracles_[watch.keyspace].Unwatch(watch.number);
  }
  client.watches.clear();
  std::array<size_t, World::kKeyspaces> watches{};
  for (const Client& other : clients_) {
    for (const Client::Watch& watch : other.watches) ++watches[watch.keyspace];
  }
  // Waits until the server has noticed: until then the watches are held in vain.
  for (uint32_t i = 0; i < World::kKeyspaces; ++i) {
    for (int turns = 0; world_.engine(i).watches() > watches[i]; ++turns) {
      SKEP_CHECK(turns < kTurnsMax);
      Turn();
    }
  }
}

// ---- At the end ----

void Program::CheckContents() {
  for (uint32_t i = 0; i < World::kKeyspaces; ++i) {
    Batch all;
    all.set_now_ms(world_.now_ms());
    traits_.ordered ? all.Scan(Range::All()) : all.Walk(0);
    world_.engine(i).Execute(all);
    const std::string difference = oracles_[i].Check(all, version_max(), 0);
    if (!difference.empty()) fmt::print(stderr, "keyspace {}: {}\n", i, difference);
    SKEP_CHECK(difference.empty());
    const char* const broken = world_.engine(i).Verify();
    if (broken != nullptr) fmt::print(stderr, "keyspace {}: {}\n", i, broken);
    SKEP_CHECK(broken == nullptr);
  }
}

// Ends all connections, some in the middle of a message, some with an end of their stream.
void Program::End() {
  constexpr std::string_view kPart("\x09\0\0\0\x01", 5);
  for (size_t i = 0; i < clients_.size(); ++i) {
    Client& client = clients_[i];
    if (i % 2 == 0) client.SendPart(kPart);
    client.Push();
    i < 2 ? client.FinishSending() : client.Disconnect();
  }
  for (int turns = 0; turns < 3 || world_.connections() > 0; ++turns) {
    SKEP_CHECK(turns < kTurnsMax);
    world_.Turn();
  }
  for (uint32_t i = 0; i < World::kKeyspaces; ++i) {
    SKEP_CHECK(world_.engine(i).watches() == 0);
    SKEP_CHECK(world_.engine(i).Statistics().snapshots == 0);
  }
}

template <bool kIsHash>
World& WorldOf() {
  static const EngineInfo info{
      .name = "late", .summary = "", .make = [](const EngineOptions& options) {
        return std::unique_ptr<Engine>(
            std::make_unique<LateEngine>(FindEngine(kIsHash ? "hash" : "btree")->make(options)));
      }};
  static std::optional<World> world;
  static int inputs = 0;
  if (inputs++ % kInputsMax == 0) world.emplace(info);
  return *world;
}

}  // namespace
}  // namespace skep::packed_session_fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skep::packed_session_fuzz;
  if (size == 0 || size > kInputBytesMax) return 0;
  Choices choices(data + 1, size - 1);
  World& world = (data[0] & 1) != 0 ? WorldOf<true>() : WorldOf<false>();
  Program(world, data[0], choices).Run();
  return 0;
}
