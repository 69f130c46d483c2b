// sim_fabric.h: a fabric in memory, in one thread, from a seed.
//
//   caller                 the fabric's queue, by instants of a SimClock              target
//   Post ------> [ line 3 ] [ lines 0, 2 ] [ line 1 ] --> kDone                       its memory
//   Call ------> [ message ] -----------------------------------> its inbox, until its Poll
//
// Each thing that happens between endpoints has an instant that the seed draws. It happens when an
// endpoint polls, or RunDue is called, at that instant or later, and always in the order of
// instants. The SimClock has a reminder of each.
//
// One-sided operations. The lines of a Post (64 bytes; sometimes its words) are divided at random
//   into up to kGroupsMax groups, and each group is read or written at an instant of its own
//   between the Post and its kDone. So reads and writes are torn, their parts are in any order, and
//   F1 to F4 are all that holds. A line of a read may be as old as the Post when its kDone is
//   returned, and the caller may be late to ask for it.
//   With stale_ns_max a line may be older than the Post, by so much: as if a cache of the caller's
//   had kept it since an earlier read. Capabilities::coherent is false then.
// Messages of one connection arrive in their order, each way, as those of mem and tcp do.
// Ends. A connection ends when a side disconnects, an endpoint is destroyed, or it is cut; the
//   other side, after a cut both, is told later. Meanwhile and afterwards:
//     reads     are not carried out once their caller has been told
//     writes    each group by itself is carried out in time, or not at all, or late: up to
//               late_ns_max later (F5)
//     messages  the first ones may arrive; from the first that is lost on, all are lost
// Fence. True at once or after some time, drawn; from then on no write is carried out.
// A turn is not one instant: each Post, Call and Reply takes up to call_ns_max, and what is due by
//   then happens before it returns.
//
// Waiting. A Poll that may wait and has nothing to return calls the waiter, which lets the others
// run and the time pass. Without a waiter it returns at once.
//
// Thread safety: one owner of the fabric and all its endpoints. The fabric outlives them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "rma/fabric.h"
#include "rma/testing/sim_link.h"
#include "sim/sim_clock.h"
#include "sim/trace.h"

namespace skep::rma {

class SimEndpoint;

// What a message, and the bytes of a Post, take if nothing is drawn: half of a round trip each way,
// and its bytes on the wire. Of transfers only the Posts of one side of a connection wait for each
// other.
struct SimWire {
  uint64_t round_trip_ns = 0;
  uint64_t bytes_per_us = 0;
};

struct SimFabricOptions {
  // A message, or the way to a group's instant, takes 1 to this many nanoseconds, but one of
  // `slow_one_in` takes up to slow_ns_max.
  uint64_t step_ns_max = 5'000;
  uint64_t slow_ns_max = 100'000;
  uint64_t slow_one_in = 32;
  uint64_t call_ns_max = 200;
  // How much later than a message a cut, or the end of a process, may be noticed.
  uint64_t notice_ns_max = 1'000'000;
  uint64_t late_ns_max = 10'000'000;
  // A connection is cut at one of so many of its Posts and Calls; 0: at none.
  uint64_t cut_one_in = 0;
  uint64_t stale_ns_max = 0;
  // Instead of the drawn times of messages and Posts: for figures, whose times are modelled.
  std::optional<SimWire> wire = std::nullopt;
};

// What a test may see and change.
struct SimMessage {
  const Address& server;  // where the endpoint listens that the connection was made to
  bool is_to_server;
  bool is_reply;
  uint64_t call;      // a number of the call in this fabric; its reply has the same
  std::string bytes;  // of the request or the reply
};

// A test's hands in the network. By default messages stay as they are.
class SimTamper {
 public:
  virtual ~SimTamper() = default;
  virtual void OnSend(SimMessage&) {}
  // Before the receiver has it. It arrives in any case.
  virtual void OnArrival(SimMessage&) {}
};

class SimFabric final : public Fabric {
 public:
  static constexpr uint32_t kGroupsMax = 4;

  // `until_ns`: UINT64_MAX is for ever. To return when `is_ready`, or the time has come.
  using Waiter = std::function<void(uint64_t until_ns, const std::function<bool()>& is_ready)>;

  // `clock` and `trace` outlive it.
  SimFabric(uint64_t seed, SimClock& clock, Trace& trace, const SimFabricOptions& options = {});
  ~SimFabric() override;

  // An address is "sim:NAME".
  Result<std::unique_ptr<Endpoint>> Open(const EndpointOptions& options) override;

  void set_waiter(Waiter waiter) { waiter_ = std::move(waiter); }
  // Null: nobody. It outlives the fabric.
  void set_tamper(SimTamper* tamper) { tamper_ = tamper; }

  // Carries out what is due.
  void RunDue();
  // When the next thing happens; UINT64_MAX: never, if no endpoint does anything.
  uint64_t NextNs() const { return queue_.empty() ? UINT64_MAX : queue_.begin()->first; }
  // Cuts a connection that the seed draws, and that is joined. False: there is none.
  bool CutOne();
  // The endpoint that listens there; null: nobody does.
  SimEndpoint* FindListener(const Address& address) const;

 private:
  friend class SimEndpoint;
  using Link = std::shared_ptr<SimLink>;

  void Cut(const Link& link);
  void CutAtTimes(const Link& link);
  // One way of so many bytes.
  uint64_t DelayNs(uint64_t bytes = 0);
  uint64_t TransferNs(uint64_t bytes) const { return bytes * 1'000 / options_.wire->bytes_per_us; }
  // When a Post that was carried out has ended.
  uint64_t EndNs(SimLink::Side& from, const SimPost& post);
  // Until a Post is on its way.
  uint64_t StartNs() { return options_.wire ? 0 : DelayNs(); }
  uint64_t NoticeNs();
  void Schedule(uint64_t at_ns, std::function<void()> work);
  void TakeTime();
  void Wait(uint64_t until_ns, const std::function<bool()>& is_ready);

  // Messages to the side `to`.
  void Send(const Link& link, int to, SimMessage message, Status status);
  void Arrive(const Link& link, int to, SimMessage& message, Status status);
  void TellJoined(const Link& link);
  // The side is told that the connection has ended, and later the other one is.
  void End(const Link& link, int side, Status why);
  void EndLater(const Link& link, int side, uint64_t delay_ns, Status why);

  // Posts of the side `from`.
  void Begin(const Link& link, int from, const std::shared_ptr<SimPost>& post);
  void RunGroup(const Link& link, int from, const std::shared_ptr<SimPost>& post, uint32_t group);
  void RunLate(const Link& link, int from, const std::shared_ptr<SimPost>& post, uint32_t group);
  void CarryOut(SimLink& link, int from, const SimPost& post, uint32_t group, bool reads);
  void ReadPart(SimLink::Side& reader, const std::byte* from, const LinePart& part);
  void Finish(const Link& link, int from, const std::shared_ptr<SimPost>& post);

  SimClock& clock_;
  Trace& trace_;
  const SimFabricOptions options_;
  SeededRandom random_;
  Waiter waiter_;
  SimTamper* tamper_ = nullptr;
  std::multimap<uint64_t, std::function<void()>> queue_;
  std::map<Address, SimEndpoint*> listeners_;
  std::vector<std::weak_ptr<SimLink>> links_;
  uint64_t last_call_ = 0;
};

}  // namespace skep::rma
