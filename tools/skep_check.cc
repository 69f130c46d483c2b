// skep-check: tells whether the files of a store are sound, what they contain, and how to repair
// them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/decimal.h"
#include "base/file.h"
#include "durable/directory_check.h"
#include "durable/rehearsal.h"
#include "durable/repair_directory.h"
#include "server/function_library.h"
#include "server/version.h"
#include "tools/check_report.h"

namespace {

using namespace skep;
using durable::FileKind;

constexpr int kSound = 0;
constexpr int kDamaged = 1;
constexpr int kCannot = 2;

struct CheckOptions {
  std::string path;
  bool json = false;
  bool list = false;
  bool repair = false;
  bool replay = false;
  // Options of a repair or a replay.
  Options store;
  std::vector<std::string> keyspaces;
  std::vector<std::string> function_libraries;
};

int Cannot(const std::string& why) {
  fmt::print(stderr, "skep-check: {}\n", why);
  return kCannot;
}

class Lister final : public durable::CheckVisitor {
 public:
  void OnItem(uint64_t keyspace, const durable::SnapshotItem& item) override {
    Print(LineOf(keyspace, item));
  }
  void OnChange(const durable::LoggedChange& change) override { Print(LineOf(change)); }

 private:
  static void Print(const std::string& line) { std::fwrite(line.data(), 1, line.size(), stdout); }
};

template <typename Check>
int Report(const CheckOptions& options, const Result<Check>& check) {
  if (!check) return Cannot(fmt::format("{}: {}", options.path, check.error().ToString()));
  std::string text;
  if (options.json) {
    text = JsonOf(*check);
  } else if constexpr (std::is_same_v<Check, durable::SnapshotCheck>) {
    text = TextOf(*check, SystemClock().WallMs());
  } else {
    text = TextOf(*check);
  }
  fmt::print("{}", text);
  return check->damage.empty() ? kSound : kDamaged;
}

int CheckFile(const CheckOptions& options, FileKind kind) {
  FileSystem& files = PosixFileSystem();
  Lister lister;
  durable::CheckVisitor* const visitor = options.list ? &lister : nullptr;
  if (kind == FileKind::kSnapshot) {
    return Report(options, durable::CheckSnapshot(files, options.path, visitor));
  }
  if (kind == FileKind::kRdb) {
    return Report(options, durable::CheckRdb(files, options.path, visitor));
  }
  durable::ChangeVisit visit;
  if (options.list) visit = [&](const durable::LoggedChange& change) { lister.OnChange(change); };
  return Report(options, durable::CheckSegment(files, options.path, visit));
}

// Returns an exit status if the store's options are wrong.
std::optional<int> SetUpStore(CheckOptions& options) {
  for (const std::string& path : options.function_libraries) {
    if (const std::string why = LoadFunctionLibrary(path); !why.empty()) return Cannot(why);
  }
  for (const std::string& keyspace : options.keyspaces) {
    const size_t equals = keyspace.find('=');
    const auto index = ParseUint64(keyspace.substr(0, equals));
    if (!index || equals == keyspace.npos || *index >= options.store.keyspaces) {
      return Cannot(fmt::format("--keyspace {}: it is NUMBER=ENGINE, with a number below {}",
                                keyspace, options.store.keyspaces));
    }
    options.store.keyspace_engines[static_cast<uint32_t>(*index)] = keyspace.substr(equals + 1);
  }
  options.store.directory = options.path;
  return std::nullopt;
}

int Repair(CheckOptions options) {
  if (const auto wrong = SetUpStore(options)) return *wrong;
  std::string problem;
  const auto report =
      durable::RepairDirectory(PosixFileSystem(), SystemClock(), options.store, &problem);
  if (!report) return Cannot(problem);
  fmt::print("{}", options.json ? JsonOf(*report) : TextOf(*report));
  return report->repair.lost.empty() ? kSound : kDamaged;
}

// Replays without checking the files before, as a start does.
int Replay(CheckOptions options) {
  if (const auto wrong = SetUpStore(options)) return *wrong;
  std::string problem;
  const auto rehearsal =
      durable::RehearseStart(PosixFileSystem(), SystemClock(), options.store, &problem);
  if (!rehearsal) {
    const Code code = rehearsal.error().code();
    if (code == Code::kUnavailable || code == Code::kInvalidArgument) return Cannot(problem);
    fmt::print("{}", options.json ? JsonOfFailedStart(problem)
                                  : fmt::format("a start fails: {}\n", problem));
    return kDamaged;
  }
  fmt::print("{}", options.json ? JsonOf(*rehearsal) : TextOf(*rehearsal));
  return kSound;
}

int CheckStore(const CheckOptions& options) {
  Lister lister;
  std::string problem;
  const auto check = durable::CheckDirectory(PosixFileSystem(), options.path,
                                             options.list ? &lister : nullptr, &problem);
  if (!check) return Cannot(problem);
  const bool is_sound = check->damage.empty();
  const bool repairs = options.repair && !is_sound;
  if (!options.json) fmt::print("{}", TextOf(*check, SystemClock().WallMs()));
  if (options.json && !repairs) fmt::print("{}", JsonOf(*check));
  if (repairs) return Repair(options);
  return is_sound ? kSound : kDamaged;
}

int Run(CheckOptions& options) {
  while (options.path.size() > 1 && options.path.ends_with('/')) options.path.pop_back();
  const auto kind = durable::KindOf(PosixFileSystem(), options.path);
  if (!kind) return Cannot(fmt::format("{}: {}", options.path, kind.error().ToString()));
  if (!*kind) {
    return Cannot(
        fmt::format("{}: neither a directory, nor a segment of a log, a snapshot or an RDB file",
                    options.path));
  }
  if (**kind == FileKind::kDirectory) return options.replay ? Replay(options) : CheckStore(options);
  if (options.repair || options.replay) {
    return Cannot(fmt::format("{}: --repair and --replay take a directory", options.path));
  }
  return CheckFile(options, **kind);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Checks what skep-server --dir keeps, without a server: every checksum of every file, and\n"
      "whether together they are a store. Prints what is in each file.",
      "skep-check");
  app.set_version_flag("--version", fmt::format("skep-check {}", kVersion));
  app.footer(
      "Exit status: 0 sound, or repaired and nothing lost; 1 damaged, something lost, or a start\n"
      "fails; 2 the command line is wrong, a file cannot be read, or a server has the directory\n"
      "open.\n\n"
      "A repair writes what is good as a new snapshot and keeps the damaged files, with .damaged\n"
      "behind their names. It asks nothing: copy the directory before, if there is room for it.");
  CheckOptions options;
  app.add_option("PATH", options.path,
                 "the directory of a store, or a segment of a log, a snapshot or an RDB file")
      ->required();
  auto* json = app.add_flag("--json", options.json, "one object instead of lines");
  auto* list = app.add_flag("--list", options.list,
                            "print every item and change first, a line each: item KEYSPACE KEY "
                            "VALUE [until MS]; change POSITION KEYSPACE VERSION WHAT ...");
  list->excludes(json);
  auto* repair =
      app.add_flag("--repair", options.repair, "if it is damaged, take what is good and go on");
  repair->excludes(list);
  app.add_flag("--replay", options.replay,
               "do what a start does, in memory, and change nothing: load the newest snapshot and "
               "replay the log")
      ->excludes(list)
      ->excludes(repair);
  const std::vector<CLI::Option*> of_store = {
      app.add_option("--engine", options.store.engine, "of keyspaces of which no file says it")
          ->capture_default_str(),
      app.add_option("--databases", options.store.keyspaces, "how many there may be")
          ->capture_default_str(),
      app.add_option("--keyspace", options.keyspaces, "NUMBER=ENGINE, as --engine of one of them"),
      app.add_option("--function-library", options.function_libraries,
                     "a shared object with functions that the log needs")};
  for (CLI::Option* const option : of_store) option->group("For --repair and --replay");
  try {
    app.parse(argc, argv);
    for (const CLI::Option* const option : of_store) {
      if (option->count() == 0 || options.repair || options.replay) continue;
      throw CLI::RequiresError(option->get_name(), "--repair or --replay");
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kCannot;
  }
  return Run(options);
}
