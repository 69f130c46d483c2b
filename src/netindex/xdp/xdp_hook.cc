#include "netindex/xdp/xdp_hook.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include <cerrno>
#include <span>
#include <utility>

SKEP_EMBED(skep_xdp_program, SKEP_XDP_PROGRAM);

namespace skep::xdp {
namespace {

Status LastError(const char* what) { return {Code::kIo, what, static_cast<uint64_t>(errno)}; }

}  // namespace

Result<XdpHook> XdpHook::Load(const XdpConfig& config, std::string* problem) {
  auto program = netindex::BpfProgram::Load({skep_xdp_program, skep_xdp_program_end},
                                            std::as_bytes(std::span(&config, 1)), problem);
  if (!program) return Fail(program.error());
  return XdpHook(std::move(*program));
}

int XdpHook::map_fd() const { return program_.MapNamed("xdp_map"); }
int XdpHook::program_fd() const { return program_.ProgramNamed("skep_hook"); }

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
