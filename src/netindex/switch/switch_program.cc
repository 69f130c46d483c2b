#include "netindex/switch/switch_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/if_link.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

// The program, as clang has compiled it for BPF.
asm(R"(
  .section .rodata
  .balign 8
  .global skep_switch_program
  .global skep_switch_program_end
skep_switch_program:
  .incbin ")" SKEP_SWITCH_PROGRAM R"("
skep_switch_program_end:
  .previous
)");
extern "C" const char skep_switch_program[];
extern "C" const char skep_switch_program_end[];

namespace skep::netindex {
namespace {

// BPF_TCX_INGRESS, which the headers of Debian 12 do not have yet.
constexpr auto kTcIngress = static_cast<bpf_attach_type>(46);
constexpr const char* kBankNames[] = {"bank_0", "bank_1"};

Status LastError(const char* what) { return {Code::kIo, what, static_cast<uint64_t>(errno)}; }

bool Configure(bpf_object* object, const SwitchConfig& config) {
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) {
    if (std::strstr(bpf_map__name(map), ".rodata") == nullptr) continue;
    return bpf_map__set_initial_value(map, &config, sizeof(config)) == 0;
  }
  return false;
}

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

void SwitchProgram::Closer::operator()(bpf_object* object) const { bpf_object__close(object); }
void SwitchProgram::Unmapper::operator()(SwitchBank* bank) const { munmap(bank, sizeof(*bank)); }

Result<SwitchProgram> SwitchProgram::Load(const SwitchConfig& config, std::string* problem) {
  libbpf_set_print(nullptr);
  SwitchProgram program(bpf_object__open_mem(
      skep_switch_program, static_cast<size_t>(skep_switch_program_end - skep_switch_program),
      nullptr));
  bpf_object* const object = program.object_.get();
  if (object == nullptr || !Configure(object, config) || bpf_object__load(object) != 0 ||
      !program.MapBanks()) {
    const int error = errno;
    *problem = fmt::format("the system does not load the program: {}", std::strerror(error));
    return Fail(Code::kIo, "the program cannot be loaded", static_cast<uint64_t>(error));
  }
  return program;
}

int SwitchProgram::MapNamed(const char* name) const {
  return bpf_map__fd(bpf_object__find_map_by_name(object_.get(), name));
}

bool SwitchProgram::MapBanks() {
  for (const char* name : kBankNames) {
    void* const memory =
        mmap(nullptr, sizeof(SwitchBank), PROT_READ | PROT_WRITE, MAP_SHARED, MapNamed(name), 0);
    if (memory == MAP_FAILED) return false;
    banks_.emplace_back(static_cast<SwitchBank*>(memory));
  }
  return true;
}

Status SwitchProgram::Install(const SwitchBank& bank) {
  const uint32_t next = 1 - used_;
  std::memcpy(banks_[next].get(), &bank, sizeof(bank));
  const uint32_t zero = 0;
  const int map = MapNamed(kBankNames[next]);
  if (bpf_map_update_elem(MapNamed("current"), &zero, &map, BPF_ANY) != 0) {
    return LastError("the bank cannot be replaced");
  }
  used_ = next;
  return {};
}

SwitchCounters SwitchProgram::Counters() const {
  SwitchCounters sum{};
  std::vector<SwitchCounters> all(static_cast<size_t>(libbpf_num_possible_cpus()));
  const uint32_t zero = 0;
  if (bpf_map_lookup_elem(MapNamed("counters"), &zero, all.data()) != 0) return sum;
  for (const SwitchCounters& one : all) Add(one, &sum);
  return sum;
}

int SwitchProgram::program_fd(SwitchMode mode) const {
  const char* const name = mode == SwitchMode::kTc ? "skep_switch_tc" : "skep_switch";
  return bpf_program__fd(bpf_object__find_program_by_name(object_.get(), name));
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
