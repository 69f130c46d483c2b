#include "netindex/controller/controller.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "base/file_descriptor.h"
#include "netindex/xdp/unix_socket.h"

namespace skep::netindex {
namespace {

// Addresses of a version's nodes are below this number of the next one.
constexpr uint32_t kAddressBits = 24;
constexpr uint64_t kAddressMask = (uint64_t{1} << 48) - 1;

Status LastError(Code code, const char* what) { return {code, what, static_cast<uint64_t>(errno)}; }

// A file without a name that holds the bank.
Result<FileDescriptor> FileOf(const SwitchBank& bank) {
  FileDescriptor file(memfd_create("skep-bank", MFD_CLOEXEC));
  const auto* const bytes = reinterpret_cast<const char*>(&bank);
  for (size_t at = 0; file.valid() && at < sizeof(bank);) {
    const ssize_t put = write(file.get(), bytes + at, sizeof(bank) - at);
    if (put <= 0) return std::unexpected(LastError(Code::kIo, "no memory for tables"));
    at += static_cast<size_t>(put);
  }
  if (!file.valid()) return std::unexpected(LastError(Code::kIo, "no memory for tables"));
  return file;
}

}  // namespace

Result<SwitchReply> UnixSwitchPort::Ask(uint32_t version, const SwitchBank* bank) {
  const auto socket = xdp::ConnectUnix(path_);
  if (!socket) return std::unexpected(LastError(Code::kUnavailable, "no process of a switch"));
  // A process that hangs holds this round back for so long, and no other one.
  const timeval patience = {.tv_sec = kPatienceSeconds, .tv_usec = 0};
  for (const int direction : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    setsockopt(socket->get(), SOL_SOCKET, direction, &patience, sizeof(patience));
  }
  const SwitchRequest request{.version = version};
  FileDescriptor file;
  if (bank != nullptr) {
    auto made = FileOf(*bank);
    if (!made) return Fail(made.error());
    file = std::move(*made);
  }
  const int sent = file.get();
  const std::span<const int> files(&sent, file.valid() ? 1 : 0);
  SwitchReply reply;
  if (!xdp::SendWithFiles(socket->get(), &request, sizeof(request), files) ||
      !xdp::ReceiveWithFiles(socket->get(), &reply, sizeof(reply))) {
    return std::unexpected(LastError(Code::kUnavailable, "the switch does not answer"));
  }
  if (reply.error != 0) return Fail(Code::kIo, "the switch refuses the tables", reply.error);
  return reply;
}

Controller::Controller(LeafSource& source, std::vector<Switch> switches, Report report)
    : source_(source),
      switches_(std::move(switches)),
      report_(std::move(report)),
      replies_(switches_.size()) {
  // Tables are given in this order, since a root leads to nodes that the others must have by then.
  std::ranges::stable_partition(switches_, [](const Switch& at) { return !at.role.has_root; });
}

bool Controller::Step() {
  bool is_done = AskAll();
  const auto ranges = source_.Ranges();
  if (!ranges) {
    report_(fmt::format("the map of ranges: {}", ranges.error().what()));
    return false;
  }
  if (IsDue() || tables_->ranges != *ranges) {
    if (const Status status = MakeNewTables(*ranges); !status.ok()) {
      report_(fmt::format("the leaves of the servers: {}", status.what()));
      return false;
    }
  }
  for (size_t i = 0; i < switches_.size(); ++i) {
    if (!replies_[i] || replies_[i]->version == version_) continue;
    const Status status = Give(i);
    is_done = is_done && status.ok();
    if (!status.ok()) report_(fmt::format("{}: {}", switches_[i].role.socket, status.what()));
  }
  return is_done;
}

bool Controller::AskAll() {
  bool is_done = true;
  for (size_t i = 0; i < switches_.size(); ++i) {
    const auto reply = switches_[i].port->Ask(0, nullptr);
    replies_[i].reset();
    if (reply) {
      replies_[i] = *reply;
    } else {
      report_(fmt::format("{}: {}", switches_[i].role.socket, reply.error().what()));
      is_done = false;
    }
  }
  return is_done;
}

std::pair<uint64_t, uint64_t> Controller::AnswersAndMisses() const {
  uint64_t answers = 0, misses = 0;
  for (size_t i = 0; i < switches_.size(); ++i) {
    if (!replies_[i] || !switches_[i].role.is_last) continue;
    answers += replies_[i]->counters.answers;
    misses += replies_[i]->counters.stale + replies_[i]->counters.cleared;
  }
  return {answers, misses};
}

bool Controller::IsDue() {
  const auto [answers, misses] = AnswersAndMisses();
  if (!tables_) return true;
  if (!drift_.Note(answers, misses)) return false;
  report_(fmt::format("right hints: {:.0f} % of answers", 100 * drift_.rate()));
  return true;
}

Status Controller::MakeNewTables(const std::vector<ServerRange>& ranges) {
  std::vector<ServerLeaves> leaves;
  std::vector<SwitchRole> roles;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const std::string_view upper = i + 1 < ranges.size() ? ranges[i + 1].lower : std::string_view();
    auto found = source_.LeavesOf(ranges[i], upper);
    if (!found) return found.error();
    for (IndexLeaf& leaf : found->leaves) {
      leaf.hits = history_.Weigh(leaf.address ^ uint64_t{i} << 40, leaf.hits);
    }
    leaves.push_back(std::move(*found));
  }
  history_.EndRound();
  for (const auto& reply : replies_) version_ = std::max(version_, reply ? reply->version : 0);
  ++version_;
  for (const Switch& at : switches_) roles.push_back(at.role);
  const uint64_t first_address = (uint64_t{version_} << kAddressBits & kAddressMask) + 1;
  tables_ = MakeTables(ranges, leaves, LayersOf(roles), first_address);
  const auto [answers, misses] = AnswersAndMisses();
  drift_.Begin(tables_->covered, answers, misses);
  size_t all = 0, nodes = 0;
  for (const ServerLeaves& one : leaves) all += one.leaves.size();
  for (const Layer& layer : tables_->layers) nodes += layer.size();
  report_(fmt::format("tables {}: {} leaves, {} ranges, {} nodes; hints for {:.0f} % of accesses",
                      version_, all, tables_->root.ranges.size(), nodes, 100 * tables_->covered));
  return {};
}

Status Controller::Give(size_t at) {
  const auto bank = std::make_unique<SwitchBank>();
  const Status status = WriteBank(*tables_, switches_[at].role, bank.get());
  if (!status.ok()) return status;
  const auto reply = switches_[at].port->Ask(version_, bank.get());
  return reply ? Status() : reply.error();
}

}  // namespace skep::netindex
