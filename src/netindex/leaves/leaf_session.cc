#include "netindex/leaves/leaf_session.h"

#include <new>
#include <utility>

namespace skep::leaves {

Result<std::unique_ptr<LeafSession>> LeafSession::Make(rma::Fabric& fabric, Address address,
                                                       int timeout_ms, Clock& clock) {
  auto session =
      std::unique_ptr<LeafSession>(new LeafSession(std::move(address), timeout_ms, clock));
  auto endpoint = fabric.Open({});
  if (!endpoint) return Fail(endpoint.error());
  if (!(*endpoint)->capabilities().coherent) {
    return Fail(Code::kNotSupported, "leaves are read over coherent fabrics only");
  }
  session->endpoint_ = std::move(*endpoint);
  return session;
}

Status LeafSession::ConnectWithin(int timeout_ms) {
  next_try_ms_ = clock_.MonotonicMs() + kPauseMs;
  const auto peer = endpoint_->Connect(address_, timeout_ms);
  if (!peer) return peer.error();
  peer_ = *peer;
  while (peer_ != 0 && !reader_) {
    if (!TakeEvents(timeout_ms)) break;
  }
  if (!reader_) return {Code::kUnavailable, "nobody shares leaves there"};
  return is_readable_ ? Status()
                      : Status(Code::kNotSupported, "the leaves there are of another kind");
}

// False: there were none.
bool LeafSession::TakeEvents(int timeout_ms) {
  const auto events = endpoint_->Poll(timeout_ms);
  const bool had_some = !events.empty();
  const bool had_reader = reader_.has_value();
  for (const rma::Event& event : events) TakeEvent(event);
  // The reads of Open are polled for, which ends the life of the events.
  if (reader_ && !had_reader) is_readable_ = reader_->Open();
  return had_some;
}

void LeafSession::TakeEvent(const rma::Event& event) {
  if (event.peer != peer_) return;
  if (event.kind == rma::Event::Kind::kJoined) reader_.emplace(*endpoint_, peer_, timeout_ms_);
  if (event.kind == rma::Event::Kind::kLeft) End();
}

void LeafSession::End() {
  if (reader_) before_ += reader_->statistics();
  reader_.reset();
  is_readable_ = false;
  peer_ = 0;
  next_try_ms_ = clock_.MonotonicMs() + kPauseMs;
}

// Whether the connection is there now.
bool LeafSession::IsThere() {
  while (TakeEvents(0)) {
  }
  if (reader_ && reader_->has_left()) End();
  return reader_.has_value();
}

// False: nothing was read. Without memory the connection ends, and with it what is under way.
bool LeafSession::TryRead(std::span<LeafQuestion> questions) {
  try {
    return reader_->Read(questions);
  } catch (const std::bad_alloc&) {
    endpoint_->Disconnect(peer_);
    return false;
  }
}

void LeafSession::Read(std::span<LeafQuestion> questions, uint64_t instance) {
  if (peer_ == 0 && clock_.MonotonicMs() >= next_try_ms_) {
    static_cast<void>(ConnectWithin(kConnectMs));  // without one everything is asked for
  }
  const bool is_read = is_readable_ && reader_->instance() == instance && TryRead(questions);
  const bool is_there = IsThere();
  if (is_read && is_there) return;
  for (LeafQuestion& question : questions) question.finding = Finding::kAsk;
}

LeafReaderStatistics LeafSession::statistics() const {
  LeafReaderStatistics sum = before_;
  if (reader_) sum += reader_->statistics();
  return sum;
}

}  // namespace skep::leaves
