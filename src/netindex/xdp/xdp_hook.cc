#include "netindex/xdp/xdp_hook.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/if_link.h>

#include <cerrno>
#include <cstring>
#include <utility>

// The program, as clang has compiled it for BPF.
asm(R"(
  .section .rodata
  .balign 8
  .global skep_xdp_program
  .global skep_xdp_program_end
skep_xdp_program:
  .incbin ")" SKEP_XDP_PROGRAM R"("
skep_xdp_program_end:
  .previous
)");
extern "C" const char skep_xdp_program[];
extern "C" const char skep_xdp_program_end[];

namespace skep::xdp {
namespace {

Status LastError(const char* what) { return {Code::kIo, what, static_cast<uint64_t>(errno)}; }

// Sets what the program's `config` holds.
bool Configure(bpf_object* object, const XdpConfig& config) {
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) {
    if (std::strstr(bpf_map__name(map), ".rodata") == nullptr) continue;
    return bpf_map__set_initial_value(map, &config, sizeof(config)) == 0;
  }
  return false;
}

}  // namespace

void XdpHook::Closer::operator()(bpf_object* object) const { bpf_object__close(object); }

Result<XdpHook> XdpHook::Load(const XdpConfig& config, std::string* problem) {
  libbpf_set_print(nullptr);
  XdpHook hook(bpf_object__open_mem(
      skep_xdp_program, static_cast<size_t>(skep_xdp_program_end - skep_xdp_program), nullptr));
  bpf_object* const object = hook.object_.get();
  if (object == nullptr || !Configure(object, config) || bpf_object__load(object) != 0) {
    const int error = errno;
    *problem = fmt::format("the system does not load the program: {}", std::strerror(error));
    return Fail(Code::kIo, "the program cannot be loaded", static_cast<uint64_t>(error));
  }
  return hook;
}

int XdpHook::map_fd() const {
  return bpf_map__fd(bpf_object__find_map_by_name(object_.get(), "xdp_map"));
}

int XdpHook::program_fd() const {
  return bpf_program__fd(bpf_object__find_program_by_name(object_.get(), "skep_hook"));
}

Result<XdpHook::Link> XdpHook::Attach(unsigned interface, Mode mode) const {
  const auto attach = [&](uint32_t flags) {
    LIBBPF_OPTS(bpf_link_create_opts, options, .flags = flags);
    return FileDescriptor(
        bpf_link_create(program_fd(), static_cast<int>(interface), BPF_XDP, &options));
  };
  if (mode != Mode::kGeneric) {
    FileDescriptor link = attach(XDP_FLAGS_DRV_MODE);
    if (link.valid()) return Link{.file = std::move(link), .is_native = true};
    if (mode == Mode::kNative || errno == EBUSY) return std::unexpected(LastError("not attached"));
  }
  FileDescriptor link = attach(XDP_FLAGS_SKB_MODE);
  if (!link.valid()) return std::unexpected(LastError("not attached"));
  return Link{.file = std::move(link), .is_native = false};
}

}  // namespace skep::xdp
