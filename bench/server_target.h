// server_target.h: runs benchmarks on a server that speaks the Redis protocol (RESP2).
//
// A batch is a pipeline: all its commands are sent, then all its replies are read, in order.
//
//   operation          commands
//   read               GET key
//   update, insert     SET key value
//   read-modify-write  GET key, SET key value
//   delete             DEL key
//   scan               KRANGE [key + LIMIT 0 n WITHVALUES
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/record_format.h"
#include "bench/ycsb_target.h"

namespace skep::bench {

class ServerTarget final : public YcsbTarget {
 public:
  // Does not connect yet. `values` must outlive the target.
  ServerTarget(std::string host, uint16_t port, const ValuePool& values)
      : host_(std::move(host)), port_(port), values_(values) {}

  // Makes one connection. Errors: as StreamConnection::Connect.
  Result<std::unique_ptr<YcsbSession>> Connect() override;
  // Returns used_memory / DBSIZE and used_memory_rss from INFO, which count everything that the
  // server holds, whoever stored it.
  Result<Footprint> Measure() override;

 private:
  std::string host_;
  uint16_t port_;
  const ValuePool& values_;
};

}  // namespace skep::bench
