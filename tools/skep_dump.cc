// skep-dump: keys and values of a running server, to a file and from one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "server/version.h"
#include "tools/dump_export.h"
#include "tools/dump_import.h"
#include "tools/escape.h"

namespace {

using namespace skep;

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int Complain(const std::string& why) {
  fmt::print(stderr, "skep-dump: {}\n", why);
  return kFailed;
}

// A file, or a standard stream, which is "-".
class Stream {
 public:
  Stream(const std::string& path, bool writes)
      : path_(path == "-" ? (writes ? "standard output" : "standard input") : path),
        file_(path != "-" ? std::fopen(path.c_str(), writes ? "we" : "re")
                          : (writes ? stdout : stdin)) {
    if (file_ == nullptr) error_ = errno;
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (file_ != nullptr && file_ != stdin && file_ != stdout) std::fclose(file_);
  }

  bool ok() const { return error_ == 0; }
  std::string problem() const { return fmt::format("{}: {}", path_, std::strerror(error_)); }
  const std::string& path() const { return path_; }

  bool Write(std::string_view bytes) {
    return Note(std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size());
  }
  bool Flush() { return Note(std::fflush(file_) == 0); }
  bool Read(std::string* to, size_t bytes) {
    const size_t before = to->size();
    to->resize(before + bytes);
    const size_t got = std::fread(to->data() + before, 1, bytes, file_);
    to->resize(before + got);
    Note(std::ferror(file_) == 0);
    return got > 0;
  }

 private:
  bool Note(bool is_ok) {
    if (!is_ok) error_ = errno;
    return is_ok;
  }

