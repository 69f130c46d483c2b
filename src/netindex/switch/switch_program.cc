#include "netindex/switch/switch_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

SKEP_EMBED(skep_switch_program, SKEP_SWITCH_PROGRAM);

namespace skep::netindex {
namespace {

// BPF_TCX_INGRESS, which the headers of Debian 12 do not have yet.
constexpr auto kTcIngress = static_cast<bpf_attach_type>(46);
constexpr const char* kBankNames[] = {"bank_0", "bank_1"};

Status LastError(const char* what) { return {Code::kIo, what, static_cast<uint64_t>(errno)}; }

void Add(const SwitchCounters& from, SwitchCounters* to) {
  to->gets += from.gets;
  to->hinted += from.hinted;
  to->cleared += from.cleared;
  to->answers += from.answers;
  to->stale += from.stale;
  to->reads += from.reads;
  to->foreign += from.foreign;
}

}  // namespace

void SwitchProgram::Unmapper::operator()(SwitchBank* bank) const { munmap(bank, sizeof(*bank)); }

Result<SwitchProgram> SwitchProgram::Load(const SwitchConfig& config, std::string* problem) {
  auto loaded = BpfProgram::Load({skep_switch_program, skep_switch_program_end},
                                 std::as_bytes(std::span(&config, 1)), problem);
  if (!loaded) return Fail(loaded.error());
  SwitchProgram program(std::move(*loaded));
  if (!program.MapBanks()) {
    const Status error = LastError("the tables cannot be mapped");
    *problem = error.ToString();
    return Fail(error);
  }
  return program;
}

bool SwitchProgram::MapBanks() {
  for (const char* name : kBankNames) {
    void* const memory = mmap(nullptr, sizeof(SwitchBank), PROT_READ | PROT_WRITE, MAP_SHARED,
                              program_.MapNamed(name), 0);
    if (memory == MAP_FAILED) return false;
    banks_.emplace_back(static_cast<SwitchBank*>(memory));
  }
  return true;
}

Status SwitchProgram::Install(const SwitchBank& bank) {
  const uint32_t next = 1 - used_;
  std::memcpy(banks_[next].get(), &bank, sizeof(bank));
  const uint32_t zero = 0;
  const int map = program_.MapNamed(kBankNames[next]);
  if (bpf_map_update_elem(program_.MapNamed("current"), &zero, &map, BPF_ANY) != 0) {
    return LastError("the bank cannot be replaced");
  }
  used_ = next;
  return {};
}

SwitchCounters SwitchProgram::Counters() const {
  SwitchCounters sum{};
  std::vector<SwitchCounters> all(static_cast<size_t>(libbpf_num_possible_cpus()));
  const uint32_t zero = 0;
  if (bpf_map_lookup_elem(program_.MapNamed("counters"), &zero, all.data()) != 0) return sum;
  for (const SwitchCounters& one : all) Add(one, &sum);
  return sum;
}

int SwitchProgram::program_fd(SwitchMode mode) const {
  const char* const name = mode == SwitchMode::kTc ? "skep_switch_tc" : "skep_switch";
  return program_.ProgramNamed(name);
}

Result<FileDescriptor> SwitchProgram::Attach(unsigned interface, SwitchMode mode) const {
  LIBBPF_OPTS(bpf_link_create_opts, options);
  if (mode == SwitchMode::kNative) options.flags = XDP_FLAGS_DRV_MODE;
  if (mode == SwitchMode::kGeneric) options.flags = XDP_FLAGS_SKB_MODE;
  FileDescriptor link(bpf_link_create(program_fd(mode), static_cast<int>(interface),
                                      mode == SwitchMode::kTc ? kTcIngress : BPF_XDP, &options));
  if (!link.valid()) return std::unexpected(LastError("not attached"));
  return link;
}

}  // namespace skep::netindex
