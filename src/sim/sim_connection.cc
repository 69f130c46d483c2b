#include "sim/sim_connection.h"

#include <errno.h>

#include <algorithm>

namespace skep {

uint64_t SimNetworkContext::DrawArrival() {
  const uint64_t spread = options.delay_ns_max - options.delay_ns_min;
  return clock.MonotonicNs() + options.delay_ns_min + random.Below(spread + 1);
}

SimConnection::SimConnection(SimNetworkContext& context, uint64_t id)
    : context_(context),
      id_(id),
      ends_{End{.sent = SimPipe(context.options.buffer_bytes)},
            End{.sent = SimPipe(context.options.buffer_bytes)}} {}

ssize_t SimConnection::Read(Side side, char* to, size_t bytes) {
  const size_t got = Received(side).Read(to, bytes, Now());
  if (got > 0) {
    context_.trace.Note(Trace::Event::kRead, id_ << 1 | side, got);
    return static_cast<ssize_t>(got);
  }
  if (bytes == 0 || AtEnd(side)) return 0;
  if (KnowsReset(side)) return TellReset(side, 0);
  return -EAGAIN;
}

ssize_t SimConnection::Write(Side side, std::string_view bytes) {
  End& end = ends_[side];
  if (end.sent.finished()) return -EPIPE;
  if (KnowsReset(side)) return AtEnd(side) ? -EPIPE : TellReset(side, -EPIPE);
  if (bytes.empty()) return 0;
  if (context_.random.Chance(context_.options.resets_ppm, 1'000'000)) {
    Reset();
    end.reset_ns = Now();
    return TellReset(side, -EPIPE);
  }
  if (context_.random.Chance(context_.options.partitions_ppm, 1'000'000)) Part();
  if (end.sent.room() == 0) return -EAGAIN;
  const std::string_view taken = bytes.substr(0, DrawWriteSize(bytes.size(), end.sent.room()));
  context_.trace.Note(Trace::Event::kWrite, id_ << 1 | side, Trace::Of(taken));
  if (ends_[Other(side)].closed) {
    ResetSide(side);  // C1
  } else {
    SendSegments(side, taken);
  }
  return static_cast<ssize_t>(taken.size());
}

// Segments sent while the ends are parted leave afterwards.
uint64_t SimConnection::DrawArrival() {
  return context_.DrawArrival() + std::max(parted_until_ns_, Now()) - Now();
}

void SimConnection::Part() {
  context_.trace.Note(Trace::Event::kPart, id_);
  const uint64_t until_ns = Now() + 1 + context_.random.Below(context_.options.partition_ns_max);
  parted_until_ns_ = std::max(parted_until_ns_, until_ns);
  if (context_.random.Chance(context_.options.partition_resets_ppm, 1'000'000)) Reset();
}

ssize_t SimConnection::TellReset(Side side, ssize_t afterwards) {
  if (ends_[side].reset_told) return afterwards;
  ends_[side].reset_told = true;
  return -ECONNRESET;
}

size_t SimConnection::DrawWriteSize(size_t wanted, size_t room) {
  const size_t possible = std::min(wanted, room);
  const bool is_short = context_.random.Chance(context_.options.short_writes_ppm, 1'000'000);
  return is_short ? 1 + context_.random.Below(possible) : possible;
}

void SimConnection::SendSegments(Side side, std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t size = std::min<size_t>(
        bytes.size(), 1 + context_.random.Below(context_.options.segment_bytes_max));
    context_.clock.Remind(ends_[side].sent.Send(bytes.substr(0, size), DrawArrival()));
    bytes.remove_prefix(size);
  }
}

void SimConnection::FinishSending(Side side) {
  SimPipe& sent = ends_[side].sent;
  if (sent.finished()) return;
  context_.clock.Remind(sent.Finish(DrawArrival()));
  context_.trace.Note(Trace::Event::kFinish, id_ << 1 | side);
}

void SimConnection::Close(Side side) {
  ends_[side].closed = true;
  context_.trace.Note(Trace::Event::kClose, id_ << 1 | side);
  if (Received(side).held() > 0) ResetSide(Other(side));  // C1
  if (!Received(side).HasBytes(Now())) FinishSending(side);
}

void SimConnection::Reset() {
  context_.trace.Note(Trace::Event::kReset, id_);
  for (const Side side : {kClient, kServer}) {
    ResetSide(side);
    ends_[side].sent.Cut(Now());
  }
}

void SimConnection::ResetSide(Side side) {
  // The reset arrives not before what was sent ahead of it: its delay counts from the last arrival.
  const uint64_t arrival = std::max(DrawArrival(), Received(side).last_arrival_ns());
  ends_[side].reset_ns = std::min(ends_[side].reset_ns, arrival);
  context_.clock.Remind(ends_[side].reset_ns);
}

bool SimConnection::Readable(Side side) const {
  return Received(side).HasBytes(Now()) || AtEnd(side) || Broken(side);
}

bool SimConnection::Writable(Side side) const {
  const SimPipe& sent = ends_[side].sent;
  return sent.room() > 0 || sent.finished() || Broken(side);
}

bool SimConnection::Broken(Side side) const {
  return KnowsReset(side) || (AtEnd(side) && ends_[side].sent.finished());
}

}  // namespace skep
