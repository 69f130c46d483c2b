#include "tools/cli/bulk.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "tools/cli/exit_status.h"
#include "tools/file_stream.h"

namespace skep::cli {
namespace {

constexpr uint64_t kErrorsShown = 10;
constexpr uint64_t kBarIntervalMs = 200;
constexpr size_t kBarColumns = 30;

double SecondsSince(uint64_t begin_ns) {
  return static_cast<double>(SystemClock().MonotonicNs() - begin_ns) / 1e9;
}

// Shows the progress: a bar if the size of the input is known. Shows nothing if standard error is
// no terminal.
class Bar {
 public:
  Bar() : is_shown_(isatty(STDERR_FILENO) == 1) {
    struct stat about = {};
    if (fstat(STDIN_FILENO, &about) == 0 && S_ISREG(about.st_mode)) {
      total_ = static_cast<uint64_t>(about.st_size);
    }
  }

  void Add(size_t bytes, const BulkSummary& summary) {
    done_ += bytes;
    const uint64_t now_ms = SystemClock().MonotonicMs();
    if (!is_shown_ || now_ms < next_ms_) return;
    next_ms_ = now_ms + kBarIntervalMs;
    std::string text;
    if (total_ != 0) {
      const double part = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
      const auto columns = static_cast<size_t>(part * kBarColumns);
      text =
          fmt::format("[{:<{}}] {:3.0f} %  ", std::string(columns, '='), kBarColumns, part * 100);
    }
    fmt::print(stderr, "\r\033[K{}{} commands", text, summary.commands);
    std::fflush(stderr);
  }
  // Clears the bar, so that something else can be printed.
  void Clear() const {
    if (is_shown_) fmt::print(stderr, "\r\033[K");
  }

 private:
  const bool is_shown_;
  uint64_t total_ = 0;
  uint64_t done_ = 0;
  uint64_t next_ms_ = 0;
};

}  // namespace

std::string LoadBulk(CommandPipeline& pipeline, BulkFormat format, const DumpSource& source,
                     const OnBulkError& on_error, BulkSummary* summary) {
  const uint64_t begin_ns = SystemClock().MonotonicNs();
  const std::string_view unit = format == BulkFormat::kTab ? "line" : "command";
  const auto refuse = [&](std::string_view number, std::string_view why) {
    ++summary->errors;
    on_error(fmt::format("{} {}", unit, number), why);
  };
  pipeline.set_on_reply([&](std::string_view number, const RespReply& reply) {
    ++summary->commands;
    if (reply.is_error()) refuse(number, reply.text);
  });
  uint64_t number = 0;
  const auto send = [&](std::span<const std::string_view> args, bool* goes_on) -> DumpProblem {
    *goes_on = pipeline.Send(args, std::to_string(++number));
    return {};
  };
  const auto send_pair = [&](std::string_view line, bool* goes_on) -> DumpProblem {
    const size_t tab = line.find('\t');
    if (tab == line.npos) {
      refuse(std::to_string(++number), "no TAB");
      return {};
    }
    *goes_on = pipeline.Set({.key = line.substr(0, tab), .value = line.substr(tab + 1)},
                            std::to_string(++number));
    return {};
  };
  DumpProblem problem =
      format == BulkFormat::kTab ? ReadLines(source, send_pair) : ReadCommands(source, send);
  if (pipeline.status().ok()) pipeline.Finish();
  summary->seconds = SecondsSince(begin_ns);
  if (pipeline.status().ok()) return problem;
  return fmt::format("{}; the last {} commands may or may not have been executed",
                     pipeline.status().ToString(), pipeline.unanswered());
}

int RunBulk(const BulkOptions& options) {
  std::string problem;
  const auto peer = options.connect(options.server, &problem);
  if (peer != nullptr) problem = peer->pipeline().Select(options.keyspace);
  if (!problem.empty()) {
    Complain(problem);
    return kNotConnected;
  }
  FileStream input("-", /*writes=*/false);
  BulkSummary summary;
  Bar bar;
  const auto source = [&](std::string* to, size_t bytes) {
    const size_t before = to->size();
    const bool is_more = input.Read(to, bytes);
    bar.Add(to->size() - before, summary);
    return is_more;
  };
  const auto on_error = [&](std::string_view where, std::string_view why) {
    if (summary.errors > kErrorsShown) return;
    bar.Clear();
    Complain(fmt::format("{}: {}", where, why));
  };
  problem = LoadBulk(peer->pipeline(), options.format, source, on_error, &summary);
  if (!input.ok()) problem = input.problem();
  bar.Clear();
  if (!problem.empty()) Complain(problem);
  const char* const what = options.format == BulkFormat::kTab ? "keys" : "commands";
  fmt::print(stderr, "{} {} in {:.2f} s, {:.0f} {}/s, {} errors\n", summary.commands, what,
             summary.seconds,
             static_cast<double>(summary.commands) / std::max(summary.seconds, 1e-9), what,
             summary.errors);
  return problem.empty() && summary.errors == 0 ? kDone : kErrorReply;
}

}  // namespace skep::cli
