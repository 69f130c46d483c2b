// dump_import.h: from a file to a server's keys.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "tools/command_pipeline.h"
#include "tools/dump_format.h"

namespace skep {

// Stores items, many on their way at once. Thread safety: one owner.
class Importer {
 public:
  // `on_refused` is told of each key that the server does not store, and why.
  using Refused = std::function<void(std::string_view key, std::string_view why)>;

  // With `db` everything goes there, whatever databases the input names.
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
  // Waits for what is on its way.
  bool Finish();

  const std::string& problem() const { return problem_; }
  uint64_t stored() const { return stored_; }
  uint64_t refused() const { return refused_; }

 private:
  void TakeReply(std::string_view key, const RespReply& reply);
  bool NoteBroken();
  bool UseDatabase(uint64_t db);

  CommandPipeline& pipeline_;
  const std::optional<uint64_t> db_;
  const Refused on_refused_;
  std::optional<uint64_t> selected_;
  uint64_t stored_ = 0;
  uint64_t refused_ = 0;
  std::string problem_;
};

// Of an RDB file, which is checked before anything is stored.
struct RdbImport {
  // A key of another type than string: it is passed over.
  std::function<void(uint64_t db, std::string_view key, std::string_view type)> on_skipped;
  bool is_strict = false;  // nothing is stored if there is such a key

  uint64_t skipped = 0;  // keys, and libraries of functions
};
// Returns a line for a person, or nothing; if the importer has a problem, nothing.
std::string ImportRdb(FileSystem& files, const std::string& path, Importer& importer,
                      RdbImport* import);

}  // namespace skep
