#include "sim/sim_poller.h"

#include <errno.h>

#include <algorithm>
#include <utility>

#include "sim/sim_network.h"

namespace skep {
namespace {

Status PollError(int error) {
  return Status(Code::kIo, "cannot poll a socket", static_cast<uint64_t>(error));
}

// Streams and listeners of a SimNetwork are always of these classes.
SimPollable& PollableOf(Stream& stream) { return static_cast<SimStream&>(stream); }
SimPollable& PollableOf(Listener& listener) { return static_cast<SimListener&>(listener); }
SimPollable& PollableOf(DatagramSocket& socket) { return static_cast<SimDatagrams&>(socket); }

}  // namespace

SimPollable::~SimPollable() {
  if (poller_ != nullptr) poller_->RemoveEntry(*this);
}

SimPoller::~SimPoller() {
  for (const Entry& entry : entries_) entry.what->poller_ = nullptr;
}

Status SimPoller::AddEntry(const Entry& entry) {
  if (entry.what->poller_ != nullptr) return PollError(EEXIST);
  entry.what->poller_ = this;
  entries_.push_back(entry);
  return {};
}

void SimPoller::RemoveEntry(SimPollable& what) {
  if (what.poller_ != this) return;
  what.poller_ = nullptr;
  std::erase_if(entries_, [&](const Entry& entry) { return entry.what == &what; });
}

Status SimPoller::Add(Stream& stream, void* tag, bool want_read, bool want_write) {
  return AddEntry({&PollableOf(stream), tag, want_read, want_write});
}

Status SimPoller::Add(Listener& listener, void* tag) {
  return AddEntry({&PollableOf(listener), tag, true, false});
}

Status SimPoller::Add(DatagramSocket& socket, void* tag) {
  return AddEntry({&PollableOf(socket), tag, true, false});
}

Status SimPoller::Change(Stream& stream, void* tag, bool want_read, bool want_write) {
  SimPollable* const what = &PollableOf(stream);
  const auto entry = std::ranges::find(entries_, what, &Entry::what);
  if (entry == entries_.end()) return PollError(ENOENT);
  *entry = {what, tag, want_read, want_write};
  return {};
}

void SimPoller::Remove(Stream& stream) { RemoveEntry(PollableOf(stream)); }
void SimPoller::Remove(Listener& listener) { RemoveEntry(PollableOf(listener)); }
void SimPoller::Remove(DatagramSocket& socket) { RemoveEntry(PollableOf(socket)); }

std::span<const ReadyEvent> SimPoller::Wait(int timeout_ms) {
  const bool was_woken = std::exchange(woken_, false);
  Collect();
  Shuffle();
  if (ready_.empty() && !was_woken && timeout_ms > 0) {
    context_.clock.Remind(context_.clock.MonotonicNs() +
                          static_cast<uint64_t>(timeout_ms) * 1'000'000);
  }
  return ready_;
}

void SimPoller::Collect() {
  ready_.clear();
  for (const Entry& entry : entries_) {
    const bool broken = entry.what->Broken();
    const ReadyEvent event = {.tag = entry.tag,
                              .readable = broken || (entry.want_read && entry.what->Readable()),
                              .writable = broken || (entry.want_write && entry.what->Writable())};
    if (event.readable || event.writable) ready_.push_back(event);
  }
}

void SimPoller::Shuffle() {
  for (size_t i = ready_.size(); i > 1; --i) {
    std::swap(ready_[i - 1], ready_[context_.random.Below(i)]);
  }
}

void SimPoller::Wake() {
  woken_ = true;
  context_.trace.Note(Trace::Event::kWake);
}

}  // namespace skep
