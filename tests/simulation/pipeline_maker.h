// pipeline_maker.h: makes random pipelines of one connection that has its keys to itself.
//
//   databases 0, 1    shared with other clients; this one's keys begin with its prefix and lie
//                     between two permanent ones of its own, so that floors and ceilings are its
//   database 8 + id   its own: also for commands that read or empty a whole database
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "tests/simulation/command_oracle.h"

namespace skep::simulation {

struct Pipeline {
  std::string bytes;
  std::vector<std::vector<std::string>> commands;
  std::vector<Expected> expected;  // one of each command
};

// Thread safety: one owner.
class PipelineMaker {
 public:
  PipelineMaker(uint32_t id, int protocol, Random& random)
      : id_(id), prefix_(fmt::format("c{}:", id)), random_(random), oracle_(protocol) {}

  // Stores the two permanent keys.
  Pipeline First();
  Pipeline Next(size_t commands);
  // Learns from a reply that matched the expected one.
  void Learn(const Expected& expected, const RespReply& got) { oracle_.Learn(expected, got); }

 private:
  using Args = std::vector<std::string>;

  void Add(Pipeline& pipeline, Args args);
  Args Command();
  Args Point();
  Args Many();
  Args Range();
  Args RangeOf(const char* name);
  Args Scan();
  Args Local();
  Args Wrong();
  Args OwnDatabase();
  std::string Key();
  std::string Value();
  bool is_own_database() const { return oracle_.database() >= 8; }

  const uint32_t id_;
  const std::string prefix_;
  Random& random_;
  CommandOracle oracle_;
};

}  // namespace skep::simulation
