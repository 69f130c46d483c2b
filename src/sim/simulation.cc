#include "sim/simulation.h"

#include <algorithm>
#include <utility>

namespace skep {

Simulation::Simulation(uint64_t seed, const SimulationOptions& options)
    : Simulation(SeededRandom(seed), options) {}

// Members are initialised in the order of their declaration: each draws its own seed.
Simulation::Simulation(SeededRandom seeds, const SimulationOptions& options)
    : step_ns_max_(options.step_ns_max),
      disk_(seeds.Next(), trace_, options.disk),
      network_(seeds.Next(), clock_, trace_, options.network),
      random_(seeds.Next()),
      choices_(seeds.Next()) {}

Simulation::ActorId Simulation::AddActor(std::string_view name, Step step) {
  actors_.push_back(std::make_unique<Actor>(
      Actor{.id = ++last_actor_, .name = std::string(name), .step = std::move(step)}));
  return last_actor_;
}

void Simulation::RemoveActor(ActorId id) {
  for (const auto& actor : actors_) {
    if (actor->id == id) actor->removed = has_removed_ = true;
  }
}

void Simulation::At(uint64_t monotonic_ns, std::function<void()> event) {
  events_.emplace(monotonic_ns, std::move(event));
  clock_.Remind(monotonic_ns);
}

Simulation::End Simulation::RunUntil(const std::function<bool()>& done,
                                     std::chrono::nanoseconds limit) {
  const uint64_t end_ns = clock_.MonotonicNs() + static_cast<uint64_t>(limit.count());
  while (!done()) {
    if (clock_.MonotonicNs() >= end_ns) return End::kTimeLimit;
    if (RunDueEvent()) continue;
    if (Actor* const actor = ChooseActor()) {
      RunStep(*actor);
    } else if (!PassTime(end_ns)) {
      return End::kIdle;
    }
  }
  return End::kDone;
}

bool Simulation::RunDueEvent() {
  const auto first = events_.begin();
  if (first == events_.end() || first->first > clock_.MonotonicNs()) return false;
  const std::function<void()> event = std::move(first->second);
  events_.erase(first);
  trace_.Note(Trace::Event::kTime, clock_.MonotonicNs());
  event();
  return true;
}

Simulation::Actor* Simulation::ChooseActor() {
  if (std::exchange(has_removed_, false)) {
    std::erase_if(actors_, [](const auto& actor) { return actor->removed; });
  }
  runnable_.clear();
  for (const auto& actor : actors_) {
    if (!actor->idle || actor->events_seen != trace_.events()) runnable_.push_back(actor.get());
  }
  return runnable_.empty() ? nullptr : runnable_[choices_.Below(runnable_.size())];
}

void Simulation::RunStep(Actor& actor) {
  const bool did_something = actor.step();
  trace_.Mix(Trace::Event::kStep, actor.id, did_something);
  if (did_something) {
    clock_.Advance(1 + choices_.Below(step_ns_max_));
    trace_.Note(Trace::Event::kTime, clock_.MonotonicNs());
  }
  actor.idle = !did_something;
  actor.events_seen = trace_.events();
}

bool Simulation::PassTime(uint64_t end_ns) {
  const uint64_t now = clock_.MonotonicNs();
  const std::optional<uint64_t> next = clock_.NextReminder();
  if (!next) return false;
  clock_.Advance(std::min(*next, end_ns) - now);
  trace_.Note(Trace::Event::kTime, clock_.MonotonicNs());
  return true;
}

}  // namespace skep
