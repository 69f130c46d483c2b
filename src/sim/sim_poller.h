// sim_poller.h: readiness in a simulated network.
//
// Wait never blocks: it reports what is ready at the simulated time, in a seeded order. If nothing
// is ready and it was given a timeout, it leaves a reminder of the timeout in the clock, so that a
// scheduler that runs the caller again at every reminder gives it the turns a real poller would.
#pragma once

#include <span>
#include <vector>

#include "base/network.h"
#include "sim/sim_connection.h"

namespace skep {

class SimPoller;

// An object that a poller can wait for: in one poller at a time, and out of it when destroyed.
class SimPollable {
 public:
  SimPollable() = default;
  SimPollable(const SimPollable&) = delete;
  SimPollable& operator=(const SimPollable&) = delete;
  virtual ~SimPollable();
  virtual bool Readable() const = 0;
  virtual bool Writable() const = 0;
  // Returns whether it is reported whatever the poller waits for.
  virtual bool Broken() const = 0;

 private:
  friend class SimPoller;
  SimPoller* poller_ = nullptr;
};

class SimPoller final : public Poller {
 public:
  explicit SimPoller(SimNetworkContext& context) : context_(context) {}
  ~SimPoller() override;

  Status Add(Stream& stream, void* tag, bool want_read, bool want_write) override;
  Status Change(Stream& stream, void* tag, bool want_read, bool want_write) override;
  void Remove(Stream& stream) override;
  Status Add(Listener& listener, void* tag) override;
  void Remove(Listener& listener) override;
  Status Add(DatagramSocket& socket, void* tag) override;
  void Remove(DatagramSocket& socket) override;
  std::span<const ReadyEvent> Wait(int timeout_ms) override;
  void Wake() override;

 private:
  friend class SimPollable;
  struct Entry {
    SimPollable* what;
    void* tag;
    bool want_read;
    bool want_write;
  };

  Status AddEntry(const Entry& entry);
  void RemoveEntry(SimPollable& what);
  void Collect();
  void Shuffle();

  SimNetworkContext& context_;
  std::vector<Entry> entries_;  // in the order of Add: the same in every run of one seed
  std::vector<ReadyEvent> ready_;
  bool woken_ = false;
};

}  // namespace skep
