#include "client/connection.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>
#include <vector>

#include "base/random.h"
#include "skep/copy_bytes.h"
#include "wire/packed_reply.h"

namespace skep::client {
namespace {

constexpr size_t kReadBytes = 256 * 1024;
// Who begins more waits until it is less: bytes that are not sent, and messages, of which the
// server remembers so many (server/reply_memory.h).
constexpr size_t kUnsentMax = 1 << 20;
constexpr size_t kUnderWayMax = 1000;
constexpr uint32_t kReplyBytesMax = uint32_t{3} << 30;  // more than a batch's answers can be
constexpr uint64_t kFirstPauseMs = 5;
constexpr uint64_t kPauseMaxMs = 1000;
// Ids of messages: the last one, and from where on it is time to take a new client id.
constexpr uint32_t kIdMax = UINT32_MAX;
constexpr uint32_t kIdsEndSoon = kIdMax - (uint32_t{1} << 24);
constexpr uint64_t kQuietMs = 100;  // after which the connection may have ended unnoticed

constexpr size_t kDatagramMax = 1400;  // bytes of one: they fit into a packet of most links
constexpr uint16_t kDatagramReplyMax = 32'768;  // of a reply: more than one packet, if need be
constexpr uint64_t kAnswerMs = 20;
constexpr uint32_t kTriesMax = 3;
constexpr uint32_t kSilentMax = 3;

constexpr Status kNoAnswer(Code::kUnavailable, "no answer in time");
constexpr Status kBroken(Code::kUnavailable,
                         "the connection broke: whether it was done is not known");
constexpr Status kOtherServer(Code::kUnavailable,
                              "the server was restarted: whether it was done is not known");
constexpr Status kForgotten(Code::kUnavailable,
                            "the server does not know any more whether it was done");
constexpr Status kNoIds(Code::kUnavailable, "the client id has no message ids that are new");
constexpr Status kNotSkep(Code::kUnavailable, "the server does not speak the packed protocol");

}  // namespace

Connection::Connection(const ConnectOptions& options, Network& network, Clock& clock,
                       uint64_t client)
    : options_(options),
      network_(network),
      clock_(clock),
      poller_(network.NewPoller()),
      client_(client),
      read_buffer_(std::make_unique<char[]>(kReadBytes)) {}

uint64_t Connection::NewClientId() { return SystemRandom().Next() | 1; }

Connection::~Connection() {
  CloseDatagrams();
  if (stream_ != nullptr) poller_->Remove(*stream_);
}

packed::ServerHello Connection::hello() const {
  std::lock_guard lock(mutex_);
  return hello_;
}

uint32_t Connection::generation() const {
  std::lock_guard lock(mutex_);
  return generation_;
}

// ---- Connecting ----

Status Connection::Connect() {
  Lock lock(mutex_);
  if (IsConnected()) return {};
  return ConnectOnce(lock, clock_.MonotonicMs() + options_.timeout_ms);
}

// Others may come and go while it waits.
Status Connection::ConnectOnce(Lock& lock, uint64_t until_ms) {
  lock.unlock();
  auto made = MakeLink(until_ms);
  lock.lock();
  Status s = made ? poller_->Add(*made->stream, nullptr, true, false) : made.error();
  if (!s.ok()) {
    // It will be the same the next time.
    if (s.code() == Code::kInvalidArgument || s.code() == Code::kNotSupported) refused_ = s;
    return s;
  }
  stream_ = std::move(made->stream);
  hello_ = made->hello;
  wants_write_ = false;
  ++generation_;
  if (s = TakeNewIds(); !s.ok()) return s;
  OpenDatagrams();
  return {};
}

Result<Connection::Link> Connection::MakeLink(uint64_t until_ms) const {
  auto stream = network_.Connect(options_.address, PatienceMs(until_ms));
  if (!stream) {
    const Status s = stream.error();
    return s.code() == Code::kIo ? Fail(Code::kUnavailable, "cannot connect", s.detail()) : Fail(s);
  }
  Link link{.stream = std::move(*stream), .hello = {}};
  const auto poller = network_.NewPoller();
  if (Status s = poller->Add(*link.stream, nullptr, true, false); !s.ok()) return Fail(s);
  const Status shaken = Handshake(*link.stream, *poller, until_ms, &link.hello);
  poller->Remove(*link.stream);
  if (!shaken.ok()) return Fail(shaken);
  return link;
}

Status Connection::Handshake(Stream& stream, Poller& poller, uint64_t until_ms,
                             packed::ServerHello* hello) const {
  std::string bytes;
  packed::Append(bytes, packed::ClientHello{.client = client_});
  std::string reply;
  Status s = Exchange(stream, poller, bytes, sizeof(packed::ServerHello), until_ms, &reply);
  if (!s.ok()) return s;
  if (!packed::IsHello(reply)) return kNotSkep;
  *hello = packed::Read<packed::ServerHello>(reply);
  if (hello->version != packed::kVersion) {
    return {Code::kNotSupported, "the server speaks other versions of the protocol"};
  }
  if ((hello->features & packed::kNeedsAuth) == 0) return {};
  bytes.clear();
  const size_t begin = packed::BeginMessage(bytes, {.kind = packed::Kind::kAuth});
  bytes.append(options_.password);
  packed::EndMessage(bytes, begin);
  s = Exchange(stream, poller, bytes, sizeof(packed::Header), until_ms, &reply);
  if (!s.ok()) return s;
  if ((packed::Read<packed::Header>(reply).flags & packed::kFailed) != 0) {
    return {Code::kInvalidArgument, "the password is wrong"};
  }
  return {};
}

// Sends the bytes and receives so many.
Status Connection::Exchange(Stream& stream, Poller& poller, std::string_view bytes,
                            size_t reply_bytes, uint64_t until_ms, std::string* reply) const {
  // It is short and the first one: a socket takes it whole.
  if (stream.Write(bytes) != static_cast<ssize_t>(bytes.size())) return kNotSkep;
  reply->clear();
  while (reply->size() < reply_bytes) {
    const int patience_ms = PatienceMs(until_ms);
    if (patience_ms == 0) return kNoAnswer;
    poller.Wait(patience_ms);
    const size_t had = reply->size();
    reply->resize(reply_bytes);
    const ssize_t got = stream.Read(reply->data() + had, reply_bytes - had);
    reply->resize(had + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0 || (got < 0 && got != -EAGAIN)) return kNotSkep;
  }
  return {};
}

// The ids of messages that were never sent are to be new to the server.
Status Connection::TakeNewIds() {
  const auto is_taken = [&](const auto& entry) {
    return !entry.second->sent_before && entry.first < hello_.first_new;
  };
  if (hello_.first_new <= last_id_ && std::ranges::none_of(under_way_, is_taken)) return {};
  if (hello_.first_new + under_way_.size() > uint64_t{kIdMax} + 1) {
    TakeNewClient();
    return kNoIds;
  }
  last_id_ = std::max(last_id_, static_cast<uint32_t>(std::max<uint64_t>(hello_.first_new, 1) - 1));
  std::vector<Message*> unsent;
  std::erase_if(under_way_, [&](const auto& entry) {
    if (!entry.second->sent_before) unsent.push_back(entry.second);
    return !entry.second->sent_before;
  });
  for (Message* const message : unsent) GiveId(*message);
  return {};
}

// The next id. They are under way in the order of their ids, and so of their deadlines.
void Connection::GiveId(Message& message) {
  packed::Header header = packed::Read<packed::Header>(message.bytes);
  header.id = ++last_id_;
  message.bytes.replace(0, sizeof(header), reinterpret_cast<const char*>(&header), sizeof(header));
  message.header.id = header.id;
  under_way_.emplace(header.id, &message);
}

// Waits until nothing is under way, and takes another client id.
void Connection::RenewClient(Lock& lock) {
  while (last_id_ == kIdMax) {
    if (has_leader_) {
      leaderless_.wait(lock);
    } else if (under_way_.empty()) {
      TakeNewClient();
    } else {
      LeadOnce(lock);
    }
  }
}

// To the server it is another client from here on, with a new connection. What may have been done
// under the old name, and must not be done twice, cannot be sent again.
void Connection::TakeNewClient() {
  Break({});
  client_ = NewClientId();
  last_id_ = 0;
  for (const auto& [id, message] : std::exchange(under_way_, {})) {
    GiveId(*message);
    if (message->sent_before && !message->may_repeat) End(*message, kForgotten);
  }
}

// How long it is until then, for those who wait.
int Connection::PatienceMs(uint64_t until_ms) const {
  const uint64_t now_ms = clock_.MonotonicMs();
  const uint64_t left_ms = now_ms < until_ms ? until_ms - now_ms : 0;
  return static_cast<int>(std::min<uint64_t>(left_ms, INT_MAX));
}

// Tries to connect until it is, or nothing is left to be sent.
void Connection::Reconnect(Lock& lock) {
  while (!IsConnected() && !under_way_.empty()) {
    if (!refused_.ok()) return Break(refused_);
    if (clock_.MonotonicMs() < next_attempt_ms_) {
      const int patience_ms = PatienceMs(std::min(next_attempt_ms_, NextDeadlineMs()));
      lock.unlock();
      poller_->Wait(patience_ms);
      lock.lock();
      EndOverdue();
      continue;
    }
    // Others that wait have more time, and so another attempt.
    const bool connected = ConnectOnce(lock, NextDeadlineMs()).ok();
    // Also if it is: until a reply comes it is not known to be of any use.
    pause_ms_ = std::clamp(2 * pause_ms_, kFirstPauseMs, kPauseMaxMs);
    next_attempt_ms_ = clock_.MonotonicMs() + pause_ms_;
    if (connected) return SendAgain();
    EndOverdue();
  }
}

// On a new connection: what was not answered, as far as that is right.
void Connection::SendAgain() {
  out_.clear();
  out_begin_ = 0;
  kept_ = 0;
  std::vector<Message*> messages;
  for (const auto& [id, message] : under_way_) messages.push_back(message);
  for (Message* const message : messages) {
    const bool is_first = !message->sent_before;
    const bool same_server = message->instance == 0 || message->instance == hello_.instance;
    if (message->generation != 0 && message->generation != generation_) {
      End(*message, kSnapshotGone);
    } else if (is_first || message->may_repeat || (message->remembered && same_server)) {
      out_.append(message->bytes);
      message->tries = 0;
      message->sent_before = true;
      message->instance = hello_.instance;
    } else {
      End(*message, message->remembered ? kOtherServer : kBroken);
    }
  }
  Send();
}

// The connection is of no use any more. If it is refused for good, nothing is under way any more.
void Connection::Break(const Status& why) {
  CloseDatagrams();
  if (stream_ != nullptr) poller_->Remove(*stream_);
  stream_.reset();
  incoming_.reset();
  if (why.ok()) return;
  while (!under_way_.empty()) End(*under_way_.begin()->second, why);
}

// ---- Messages ----

void Connection::Begin(Message& message) {
  Lock lock(mutex_);
  if (last_id_ == kIdMax) RenewClient(lock);
  const uint64_t now_ms = clock_.MonotonicMs();
  message.deadline_ms = now_ms + options_.timeout_ms;
  NoticeEnd(now_ms);
  if (last_id_ >= kIdsEndSoon && under_way_.empty() && !has_leader_) TakeNewClient();
  GiveId(message);
  if (!IsConnected()) return;  // whoever waits first connects
  if (message.generation != 0 && message.generation != generation_) {
    return End(message, kSnapshotGone);
  }
  message.sent_before = true;
  message.instance = hello_.instance;
  if (FitsDatagram(message)) {
    SendDatagram(message, now_ms);
  } else {
    out_.append(message.bytes);
    Send();
  }
  while (IsFull() && IsConnected() && !has_leader_) LeadOnce(lock);
}

void Connection::LeadOnce(Lock& lock) {
  has_leader_ = true;
  if (!IsConnected()) {
    Reconnect(lock);
  } else {
    Turn(lock);
  }
  EndOverdue();
  has_leader_ = false;
  PromoteAnother();
}

bool Connection::IsFull() const {
  return out_.size() - out_begin_ > kUnsentMax || under_way_.size() > kUnderWayMax;
}

// That the server has closed a connection which nobody read from: then what comes is not sent into
// it, and so need not be given up.
void Connection::NoticeEnd(uint64_t now_ms) {
  const bool is_quiet = under_way_.empty() && now_ms > last_active_ms_ + kQuietMs;
  last_active_ms_ = now_ms;
  if (is_quiet && !has_leader_ && IsConnected() && !TakeReplies()) Break({});
}

void Connection::Abandon(Message& message) {
  Lock lock(mutex_);
  if (!message.done) under_way_.erase(message.header.id);
}

Status Connection::Await(Message& message) {
  Lock lock(mutex_);
  while (!message.done) {
    if (!has_leader_) {
      Lead(lock, message);
    } else {
      message.waits = true;
      message.changed.wait(lock);
      message.waits = false;
    }
  }
  return message.status;
}

// Reads for everybody until its own reply is there.
void Connection::Lead(Lock& lock, Message& message) {
  has_leader_ = true;
  while (!message.done) {
    if (!IsConnected()) {
      Reconnect(lock);
    } else {
      Turn(lock);
    }
    EndOverdue();
  }
  has_leader_ = false;
  PromoteAnother();
}

// One of those that wait goes on as the leader.
void Connection::PromoteAnother() {
  const auto waits = [](const auto& entry) { return entry.second->waits; };
  const auto next = std::ranges::find_if(under_way_, waits);
  if (next != under_way_.end()) next->second->changed.notify_one();
  leaderless_.notify_all();
}

uint64_t Connection::NextDeadlineMs() const {
  return under_way_.empty() ? 0 : under_way_.begin()->second->deadline_ms;
}

// When the leader has something to do even if nothing comes.
uint64_t Connection::NextEventMs() const {
  return due_.empty() ? NextDeadlineMs() : std::min(NextDeadlineMs(), due_.front().when_ms);
}

// Waits for the socket once, and does what can be done.
void Connection::Turn(Lock& lock) {
  const bool wants_write = out_begin_ < out_.size();
  if (wants_write != wants_write_) {
    wants_write_ = wants_write;
    static_cast<void>(poller_->Change(*stream_, nullptr, true, wants_write));
  }
  const int patience_ms = PatienceMs(NextEventMs());
  lock.unlock();
  // Nobody else touches the poller or reads what it tells of.
  const auto events = poller_->Wait(patience_ms);
  lock.lock();
  if (!IsConnected()) return;
  Send();
  for (const ReadyEvent& event : events) {
    if (!IsConnected()) return;
    if (event.tag != nullptr) {
      TakeDatagrams();
    } else if (!TakeReplies()) {
      Break({});
    }
  }
  SendDue(clock_.MonotonicMs());
}

// Sends what the socket takes now.
void Connection::Send() {
  if (!IsConnected()) return;
  while (out_begin_ < out_.size()) {
    const ssize_t sent = stream_->Write(std::string_view(out_).substr(out_begin_));
    if (sent < 0 && sent != -EAGAIN) {
      // What was received before may still be read: the leader will see the end.
      break;
    }
    if (sent <= 0) {
      if (has_leader_) poller_->Wake();  // it is to wait until there is room
      break;
    }
    out_begin_ += static_cast<size_t>(sent);
  }
  if (out_begin_ == out_.size()) {
    out_.clear();
    out_begin_ = 0;
  } else if (out_begin_ > out_.size() / 2) {
    out_.erase(0, out_begin_);
    out_begin_ = 0;
  }
}

// What is overdue ends; a connection on which nothing came for so long is broken.
void Connection::EndOverdue() {
  const uint64_t now_ms = clock_.MonotonicMs();
  bool any = false;
  // What is just coming is not overdue as long as more of it comes.
  const bool comes = incoming_ != nullptr && now_ms < last_active_ms_ + options_.timeout_ms;
  for (; !under_way_.empty() && NextDeadlineMs() <= now_ms && !comes; any = true) {
    End(*under_way_.begin()->second, kNoAnswer);
  }
  if (any) Break({});
}

// False: the connection has ended, or what came is not the protocol.
bool Connection::TakeReplies() {
  // The rest of a large reply goes where it will stay.
  const bool is_rest = incoming_ != nullptr;
  char* const to = is_rest ? incoming_.get() + incoming_bytes_ : read_buffer_.get() + kept_;
  const size_t room =
      is_rest ? incoming_header_.payload_bytes - incoming_bytes_ : kReadBytes - kept_;
  const ssize_t got = stream_->Read(to, room);
  if (got == -EAGAIN) return true;
  if (got <= 0) return false;
  last_active_ms_ = clock_.MonotonicMs();
  if (!is_rest) return DeliverAll({read_buffer_.get(), kept_ + static_cast<size_t>(got)});
  incoming_bytes_ += static_cast<size_t>(got);
  if (incoming_bytes_ == incoming_header_.payload_bytes) {
    Deliver(incoming_header_, std::move(incoming_), Way::kStream);
  }
  return true;
}

// Hands out what is whole and keeps the rest. False: what came is no reply.
bool Connection::DeliverAll(std::string_view received) {
  while (received.size() >= sizeof(packed::Header)) {
    const auto header = packed::Read<packed::Header>(received);
    if (!packed::IsKind(header.kind) || header.kind == packed::Kind::kError) return false;
    if (header.payload_bytes > kReplyBytesMax) return false;
    received.remove_prefix(sizeof(header));
    auto payload = std::make_unique_for_overwrite<char[]>(header.payload_bytes);
    const size_t bytes = std::min<size_t>(received.size(), header.payload_bytes);
    CopyBytes(payload.get(), received.data(), bytes);
    received.remove_prefix(bytes);
    if (bytes < header.payload_bytes) {
      incoming_ = std::move(payload);
      incoming_header_ = header;
      incoming_bytes_ = bytes;
    } else {
      Deliver(header, std::move(payload), Way::kStream);
    }
  }
  std::memmove(read_buffer_.get(), received.data(), received.size());
  kept_ = received.size();
  return true;
}

void Connection::Deliver(const packed::Header& header, std::unique_ptr<char[]> payload, Way way) {
  pause_ms_ = 0;
  next_attempt_ms_ = 0;
  const auto found = under_way_.find(header.id);
  if (found == under_way_.end()) return;  // nobody waits for it
  Message& message = *found->second;
  Status status;
  if ((header.flags & packed::kFailed) != 0) {
    std::string_view left(payload.get(), header.payload_bytes);
    if (!packed::TakeStatus(left, &status)) status = {Code::kCorrupt, "the reply is malformed"};
    // The server is still at it, for the connection that broke, or a datagram that came before.
    const bool is_at_it = message.remembered && status.code() == Code::kUnavailable;
    if (is_at_it && way == Way::kStream) out_.append(message.bytes);
    if (way == Way::kDatagram && status.code() == Code::kTooLarge) {
      // Only for a datagram. It may come twice.
      if (message.tries > 0) out_.append(message.bytes);
      message.tries = 0;
      return;
    }
    if (is_at_it) return;
    // To users kAborted says that nothing was done.
    if (message.remembered && status.code() == Code::kAborted) status = kForgotten;
  }
  message.header = header;
  message.reply = std::move(payload);
  message.generation = generation_;
  End(message, status);
}

void Connection::End(Message& message, const Status& status) {
  under_way_.erase(message.header.id);
  message.done = true;
  message.status = status;
  message.changed.notify_one();
}

// ---- Datagrams ----

// Without them everything goes on the stream.
void Connection::OpenDatagrams() {
  if (!options_.datagrams || (hello_.features & packed::kTakesDatagrams) == 0) return;
  auto socket = network_.ConnectDatagrams(stream_->peer());
  if (!socket || !poller_->Add(**socket, this).ok()) return;
  datagrams_ = std::move(*socket);
  silent_ = 0;
}

void Connection::CloseDatagrams() {
  if (datagrams_ != nullptr) poller_->Remove(*datagrams_);
  datagrams_.reset();
}

bool Connection::FitsDatagram(const Message& message) const {
  return datagrams_ != nullptr &&
         packed::IsBatch(packed::Read<packed::Header>(message.bytes).kind) &&
         message.generation == 0 && (message.may_repeat || message.remembered) &&
         sizeof(packed::DatagramHead) + message.bytes.size() <= kDatagramMax;
}

void Connection::SendDatagram(Message& message, uint64_t now_ms) {
  ++message.tries;
  datagram_.clear();
  packed::Append(datagram_, packed::DatagramHead{.reply_bytes_max = kDatagramReplyMax,
                                                 .client = client_,
                                                 .instance = hello_.instance});
  datagram_.append(message.bytes);
  const Datagram one{.peer = {}, .bytes = datagram_};
  datagrams_->Send({&one, 1});
  if (due_.empty() && has_leader_) poller_->Wake();  // it is to wait no longer than for this one
  due_.push_back({.when_ms = now_ms + kAnswerMs, .id = message.header.id});
}

// What has had no reply for a while.
void Connection::SendDue(uint64_t now_ms) {
  while (!due_.empty()) {
    const auto [when_ms, id] = due_.front();
    const auto found = under_way_.find(id);
    const bool waits = found != under_way_.end() && found->second->tries > 0;
    if (waits && when_ms > now_ms) return;
    due_.pop_front();
    if (!waits) continue;
    Message& message = *found->second;
    if (datagrams_ != nullptr && message.tries < kTriesMax) {
      SendDatagram(message, now_ms);
    } else {
      message.tries = 0;
      out_.append(message.bytes);
      if (++silent_ >= kSilentMax) CloseDatagrams();
    }
  }
}

// What is no reply is passed over.
void Connection::TakeDatagrams() {
  for (const Datagram& datagram : datagrams_->Receive()) {
    std::string_view bytes = datagram.bytes;
    if (bytes.size() < sizeof(packed::DatagramHead) + sizeof(packed::Header)) continue;
    const auto head = packed::Read<packed::DatagramHead>(bytes);
    if (!packed::IsHello(bytes) || head.why != packed::kHelloAccepted || head.client != client_) {
      continue;
    }
    bytes.remove_prefix(sizeof(head));
    const auto header = packed::Read<packed::Header>(bytes);
    bytes.remove_prefix(sizeof(header));
    if (header.payload_bytes != bytes.size() || !packed::IsKind(header.kind)) continue;
    last_active_ms_ = clock_.MonotonicMs();
    silent_ = 0;
    auto payload = std::make_unique_for_overwrite<char[]>(bytes.size());
    CopyBytes(payload.get(), bytes.data(), bytes.size());
    Deliver(header, std::move(payload), Way::kDatagram);
  }
}

}  // namespace skep::client
