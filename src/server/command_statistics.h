// command_statistics.h: what a worker counts of each command and of each kind of error, for INFO
// and LATENCY HISTOGRAM.
//
// Commands that share a batch have no times of their own: each gets an equal share of the time that
// the batch and its replies took. A command that runs by itself has its own, and one that takes
// many turns the sum of its pieces.
//
// Thread safety: the owning worker counts, any thread reads. Relaxed: each counter is a number of
// its own. The counters of a worker share no cache line with another's.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "server/command.h"
#include "server/command_categories.h"

namespace skep {

// Bucket b has the calls that took less than 1.024 microseconds times 2^b and are in no smaller
// bucket; the last one has all that took longer.
inline constexpr size_t kLatencyBuckets = 32;
constexpr uint64_t LatencyBoundNs(size_t bucket) { return uint64_t{1024} << bucket; }
size_t LatencyBucketOf(uint64_t ns);

// The codes with which errors begin. An error with another one counts as "ERR".
std::span<const std::string_view> ErrorCodes();
size_t ErrorCodeOf(std::string_view error);

// What is counted apart, by places: the commands of the table, and behind each that has subcommands
// those.
std::span<const CommandName> CountedCommands();
// The place of a call. One whose second word is no subcommand counts as its command; kUncounted for
// a command that is not of the table.
inline constexpr size_t kUncounted = SIZE_MAX;
size_t CountedPlace(const Command& command, std::span<const std::string_view> args);

// How a call has ended. The server refuses commands when its memory or disk is full, or when the
// key is another server's.
enum class Ending : uint8_t { kDone, kFailed, kRefused };
bool IsRefusal(std::string_view error);

// How a command has ended that has replied so.
Ending EndingOf(std::string_view reply);

// The errors that were counted up to some time.
struct ErrorCounts {
  uint64_t all = 0;
  uint64_t refusals = 0;  // of all

  // How a call has ended that began with the counts `before`.
  Ending EndingSince(const ErrorCounts& before) const {
    if (refusals != before.refusals) return Ending::kRefused;
    return all != before.all ? Ending::kFailed : Ending::kDone;
  }
};

struct CommandCounts {
  uint64_t calls = 0;
  uint64_t ns = 0;        // of all calls
  uint64_t rejected = 0;  // refused before they ran
  uint64_t failed = 0;    // calls that answered an error
  std::array<uint64_t, kLatencyBuckets> latency = {};

  CommandCounts& operator+=(const CommandCounts& other);
  CommandCounts& operator-=(const CommandCounts& other);
  bool empty() const { return calls == 0 && rejected == 0; }
};

class CommandStatistics {
 public:
  CommandStatistics();

  // CountedPlace(), for what is called for each command.
  size_t PlaceOf(const Command& command, std::span<const std::string_view> args) const {
    constexpr std::less<const Command*> kBefore;
    const Command* const first = commands_.data();
    if (kBefore(&command, first) || !kBefore(&command, first + commands_.size())) return kUncounted;
    if (command.subcommands != nullptr) [[unlikely]]
      return CountedPlace(command, args);
    return places_[static_cast<size_t>(&command - first)];
  }
  // `place` is of CountedPlace(). A call that was refused counts as rejected, and takes no time.
  void Count(size_t place, uint64_t ns, Ending ending);
  void CountRejected(size_t place);
  void CountError(std::string_view error) { Bump(errors_[ErrorCodeOf(error)], 1); }

  // Requires a place in CountedCommands().
  CommandCounts Of(size_t place) const;
  uint64_t errors(size_t code) const { return errors_[code].load(std::memory_order_relaxed); }

 private:
  struct Counters {
    std::atomic<uint64_t> calls{0}, ns{0}, rejected{0}, failed{0};
    std::array<std::atomic<uint64_t>, kLatencyBuckets> latency{};
  };
  static constexpr size_t kErrorCodesMax = 16;

  static void Bump(std::atomic<uint64_t>& counter, uint64_t by) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  const std::span<const Command> commands_;
  const std::span<const uint32_t> places_;  // of the commands
  const std::unique_ptr<Counters[]> counters_;
  std::array<std::atomic<uint64_t>, kErrorCodesMax> errors_{};
};

}  // namespace skep
