#include "tools/dump_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "tools/dump_import.h"
#include "tools/escape.h"
#include "tools/file_stream.h"

namespace skep {
namespace {

constexpr int kFailed = 1;

int Complain(const std::string& program, const std::string& why) {
  fmt::print(stderr, "{}: {}\n", program, why);
  return kFailed;
}

// Returns what was wrong with the input, or nothing.
std::string ReadInput(const DumpCommand& command, FileStream& stream, Importer& importer) {
  const auto source = [&](std::string* to, size_t bytes) { return stream.Read(to, bytes); };
  DumpProblem problem;
  if (command.format == DumpFormat::kResp) {
    problem = ReadResp(source, {.on_select = [&](uint64_t db) { return importer.Select(db); },
                                .on_set = [&](auto args) { return importer.Set(args); }});
  } else {
    problem = ReadJsonl(source, [&](const DumpItem& item) { return importer.Set(item); });
  }
  if (!stream.ok()) return stream.problem();
  return problem.empty() ? problem : fmt::format("{}: {}", stream.path(), problem);
}

}  // namespace

int RunExport(const DumpCommand& command) {
  const auto complain = [&](const std::string& why) { return Complain(command.program, why); };
  std::string problem;
  const auto peer = command.connect(command.server, &problem);
  if (peer == nullptr) return complain(problem);
  FileStream stream(command.file, /*writes=*/true);
  if (!stream.ok()) return complain(stream.problem());
  ExportOptions range = command.range;
  range.db = command.db.value_or(0);
  range.format = command.format;
  ExportSummary summary;
  problem =
      peer->Export(range, [&](std::string_view bytes) { return stream.Write(bytes); }, &summary);
  stream.Flush();
  if (!stream.ok()) return complain(stream.problem());
  if (!problem.empty()) {
    return complain(
        fmt::format("{} (after {} keys; the export is not whole)", problem, summary.keys));
  }
  fmt::print(stderr, "exported {} keys{}\n", summary.keys,
             summary.is_one_version ? " of one version" : ", each as it was when it was read");
  if (summary.skipped > 0) {
    fmt::print(stderr, "skipped {} keys that are no strings\n", summary.skipped);
  }
  return 0;
}

int RunImport(const DumpCommand& command) {
  const auto complain = [&](const std::string& why) { return Complain(command.program, why); };
  std::string problem;
  std::unique_ptr<FileStream> stream;
  if (command.format != DumpFormat::kRdb) {
    stream = std::make_unique<FileStream>(command.file, /*writes=*/false);
    if (!stream->ok()) return complain(stream->problem());
  }
  const auto peer = command.connect(command.server, &problem);
  if (peer == nullptr) return complain(problem);
  Importer importer(peer->pipeline(), command.db, [&](std::string_view key, std::string_view why) {
    complain(fmt::format("key {}: {}", Quoted(key), why));
  });
  RdbImport rdb{
      .on_skipped =
          [&](uint64_t db, std::string_view key, std::string_view type) {
            complain(fmt::format("skipped: database {}, key {}: {}", db, Quoted(key), type));
          },
      .is_strict = command.strict};
  problem = command.format == DumpFormat::kRdb
                ? ImportRdb(PosixFileSystem(), command.file, importer, &rdb)
                : ReadInput(command, *stream, importer);
  importer.Finish();
  fmt::print(stderr, "imported {} keys", importer.stored());
  if (importer.refused() > 0) fmt::print(stderr, ", {} were refused", importer.refused());
  if (rdb.skipped > 0) fmt::print(stderr, ", {} of other types skipped", rdb.skipped);
  fmt::print(stderr, "\n");
  if (!importer.problem().empty()) return complain(importer.problem());
  if (!problem.empty()) return complain(problem);
  return importer.refused() == 0 ? 0 : kFailed;
}

}  // namespace skep
