// controller.h: keeps the tables of switches in step with the trees of servers (Fat-B+Tree, II).
//
// A round asks every switch what it has counted and which tables it has. Tables are made anew if
// there are none, if the map of ranges has changed, or if too few hints are right (drift.h); each
// switch that does not have the newest ones is given them, the last ones on a way first, so that a
// fat root leads to nodes that are there. For a moment switches have tables of two versions. Nodes
// of one version have other addresses than those of another, so a query that meets both ends where
// the tables part, without a hint: that costs its server a way down, and no more.
//
// No round waits for another one. What a server or a switch refuses is reported, and is tried again
// in the next round; the other switches keep and get tables all the same.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netindex/controller/deployment.h"
#include "netindex/controller/drift.h"
#include "netindex/controller/leaf_source.h"
#include "netindex/switch/switch_request.h"
#include "skep/status.h"

namespace skep::netindex {

// A switch as the controller reaches it.
class SwitchPort {
 public:
  virtual ~SwitchPort() = default;
  // Asks, with tables of this version, or with none (null).
  //   kUnavailable  there is no such process
  //   kIo           the errno of the switch
  virtual Result<SwitchReply> Ask(uint32_t version, const SwitchBank* bank) = 0;
};

// A switch whose process listens on a unix socket of this machine.
class UnixSwitchPort final : public SwitchPort {
 public:
  // How long a switch may take to answer.
  static constexpr int kPatienceSeconds = 5;

  explicit UnixSwitchPort(std::string path) : path_(std::move(path)) {}
  Result<SwitchReply> Ask(uint32_t version, const SwitchBank* bank) override;

 private:
  const std::string path_;
};

// Thread safety: one owner.
class Controller {
 public:
  struct Switch {
    SwitchRole role;
    std::unique_ptr<SwitchPort> port;
  };
  using Report = std::function<void(std::string_view line)>;

  // `source` outlives it. `report` takes what a person should know.
  Controller(LeafSource& source, std::vector<Switch> switches, Report report);

  // One round. True: all switches have the newest tables.
  bool Step();

 private:
  bool AskAll();
  bool IsDue();
  Status MakeNewTables(const std::vector<ServerRange>& ranges);
  Status Give(size_t at);
  std::pair<uint64_t, uint64_t> AnswersAndMisses() const;

  LeafSource& source_;
  std::vector<Switch> switches_;
  const Report report_;
  std::vector<std::optional<SwitchReply>> replies_;  // of this round
  std::optional<Tables> tables_;
  uint32_t version_ = 0;
  DriftWatch drift_;
  HitHistory history_;
};

}  // namespace skep::netindex
