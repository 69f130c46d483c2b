#include "server/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <mutex>

namespace skep {
namespace {

class FileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  FileSink(std::unique_ptr<File> file, Clock& clock) : file_(std::move(file)), clock_(clock) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::details::log_msg timed = message;
    timed.time = spdlog::log_clock::time_point(std::chrono::microseconds(clock_.WallUs()));
    spdlog::memory_buf_t line;
    formatter_->format(timed, line);
    // A log that cannot be written must not stop the server.
    static_cast<void>(file_->Append({line.data(), line.size()}));
  }
  void flush_() override {}

  std::unique_ptr<File> file_;
  Clock& clock_;
};

}  // namespace

Result<std::shared_ptr<spdlog::logger>> MakeLog(const ServerOptions& options, FileSystem& files,
                                                Clock& clock) {
  spdlog::sink_ptr sink;
  if (options.logfile.empty()) {
    sink = std::make_shared<spdlog::sinks::stdout_sink_mt>();
  } else {
    auto file = files.Open(options.logfile, FileSystem::Mode::kReadWrite);
    if (!file) return Fail(file.error());
    sink = std::make_shared<FileSink>(std::move(*file), clock);
  }
  auto log = std::make_shared<spdlog::logger>("skep", std::move(sink));
  log->set_pattern("%Y-%m-%d %H:%M:%S.%e %L %v");
  log->flush_on(spdlog::level::trace);
  SetLogLevel(*log, options);
  return log;
}

void SetLogLevel(spdlog::logger& log, const ServerOptions& options) {
  // Redis's names, most to least: debug, verbose, notice, warning, nothing.
  if (options.loglevel == "debug") return log.set_level(spdlog::level::trace);
  if (options.loglevel == "verbose") return log.set_level(spdlog::level::debug);
  if (options.loglevel == "notice") return log.set_level(spdlog::level::info);
  if (options.loglevel == "warning") return log.set_level(spdlog::level::warn);
  log.set_level(spdlog::level::off);
}

}  // namespace skep
