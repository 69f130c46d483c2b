#include "server/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace skep {
namespace {

class FileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  FileSink(FileSystem& files, std::string path, Clock& clock)
      : files_(files), path_(std::move(path)), clock_(clock) {}

  Status Open() {
    auto file = files_.Open(path_, FileSystem::Mode::kReadWrite);
    if (!file) return file.error();
    const std::lock_guard lock(mutex_);
    file_ = std::move(*file);
    return {};
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::details::log_msg timed = message;
    timed.time = spdlog::log_clock::time_point(std::chrono::microseconds(clock_.WallUs()));
    spdlog::memory_buf_t line;
    formatter_->format(timed, line);
    // The file's present end, because others may write or cut the file. A log that cannot be
    // written must not stop the server.
    if (const auto end = file_->Size()) {
      static_cast<void>(file_->WriteAt(*end, {line.data(), line.size()}));
    }
  }
  void flush_() override {}

  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<File> file_;  // guarded by mutex_
  Clock& clock_;
};

// The sink of a device that may be named as the log; null if `path` is none of them.
spdlog::sink_ptr SinkOfDevice(std::string_view path) {
  if (path.empty() || path == "/dev/stdout") {
    return std::make_shared<spdlog::sinks::stdout_sink_mt>();
  }
  if (path == "/dev/stderr") return std::make_shared<spdlog::sinks::stderr_sink_mt>();
  if (path == "/dev/null") return std::make_shared<spdlog::sinks::null_sink_mt>();
  return nullptr;
}

}  // namespace

Result<std::shared_ptr<spdlog::logger>> MakeLog(const ServerOptions& options, FileSystem& files,
                                                Clock& clock) {
  spdlog::sink_ptr sink = SinkOfDevice(options.logfile);
  if (sink == nullptr) {
    auto file = std::make_shared<FileSink>(files, options.logfile, clock);
    if (const Status s = file->Open(); !s.ok()) return Fail(s);
    sink = std::move(file);
  }
  auto log = std::make_shared<spdlog::logger>("skep", std::move(sink));
  log->set_pattern("%Y-%m-%d %H:%M:%S.%e %L %v");
  log->flush_on(spdlog::level::trace);
  SetLogLevel(*log, options);
  return log;
}

Status ReopenLog(spdlog::logger& log) {
  for (const spdlog::sink_ptr& sink : log.sinks()) {
    if (auto* const file = dynamic_cast<FileSink*>(sink.get())) return file->Open();
  }
  return {};
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
