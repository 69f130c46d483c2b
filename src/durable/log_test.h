// log_test.h: directories as plain data, and the states that come out of them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "durable/log_reader.h"
#include "durable/open_keyspaces.h"
#include "sim/sim_clock.h"
#include "sim/sim_file.h"

namespace skep::durable {

// The bytes of files by their names in a directory.
using Image = std::map<std::string, std::string>;
// All pairs of a keyspace, with their deadlines.
using State = std::map<std::string, std::pair<std::string, uint64_t>>;

inline constexpr const char* kTestDirectory = "data";
inline constexpr uint64_t kTestSegmentBytes = 64 * 1024;

inline Image TakeImage(FileSystem& files) {
  Image image;
  const auto names = files.List(kTestDirectory);
  SKEP_CHECK(names.has_value());
  for (const std::string& name : *names) {
    image[name] = *files.ReadAll(std::string(kTestDirectory) + "/" + name);
  }
  return image;
}

// Writes the files of an image to the disk, and syncs them.
inline void StoreImage(FileSystem& files, const Image& image) {
  SKEP_CHECK(files.CreateDirectory(kTestDirectory).ok());
  for (const auto& [name, bytes] : image) {
    auto file = files.Open(std::string(kTestDirectory) + "/" + name, FileSystem::Mode::kCreate);
    SKEP_CHECK(file && (*file)->Append(bytes).ok() && (*file)->Sync().ok());
  }
  SKEP_CHECK(files.SyncDirectory(kTestDirectory).ok() && files.SyncDirectory(".").ok());
}

// The pairs of an engine that have not expired.
inline State StateOf(Engine& engine, uint64_t now_ms) {
  State state;
  const auto walk = *engine.OpenPairIterator(now_ms);
  while (true) {
    const auto pairs = walk->Next();
    SKEP_CHECK(pairs.has_value());
    if (pairs->empty()) return state;
    for (const Pair& pair : *pairs) {
      if (pair.deadline_ms != 0 && pair.deadline_ms <= walk->now_ms()) continue;
      state[std::string(pair.key)] = {std::string(pair.value), pair.deadline_ms};
    }
  }
}

// A store on a simulated disk that holds what an image has.
class TestStore {
 public:
  static constexpr uint32_t kKeyspaces = 2;

  TestStore(const Image& image, LogSync log_sync, uint64_t segment_bytes,
            const std::string& engine = "model",
            const SimFileSystem::Options& disk = {.short_reads_ppm = 0})
      : disk_(1, trace_, disk),
        store_{.engine = engine,
               .keyspaces = kKeyspaces,
               .directory = kTestDirectory,
               .log_sync = log_sync,
               .log_segment_bytes = segment_bytes} {
    StoreImage(disk_, image);
    auto opened = OpenKeyspaces(disk_, clock_, store_, &problem_);
    if (!opened) {
      status_ = opened.error();
      return;
    }
    persistence_ = std::move(opened->persistence);
    keyspaces_ = std::move(opened->keyspaces);
    report_ = opened->report;
  }

  // The result of the start.
  const Status& status() const { return status_; }
  const std::string& problem() const { return problem_; }
  const RecoveryReport& report() const { return report_; }

  Persistence& persistence() { return *persistence_; }
  Log& log() { return persistence_->log(); }
  SimFileSystem& disk() { return disk_; }
  Engine& engine(uint32_t keyspace) { return keyspaces_->at(keyspace); }

  SimClock& clock() { return clock_; }
  uint64_t now_ms() { return clock_.WallMs(); }

  // The states of both keyspaces.
  std::vector<State> States() {
    std::vector<State> states;
    for (uint32_t i = 0; i < kKeyspaces; ++i) states.push_back(StateOf(engine(i), now_ms()));
    return states;
  }

 private:
  Trace trace_;
  SimClock clock_;
  SimFileSystem disk_;
  const Options store_;
  Status status_;
  std::string problem_;
  RecoveryReport report_;
  std::unique_ptr<Persistence> persistence_;
  std::unique_ptr<Keyspaces> keyspaces_;
};

}  // namespace skep::durable