  const std::string path_;
  std::FILE* const file_;
  int error_ = 0;
};

struct DumpOptions {
  DumpServer server;
  std::optional<uint64_t> db;
  DumpFormat format = DumpFormat::kResp;
  std::string file = "-";
  ExportOptions range;
  bool strict = false;
};

int RunExport(DumpOptions& options) {
  std::string problem;
  auto client = DumpClient::Connect(options.server, &problem);
  if (!client) return Complain(problem);
  Stream stream(options.file, /*writes=*/true);
  if (!stream.ok()) return Complain(stream.problem());
  options.range.db = options.db.value_or(0);
  options.range.format = options.format;
  ExportSummary summary;
  problem = Export(
      *client, options.range, [&](std::string_view bytes) { return stream.Write(bytes); },
      &summary);
  stream.Flush();
  if (!stream.ok()) return Complain(stream.problem());
  if (!problem.empty()) {
    return Complain(
        fmt::format("{} (after {} keys; the export is not whole)", problem, summary.keys));
  }
  fmt::print(stderr, "exported {} keys{}\n", summary.keys,
             summary.is_one_version ? " of one version" : ", each as it was when it was read");
  if (summary.skipped > 0) {
    fmt::print(stderr, "skipped {} keys that are no strings\n", summary.skipped);
  }
  return 0;
}

// What was wrong with the input, or empty.
std::string ReadInput(const DumpOptions& options, Stream& stream, Importer& importer) {
  const auto source = [&](std::string* to, size_t bytes) { return stream.Read(to, bytes); };
  DumpProblem problem;
  if (options.format == DumpFormat::kResp) {
    problem = ReadResp(source, {.on_select = [&](uint64_t db) { return importer.Select(db); },
                                .on_set = [&](auto args) { return importer.Set(args); }});
  } else {
    problem = ReadJsonl(source, [&](const DumpItem& item) { return importer.Set(item); });
  }
  if (!stream.ok()) return stream.problem();
  return problem.empty() ? problem : fmt::format("{}: {}", stream.path(), problem);
}

int RunImport(const DumpOptions& options) {
  std::string problem;
  std::unique_ptr<Stream> stream;
  if (options.format != DumpFormat::kRdb) {
    stream = std::make_unique<Stream>(options.file, /*writes=*/false);
    if (!stream->ok()) return Complain(stream->problem());
  }
  auto client = DumpClient::Connect(options.server, &problem);
  if (!client) return Complain(problem);
  Importer importer(*client, options.db, [](std::string_view key, std::string_view why) {
    fmt::print(stderr, "skep-dump: key {}: {}\n", Quoted(key), why);
  });
  RdbImport rdb{.on_skipped =
                    [](uint64_t db, std::string_view key, std::string_view type) {
                      fmt::print(stderr, "skep-dump: skipped: database {}, key {}: {}\n", db,
                                 Quoted(key), type);
                    },
                .is_strict = options.strict};
  problem = options.format == DumpFormat::kRdb
                ? ImportRdb(PosixFileSystem(), options.file, importer, &rdb)
                : ReadInput(options, *stream, importer);
  importer.Finish();
  fmt::print(stderr, "imported {} keys", importer.stored());
  if (importer.refused() > 0) fmt::print(stderr, ", {} were refused", importer.refused());
  if (rdb.skipped > 0) fmt::print(stderr, ", {} of other types skipped", rdb.skipped);
  fmt::print(stderr, "\n");
  if (!importer.problem().empty()) return Complain(importer.problem());
  if (!problem.empty()) return Complain(problem);
  return importer.refused() == 0 ? 0 : kFailed;
}

void AddServerOptions(CLI::App& app, DumpOptions& options) {
  app.add_option("--host", options.server.host, "of the server")->capture_default_str();
  app.add_option("--port", options.server.port, "of the server")->capture_default_str();
  app.add_option("--password", options.server.password, "of the server")->envname("REDISCLI_AUTH");
}

void AddFormat(CLI::App& app, DumpOptions& options,
               const std::map<std::string, DumpFormat>& formats, const std::string& help) {
  app.add_option("--format", options.format, help)
      ->transform(CLI::CheckedTransformer(formats).description(""))
      ->type_name("FORMAT")
      ->default_str("resp");
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app("Copies keys and values of a running server to a file, and back", "skep-dump");
  app.set_version_flag("--version", fmt::format("skep-dump {}", kVersion));
  app.footer(
      "Formats: resp, a stream of SELECT and SET ... PXAT, which redis-cli --pipe takes, too;\n"
      "jsonl, an object a line: {\"key\":\"a\",\"value\":\"1\",\"deadline_ms\":1800000000000}, "
      "bytes that\n"
      "are not UTF-8 as key_base64 and value_base64; rdb, a file of Redis.\n\n"
      "Exit status: 0 done; 1 it failed, or keys were refused; 2 the command line is wrong.");
  app.require_subcommand(1);
  DumpOptions options;
  CLI::App* out = app.add_subcommand(
      "export", "of a keyspace with an order, all of one version; others keep writing meanwhile");
  AddServerOptions(*out, options);
  out->add_option("--db", options.db, "the database")->default_str("0");
  auto* from =
      out->add_option("--from", options.range.from, "the first key; without: from the first");
  auto* to =
      out->add_option("--to", options.range.to, "the key to end before; without: to the last");
  out->add_option("--prefix", options.range.prefix, "the keys that begin so")
      ->excludes(from)
      ->excludes(to);
  AddFormat(*out, options, {{"resp", DumpFormat::kResp}, {"jsonl", DumpFormat::kJsonl}},
            "resp or jsonl");
  out->add_option("--output", options.file, "a file; - is the standard output")
      ->capture_default_str();

  CLI::App* in = app.add_subcommand("import", "keys that are there are overwritten");
  AddServerOptions(*in, options);
  in->add_option("--db", options.db,
                 "the database for everything; without: those that the input names, else 0");
  AddFormat(*in, options,
            {{"resp", DumpFormat::kResp}, {"jsonl", DumpFormat::kJsonl}, {"rdb", DumpFormat::kRdb}},
            "resp, jsonl or rdb");
  in->add_flag("--strict", options.strict,
               "of rdb: import nothing if the file has keys that are no strings; without, such are "
               "listed and skipped");
  in->add_option("FILE", options.file, "- is the standard input, but not for rdb")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (in->parsed() && options.format == DumpFormat::kRdb && options.file == "-") {
    Complain("--format rdb needs a FILE: it is read twice");
    return kUsage;
  }
  return out->parsed() ? RunExport(options) : RunImport(options);
}
