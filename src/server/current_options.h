// current_options.h: the present values of a server's options: CONFIG SET changes them, CONFIG
// REWRITE writes them into the file that they came from.
//
// Thread-safe. A worker keeps a copy and looks at version() once a turn: a load, no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/mutex.h"
#include "server/options.h"

namespace skep {

// A name and its new value.
using OptionChange = std::pair<std::string_view, std::string_view>;

class CurrentOptions {
 public:
  explicit CurrentOptions(const ServerOptions& options) : options_(options) {}

  ServerOptions Get() const;
  // Changes whenever the options do.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  // Sets options by name, all or none, and calls `apply` with the new options before any thread
  // sees them. Returns an error as CONFIG SET says it; empty if it was done.
  std::string Set(std::span<const OptionChange> changes,
                  const std::function<void(const ServerOptions&)>& apply);
  // Brings the file that the options were read from up to date (config_file.h), at once or not at
  // all. Returns an error as CONFIG REWRITE says it; empty if it was done.
  std::string Rewrite(FileSystem& files);

 private:
  mutable Mutex mutex_;
  ServerOptions options_ SKEP_GUARDED_BY(mutex_);
  std::atomic<uint64_t> version_{0};
  Mutex file_mutex_;  // held by the thread that rewrites the file
};

}  // namespace skep
