// dump_import.h: imports a file into a server.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "durable/rdb_reader.h"
#include "tools/command_pipeline.h"
#include "tools/dump_format.h"

namespace skep {

// Stores items, with many under way at once. Thread safety: one owner.
class Importer {
 public:
  // Called for each key that the server refuses, with the reason.
  using Refused = std::function<void(std::string_view key, std::string_view why)>;

  // With `db` all items go to that database, whichever the input names.
  Importer(CommandPipeline& pipeline, std::optional<uint64_t> db, Refused on_refused)
      : pipeline_(pipeline), db_(db), on_refused_(std::move(on_refused)) {
    pipeline.set_on_reply(
        [this](std::string_view key, const RespReply& reply) { TakeReply(key, reply); });
  }
  Importer(const Importer&) = delete;
  Importer& operator=(const Importer&) = delete;

  // Each returns false if nothing more can be stored: problem() says why.
  bool Select(uint64_t db);
  bool Set(std::span<const std::string_view> args);  // a whole command; its key is args[1]
  bool Set(const DumpItem& item);
  // Stores a piece of a collection. Requires that takes_collections().
  bool Add(std::string_view key, const durable::RdbMembers& members, uint64_t deadline_ms);
  bool takes_collections() const { return pipeline_.takes_collections(); }
  // Waits for the commands under way.
  bool Finish();

  const std::string& problem() const { return problem_; }
  uint64_t stored() const { return stored_; }
  uint64_t refused() const { return refused_; }

 private:
  void TakeReply(std::string_view key, const RespReply& reply);
  bool Send(std::span<const std::string_view> args, std::string_view key, bool is_last);
  bool NoteBroken();
  bool UseDatabase(uint64_t db);

  CommandPipeline& pipeline_;
  const std::optional<uint64_t> db_;
  const Refused on_refused_;
  std::optional<uint64_t> selected_;
  std::deque<bool> are_last_;  // of the commands under way, whether each is its key's last one
  uint64_t stored_ = 0;
  uint64_t refused_ = 0;
  std::string problem_;
};

// The import of an RDB file, which is checked before anything is stored.
struct RdbImport {
  // Called for a key that cannot be stored, which is skipped.
  std::function<void(uint64_t db, std::string_view key, std::string_view type)> on_skipped;
  bool is_strict = false;  // if there is such a key nothing is stored

  uint64_t skipped = 0;  // number of skipped keys and libraries of functions
};
// Returns a line for people that says what is wrong with the file, or nothing; problems of the
// importer are the importer's to tell.
std::string ImportRdb(FileSystem& files, const std::string& path, Importer& importer,
                      RdbImport* import);

}  // namespace skep
