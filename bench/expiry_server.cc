#include "bench/expiry_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/clock.h"
#include "base/network_address.h"

namespace skep::bench {
namespace {

constexpr uint64_t kPipeline = 256;  // commands under way

// Returns the number behind "name=" in a line of INFO keyspace; 0 if there is none.
uint64_t CountIn(std::string_view line, std::string_view name) {
  const std::string head = fmt::format("{}=", name);
  const size_t at = line.find(head);
  uint64_t count = 0;
  if (at != std::string_view::npos) {
    std::from_chars(line.data() + at + head.size(), line.data() + line.size(), count);
  }
  return count;
}

// Returns the time in TIME's reply, which has bulks of seconds and microseconds.
std::optional<uint64_t> MicrosecondsOf(std::string_view reply) {
  uint64_t parts[2] = {};
  for (uint64_t& part : parts) {
    const size_t bulk = reply.find('$');
    const size_t at = reply.find('\n', bulk);
    if (bulk == std::string_view::npos || at == std::string_view::npos) return std::nullopt;
    reply.remove_prefix(at + 1);
    if (std::from_chars(reply.data(), reply.data() + reply.size(), part).ec != std::errc()) {
      return std::nullopt;
    }
  }
  return parts[0] * 1'000'000 + parts[1];
}

}  // namespace

Result<ExpiryServer> ExpiryServer::Connect(const std::string& host, uint16_t port) {
  auto connection = StreamConnection::Connect(AddressOf(host, port));
  if (!connection) return Fail(connection.error());
  return ExpiryServer(std::move(*connection));
}

Result<std::string_view> ExpiryServer::Info(std::string_view section) {
  AppendCommand(pipeline_.out(), {"INFO", section});
  auto reply = pipeline_.NextReply();
  if (reply && reply->front() != '$') return Fail(Code::kCorrupt, "INFO was refused");
  return reply;
}

Result<std::string> ExpiryServer::Name() {
  const auto info = Info("server");
  if (!info) return Fail(info.error());
  // Skep names a Redis version too, so its own name is looked for first.
  if (const auto version = InfoField(*info, "skep_version"))
    return fmt::format("skep {}", *version);
  return fmt::format("redis {}", InfoField(*info, "redis_version").value_or("?"));
}

Result<ExpiryServer::Keys> ExpiryServer::CountKeys() {
  const auto info = Info("keyspace");
  if (!info) return Fail(info.error());
  const std::string_view line = InfoField(*info, "db0").value_or("");
  return Keys{.all = CountIn(line, "keys"), .with_deadline = CountIn(line, "expires")};
}

Result<ExpiryServer::Memory> ExpiryServer::MeasureMemory() {
  const auto info = Info("memory");
  if (!info) return Fail(info.error());
  return Memory{.used_bytes = InfoNumber(*info, "used_memory"),
                .rss_bytes = InfoNumber(*info, "used_memory_rss")};
}

Result<int64_t> ExpiryServer::ClockLeadNs() {
  const uint64_t before_ns = SystemClock().MonotonicNs();
  AppendCommand(pipeline_.out(), {"TIME"});
  const auto reply = pipeline_.NextReply();
  if (!reply) return Fail(reply.error());
  const uint64_t after_ns = SystemClock().MonotonicNs();
  const auto time_us = MicrosecondsOf(*reply);
  if (!time_us) return Fail(Code::kCorrupt, "TIME was refused");
  return static_cast<int64_t>(*time_us * 1000) -
         static_cast<int64_t>(before_ns + (after_ns - before_ns) / 2);
}

Status ExpiryServer::Load(KeyFormat format, const ValuePool& values, uint64_t first, uint64_t count,
                          std::optional<Deadlines> deadlines) {
  std::string key(format.bytes(), '\0');
  for (uint64_t done = 0; done < count;) {
    const uint64_t end = std::min(done + kPipeline, count);
    const uint64_t sent = end - done;
    for (; done < end; ++done) {
      format.Render(first + done, key.data());
      const std::string_view value = values.at(first + done);
      if (!deadlines) {
        AppendCommand(pipeline_.out(), {"SET", key, value});
        continue;
      }
      const fmt::format_int at(deadlines->first_ms + done * deadlines->spread_ms / count);
      AppendCommand(pipeline_.out(),
                    {"SET", key, value, "PXAT", std::string_view(at.data(), at.size())});
    }
    for (uint64_t i = 0; i < sent; ++i) {
      const auto reply = pipeline_.NextReply();
      if (!reply) return reply.error();
      if (reply->front() != '+') return Status(Code::kCorrupt, "SET was refused");
    }
  }
  return {};
}

}  // namespace skep::bench
