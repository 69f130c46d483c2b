#include "tools/dump_import.h"

#include <fmt/format.h>

#include "durable/rdb_reader.h"

namespace skep {
namespace {

// Ends the reading of a file; the importer knows why.
constexpr Status kEnded(Code::kAborted, "the import ended");

class Skipped final : public durable::RdbVisitor {
 public:
  explicit Skipped(RdbImport& import) : import_(import) {}

  Status OnString(uint64_t, std::string_view, std::string_view, uint64_t) override { return {}; }
  Status OnSkipped(uint64_t db, std::string_view key, std::string_view type) override {
    import_.on_skipped(db, key, type);
    return {};
  }

 private:
  RdbImport& import_;
};

class Storing final : public durable::RdbVisitor {
 public:
  explicit Storing(Importer& importer) : importer_(importer) {}

  Status OnString(uint64_t db, std::string_view key, std::string_view value,
                  uint64_t deadline_ms) override {
    const DumpItem item = {.key = key, .value = value, .deadline_ms = deadline_ms};
    return importer_.Select(db) && importer_.Set(item) ? Status() : kEnded;
  }
  Status OnSkipped(uint64_t, std::string_view, std::string_view) override { return {}; }

 private:
  Importer& importer_;
};

}  // namespace

bool Importer::Select(uint64_t db) { return UseDatabase(db_.value_or(db)); }

bool Importer::UseDatabase(uint64_t db) {
  if (selected_ == db) return true;
  if (!Finish()) return false;
  const std::string why = pipeline_.Select(db);
  if (why.empty()) {
    selected_ = db;
    return true;
  }
  problem_ = fmt::format("database {}: {}", db, why);
  return false;
}

bool Importer::Set(std::span<const std::string_view> args) {
  if (!selected_ && !Select(0)) return false;
  return pipeline_.Send(args, std::string(args[1])) || NoteBroken();
}

bool Importer::Set(const DumpItem& item) {
  if (!selected_ && !Select(0)) return false;
  return pipeline_.Set(item, std::string(item.key)) || NoteBroken();
}

bool Importer::Finish() { return pipeline_.Finish() || NoteBroken(); }

bool Importer::NoteBroken() {
  problem_ = fmt::format("{}; the last {} keys may or may not be stored",
                         pipeline_.status().ToString(), pipeline_.unanswered());
  return false;
}

void Importer::TakeReply(std::string_view key, const RespReply& reply) {
  if (reply.is_error() || reply.is_null()) {
    ++refused_;
    on_refused_(key, reply.is_null() ? "its condition does not hold" : reply.text);
  } else {
    ++stored_;
  }
}

std::string ImportRdb(FileSystem& files, const std::string& path, Importer& importer,
                      RdbImport* import) {
  Skipped skipped(*import);
  const auto looked = ReadRdb(files, path, skipped);
  if (!looked) return fmt::format("{}: {}", path, looked.error().ToString());
  import->skipped = looked->skipped + looked->functions;
  if (import->is_strict && import->skipped > 0) {
    return fmt::format("{}: {} keys or libraries that are no strings: nothing was imported", path,
                       import->skipped);
  }
  Storing storing(importer);
  const auto stored = ReadRdb(files, path, storing);
  if (stored || !importer.problem().empty()) return {};
  return fmt::format("{}: {}", path, stored.error().ToString());
}

}  // namespace skep
