// pipeline_maker.h: random pipelines of one connection that has its keys to itself.
//
//   databases 0, 1    shared with the other clients; this one's keys begin with its prefix and lie
//                     between two of its own that stay, so that floors and ceilings are its own
//   database 8 + id   its own: there also what reads or empties a whole database
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
  std::vector<Expected> expected;  // one a command
};

// Thread safety: one owner.
class PipelineMaker {
 public:
  PipelineMaker(uint32_t id, int protocol, Random& random)
      : id_(id), prefix_(fmt::format("c{}:", id)), random_(random), oracle_(protocol) {}

  // Stores the two keys that stay.
  Pipeline First();
  Pipeline Next(size_t commands);
  // The reply to a command that matched what was expected.
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
