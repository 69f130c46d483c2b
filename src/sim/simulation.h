// simulation.h: a whole system in one thread, from one seed.
//
// Owns a clock, a disk, a network and a source of randomness, and runs actors: callbacks that each
// do one bounded piece of work (one turn of a server's event loop, one move of a client). One seed
// is one run: the same actors do the same things in the same order, and trace_hash() is the same.
//
//   Simulation sim(seed);
//   sim.AddActor("server", [&] { return worker.Turn(0); });
//   sim.AddActor("client", [&] { return client.Move(); });
//   ASSERT_EQ(sim.RunUntil([&] { return client.done(); }, 60s), Simulation::End::kDone);
//
// How the next actor is chosen
//   S1  Step() returns whether it did anything. An actor that did nothing is not run again until
//       something has happened: another actor did something, the network, the disk or a wake-up was
//       used, or time passed. So waiting costs nothing and no actor has to be notified.
//   S2  The seed chooses among the other actors.
//   S3  A step that did something takes a seeded time. If no actor can run, the clock moves to its
//       next reminder (an arrival, a timeout of Poller::Wait, an event of At).
//
// A rule for actors: S4, nothing an actor does may depend on an address. Closing streams while
// walking a container that is ordered by pointer, or hashed with a seed of the process, makes
// another run.
//
// Thread safety: one owner.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "sim/sim_clock.h"
#include "sim/sim_file.h"
#include "sim/sim_network.h"
#include "sim/trace.h"

namespace skep {

struct SimulationOptions {
  SimNetworkOptions network;
  SimFileSystem::Options disk;
  // A step that did something takes 1 to this many nanoseconds.
  uint64_t step_ns_max = 2'000;
};

class Simulation {
 public:
  using Step = std::function<bool()>;
  using ActorId = uint64_t;
  enum class End {
    kDone,       // the condition holds
    kIdle,       // it does not hold, no actor can run and nothing will ever happen
    kTimeLimit,  // it does not hold after that much simulated time
  };

  explicit Simulation(uint64_t seed, const SimulationOptions& options = {});

  SimClock& clock() { return clock_; }
  SimFileSystem& disk() { return disk_; }
  SimNetwork& network() { return network_; }
  // The source of randomness of actors. The network, the disk and the scheduler have streams of
  // their own.
  Random& random() { return random_; }
  Trace& trace() { return trace_; }
  uint64_t trace_hash() const { return trace_.hash(); }

  // May be called from steps and events.
  ActorId AddActor(std::string_view name, Step step);
  // No step of the actor runs after this one.
  void RemoveActor(ActorId id);
  // Runs `event` once, between steps, when the time has come: a crash, a step of the wall clock.
  void At(uint64_t monotonic_ns, std::function<void()> event);

  // Runs steps and events until the condition, asked before each step, holds.
  End RunUntil(const std::function<bool()>& done, std::chrono::nanoseconds limit);

 private:
  struct Actor {
    ActorId id;
    std::string name;
    Step step;
    bool removed = false;
    bool idle = false;         // the last step did nothing...
    uint64_t events_seen = 0;  // ...when this many events had happened
  };

  Simulation(SeededRandom seeds, const SimulationOptions& options);
  bool RunDueEvent();
  Actor* ChooseActor();
  void RunStep(Actor& actor);
  // Moves to the next reminder, but not past `end_ns`. Returns false if there is none.
  bool PassTime(uint64_t end_ns);

  const uint64_t step_ns_max_;
  SimClock clock_;
  Trace trace_;
  SimFileSystem disk_;
  SimNetwork network_;
  SeededRandom random_;
  SeededRandom choices_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::vector<Actor*> runnable_;  // scratch
  bool has_removed_ = false;      // an actor that is still in actors_
  ActorId last_actor_ = 0;
  std::multimap<uint64_t, std::function<void()>> events_;
};

}  // namespace skep
