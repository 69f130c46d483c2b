#include "client/connection.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <iterator>
#include <new>
#include <utility>

#include "base/mutex.h"
#include "base/random.h"
#include "base/varint.h"
#include "skep/copy_bytes.h"
#include "wire/packed_reply.h"

namespace skep::client {
namespace {

constexpr size_t kReadBytes = 256 * 1024;
constexpr size_t kUnsentMax = 1 << 20;
// Ids of messages: the last possible one, and the one from which on a new client id should be
// taken.
constexpr uint32_t kIdMax = UINT32_MAX;
constexpr uint32_t kIdsEndSoon = kIdMax - (uint32_t{1} << 24);
constexpr uint64_t kQuietMs = 100;  // after it the connection may have ended unnoticed
// Bytes kept of a reply that nobody waits for: enough for one that names an opened snapshot or
// watch.
constexpr size_t kUnwantedKeptMax = 64;

constexpr Status kBroken(Code::kUnavailable,
                         "the connection broke: whether it was done is not known");
constexpr Status kOtherServer(Code::kUnavailable,
                              "the server was restarted: whether it was done is not known");
constexpr Status kForgotten(Code::kUnavailable,
                            "the server has forgotten whether it was done: that is not known");

// Turns the server's status of a message as a whole into one of the three answers: two of its codes
// leave open whether a write was done.
Status AsAnswer(const Message& message, const Status& status) {
  if (message.may_repeat) return status;
  if (status.code() == Code::kAborted) return kForgotten;
  return status.code() == Code::kCorrupt ? kMalformedOfWrite : status;
}

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
  const MutexLock lock(mutex_);
  return hello_;
}

uint32_t Connection::generation() const {
  const MutexLock lock(mutex_);
  return generation_;
}

// ---- Breaking ----

// Gives the connection up: all messages under way are queued for the next one.
void Connection::Break() {
  CloseDatagrams();
  if (stream_ != nullptr) poller_->Remove(*stream_);
  stream_.reset();
  has_incoming_ = false;
  incoming_ = {};
  kept_ = 0;
  out_.clear();
  out_begin_ = 0;
  first_queued_ = 0;
}

// ---- Names ----

// Gives the message the next id. Messages under way are in the order of ids, and so of deadlines.
void Connection::GiveId(Message& message) {
  Rename(std::map<uint32_t, Message*>{{0, &message}}.extract(0));
}

void Connection::Rename(std::map<uint32_t, Message*>::node_type named) {
  Message& message = *named.mapped();
  packed::Header header = packed::Read<packed::Header>(message.bytes);
  header.id = ++last_id_;
  message.bytes.replace(0, sizeof(header), reinterpret_cast<const char*>(&header), sizeof(header));
  message.header.id = header.id;
  named.key() = header.id;
  under_way_.insert(std::move(named));
}

// Makes sure that the ids of messages that were never sent, which are the last ones, are new to the
// server. False: it has too few; the connection has ended, and the next one has another client id.
bool Connection::TakeNewIds() {
  auto at = std::ranges::find_if(under_way_, [](const auto& e) { return !e.second->sent_before; });
  const bool are_new = at == under_way_.end() || at->first >= hello_.first_new;
  if (hello_.first_new <= last_id_ && are_new) return true;
  if (hello_.first_new + under_way_.size() > uint64_t{kIdMax} + 1) {
    TakeNewClient();
    return false;
  }
  last_id_ = std::max(last_id_, static_cast<uint32_t>(std::max<uint64_t>(hello_.first_new, 1) - 1));
  for (auto left = std::distance(at, under_way_.end()); left > 0; --left) {
    const auto here = at++;
    Rename(under_way_.extract(here));
  }
  return true;
}

// Takes another client id, with a new connection. Messages that may have been done under the old
// id, and must not be done twice, cannot be sent again.
void Connection::TakeNewClient() {
  Break();
  client_ = NewClientId();
  last_id_ = 0;
  for (auto old = std::exchange(under_way_, {}); !old.empty();) {
    Message& message = *old.begin()->second;
    Rename(old.extract(old.begin()));
    if (message.may_be_done()) End(message, kForgotten);
  }
}

// Waits until nothing is under way, and takes another client id.
void Connection::RenewClient() {
  while (last_id_ == kIdMax) {
    if (has_leader_) {
      leaderless_.Wait(mutex_);
    } else if (under_way_.empty()) {
      TakeNewClient();
    } else {
      Lead([&]() SKEP_REQUIRES(mutex_) { return under_way_.empty(); });
    }
  }
}

// ---- Sending ----

void Connection::Begin(Message& message) {
  const MutexLock lock(mutex_);
  const uint64_t now_ms = clock_.MonotonicMs();
  message.deadline_ms = now_ms + options_.timeout_ms;
  // The messages waited for were begun earlier, and so end earlier than this one.
  if (last_id_ == kIdMax) RenewClient();
  NoticeEnd(now_ms);
  if (last_id_ >= kIdsEndSoon && under_way_.empty() && !has_leader_) TakeNewClient();
  GiveId(message);
  if (!IsConnected()) return;  // the first caller that waits connects
  Flush();
  WaitFor(message, [&]() SKEP_REQUIRES(mutex_) {
    return message.done || !IsConnected() || !IsQueued(message);
  });
}

bool Connection::IsQueued(const Message& message) const {
  return message.header.id >= first_queued_;
}

// Sends the queue as far as server and socket take it.
void Connection::Flush() {
  if (!IsConnected()) return;
  if (first_queued_ > kIdMax) return Write();  // the last id is in use
  const auto first = static_cast<uint32_t>(first_queued_);
  for (auto at = under_way_.lower_bound(first); at != under_way_.end();) {
    Message& message = *at->second;
    ++at;
    if (unsent() > kUnsentMax || !Dispatch(message)) break;
  }
  Write();
}

// False: the message stays in the queue. Else it is sent, or it has ended.
bool Connection::Dispatch(Message& message) {
  const bool same_server = message.instance == 0 || message.instance == hello_.instance;
  if (message.generation != 0 && message.generation != generation_) {
    End(message, kSnapshotGone);
    return true;
  }
  if (message.may_be_done() && !(message.remembered && same_server)) {
    End(message, message.remembered ? kOtherServer : kBroken);
    return true;
  }
  if (message.remembered && message.place == 0 && !window_.HasRoom()) return false;
  try {
    message.tries = 0;
    if (FitsDatagram(message)) {
      SendDatagram(message, clock_.MonotonicMs());
    } else {
      out_.append(message.bytes);
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (message.remembered && message.place == 0) message.place = window_.Open();
  first_queued_ = uint64_t{message.header.id} + 1;
  message.sent_before = true;
  message.instance = hello_.instance;
  if (message.waits) message.changed.NotifyOne();
  return true;
}

// Asks whether the server is still there. The reply is skipped.
void Connection::SendPing() {
  std::string ping;
  packed::EndMessage(ping, packed::BeginMessage(ping, {.kind = packed::Kind::kPing}));
  asked_for_sign_ = true;
  Append(ping);
}

// Bytes for which there is no memory are as good as lost on the way: their message's time runs out.
void Connection::Append(std::string_view bytes) noexcept {
  try {
    out_.append(bytes);
  } catch (const std::bad_alloc&) {
  }
}

// Sends as much as the socket takes now.
void Connection::Write() {
  while (out_begin_ < out_.size()) {
    const ssize_t sent = stream_->Write(std::string_view(out_).substr(out_begin_));
    if (sent < 0 && sent != -EAGAIN) {
      // Bytes received before may still be read: the leader will see the end.
      break;
    }
    if (sent <= 0) {
      if (has_leader_ && !wants_write_) poller_->Wake();  // to wait for room, too
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

// ---- Waiting ----

void Connection::Abandon(Message& message) {
  const MutexLock lock(mutex_);
  if (message.done) return;
  Forget(message);
  Flush();
}

bool Connection::HasEnded(const Message& message) const {
  const MutexLock lock(mutex_);
  return message.done;
}

Status Connection::Await(Message& message) {
  const MutexLock lock(mutex_);
  WaitFor(message, [&] { return message.done; });
  return message.status;
}

template <class IsOver>
void Connection::WaitFor(Message& message, IsOver is_over) {
  while (!is_over()) {
    if (!has_leader_) {
      Lead(is_over);
      continue;
    }
    message.waits = true;
    ++sleepers_;
    message.changed.Wait(mutex_);
    --sleepers_;
    message.waits = false;
  }
  // This thread may have been made the leader, and need not lead.
  if (!has_leader_) PromoteAnother();
}

// Reads for all callers until this one need not wait any more.
template <class IsOver>
void Connection::Lead(IsOver is_over) {
  has_leader_ = true;
  while (!is_over()) {
    try {
      IsConnected() ? Turn() : Reconnect();
    } catch (const std::bad_alloc&) {
      Break();
    }
    EndOverdue();
  }
  has_leader_ = false;
  leaderless_.NotifyAll();
}

// Makes one of the waiting threads the leader.
void Connection::PromoteAnother() {
  if (sleepers_ == 0) return;
  const auto waits = [](const auto& entry) { return entry.second->waits; };
  const auto next = std::ranges::find_if(under_way_, waits);
  if (next != under_way_.end()) next->second->changed.NotifyOne();
}

// 0 if nothing is under way.
uint64_t Connection::NextDeadlineMs() const {
  return under_way_.empty() ? 0 : under_way_.begin()->second->deadline_ms;
}

// When the leader has something to do even if nothing comes.
uint64_t Connection::NextEventMs() const {
  uint64_t next_ms = NextDeadlineMs();
  if (!due_.empty()) next_ms = std::min(next_ms, due_.front().when_ms);
  if (!asked_for_sign_) next_ms = std::min(next_ms, heard_ms_ + options_.timeout_ms / 2);
  return next_ms;
}

// Waits for the socket once, and does all that can be done.
void Connection::Turn() {
  const bool wants_write = out_begin_ < out_.size();
  if (wants_write != wants_write_) {
    wants_write_ = wants_write;
    static_cast<void>(poller_->Change(*stream_, nullptr, true, wants_write));
  }
  const int patience_ms = PatienceMs(NextEventMs());
  const auto events = [&]() SKEP_REQUIRES(mutex_) {
    const MutexUnlock unlock(mutex_);
    // No other thread touches the poller or reads its events.
    return poller_->Wait(patience_ms);
  }();
  if (!IsConnected()) return;
  for (const ReadyEvent& event : events) {
    if (event.tag != nullptr) {
      TakeDatagrams();
    } else if (!TakeReplies()) {
      return Break();
    }
  }
  const uint64_t now_ms = clock_.MonotonicMs();
  SendDue(now_ms);
  if (!asked_for_sign_ && now_ms >= heard_ms_ + options_.timeout_ms / 2) SendPing();
  Flush();
}

// Notices that the server has closed an idle connection, which nobody read from, so that no message
// is sent into it and lost.
void Connection::NoticeEnd(uint64_t now_ms) {
  const bool is_quiet = under_way_.empty() && now_ms > last_active_ms_ + kQuietMs;
  last_active_ms_ = now_ms;
  if (!is_quiet || has_leader_ || !IsConnected()) return;
  // From now on the server has the full time to answer.
  heard_ms_ = now_ms;
  asked_for_sign_ = false;
  try {
    if (!TakeReplies()) Break();
  } catch (const std::bad_alloc&) {
    Break();
  }
}

void Connection::EndOverdue() {
  const uint64_t now_ms = clock_.MonotonicMs();
  bool any = false;
  for (; !under_way_.empty() && NextDeadlineMs() <= now_ms; any = true) {
    End(*under_way_.begin()->second, kNoAnswer);
  }
  if (any && IsConnected() && now_ms >= heard_ms_ + options_.timeout_ms) Break();
}

// ---- Receiving ----

// False: the connection has ended, or the bytes are not the protocol.
bool Connection::TakeReplies() {
  // The rest of a large reply is read to where it will stay.
  const bool is_rest = has_incoming_ && incoming_.payload != nullptr;
  char* const to = is_rest ? incoming_.payload.get() + incoming_.bytes : read_buffer_.get() + kept_;
  const ssize_t got = stream_->Read(to, is_rest ? incoming_.left() : kReadBytes - kept_);
  if (got == -EAGAIN) return true;
  if (got <= 0) return false;
  last_active_ms_ = clock_.MonotonicMs();
  if (!is_rest) return TakeAll({read_buffer_.get(), kept_ + static_cast<size_t>(got)});
  incoming_.bytes += static_cast<size_t>(got);
  if (incoming_.left() == 0) EndReply();
  return true;
}

// Hands out whole replies and keeps the rest. False: the bytes are no reply.
bool Connection::TakeAll(std::string_view received) {
  while (has_incoming_ || received.size() >= sizeof(packed::Header)) {
    if (!has_incoming_) {
      const auto header = packed::Read<packed::Header>(received);
      received.remove_prefix(sizeof(header));
      if (!BeginReply(header)) return false;
    }
    TakePayload(received);
    if (has_incoming_) break;
  }
  std::memmove(read_buffer_.get(), received.data(), received.size());
  kept_ = received.size();
  return true;
}

// False: no request has such a reply.
bool Connection::BeginReply(const packed::Header& header) {
  if (!packed::IsKind(header.kind) || header.kind == packed::Kind::kError) return false;
  if (header.payload_bytes > packed::kReplyBytesMax || header.id > last_id_) return false;
  const auto found = under_way_.find(header.id);
  Message* const message = found == under_way_.end() ? nullptr : found->second;
  if (message != nullptr) {
    const auto asked = packed::Read<packed::Header>(message->bytes);
    if (IsQueued(*message) || asked.kind != header.kind) return false;
  }
  has_incoming_ = true;
  incoming_ = {.header = header, .bytes = 0, .payload = nullptr};
  if (message == nullptr && header.payload_bytes > kUnwantedKeptMax) return true;
  incoming_.payload.reset(new (std::nothrow) char[header.payload_bytes]);
  if (incoming_.payload == nullptr && message != nullptr) {
    End(*message, message->may_repeat ? kNoMemory : kNoMemoryOfWrite);
  }
  return true;
}

// Takes the bytes of the incoming reply that have come.
void Connection::TakePayload(std::string_view& received) {
  const size_t bytes = std::min(received.size(), incoming_.left());
  if (incoming_.payload != nullptr) {
    CopyBytes(incoming_.payload.get() + incoming_.bytes, received.data(), bytes);
  }
  incoming_.bytes += bytes;
  received.remove_prefix(bytes);
  if (incoming_.left() == 0) EndReply();
}

void Connection::EndReply() {
  has_incoming_ = false;
  heard_ms_ = clock_.MonotonicMs();
  asked_for_sign_ = false;
  if (incoming_.payload == nullptr) return;
  Deliver(incoming_.header, std::move(incoming_.payload), Way::kStream);
}

void Connection::Deliver(const packed::Header& header, std::unique_ptr<char[]> payload, Way way) {
  pause_ms_ = 0;
  next_attempt_ms_ = 0;
  const auto found = under_way_.find(header.id);
  if (found == under_way_.end()) {
    return CloseUnwanted(header, {payload.get(), header.payload_bytes});
  }
  Message& message = *found->second;
  Status status;
  std::string_view text(payload.get(), header.payload_bytes);
  if (header.has(packed::kFailed) && !packed::TakeStatus(text, &status)) status = kMalformed;
  if (message.remembered && status.code() == Code::kUnavailable) {
    // The server still executes it, for the connection that broke, or an earlier datagram.
    if (way == Way::kStream) Append(message.bytes);
    return;
  }
  if (way == Way::kDatagram && status.code() == Code::kTooLarge) {
    // The reply does not fit a datagram: asks on the stream. This refusal may come twice.
    if (message.tries > 0) Append(message.bytes);
    message.tries = 0;
    return;
  }
  message.header = header;
  message.reply = std::move(payload);
  message.generation = generation_;
  End(message, AsAnswer(message, status));
}

// Closes a snapshot or watch that was opened for a caller that has given it up.
void Connection::CloseUnwanted(const packed::Header& header, std::string_view payload) {
  const bool is_snapshot = header.kind == packed::Kind::kOpenSnapshot;
  if (!is_snapshot && header.kind != packed::Kind::kWatch) return;
  uint64_t number = 0;
  if (header.has(packed::kFailed) || !TakeVarint(payload, &number)) return;
  std::string close;
  const size_t begin = packed::BeginMessage(
      close, {.kind = is_snapshot ? packed::Kind::kCloseSnapshot : packed::Kind::kUnwatch,
              .keyspace = header.keyspace});
  AppendVarint(close, number);
  packed::EndMessage(close, begin);
  Append(close);
}

void Connection::End(Message& message, Status status) {
  Forget(message);
  if (status.code() == Code::kUnavailable && !message.sent_before) {
    status = {Code::kUnavailable, status.what(), kNothingSent};
  }
  message.done = true;
  message.status = status;
  message.changed.NotifyOne();
}

void Connection::Forget(Message& message) {
  if (message.place != 0) window_.Close(message.place);
  under_way_.erase(message.header.id);
}

}  // namespace skep::client
