// xdp_hook.h: loads the program of hook.bpf.c and attaches it to an interface. Needs the privilege
// to do so (CAP_BPF, CAP_NET_ADMIN).
#pragma once

#include <string>
#include <utility>

#include "base/file_descriptor.h"
#include "netindex/bpf/bpf_program.h"
#include "netindex/xdp/xdp_config.h"
#include "skep/status.h"

namespace skep::xdp {

enum class Mode { kAuto, kNative, kGeneric };

// A loaded program, and its map of zeros.
class XdpHook {
 public:
  // On an error *problem is a line for a person.
  //   kIo  the errno of the system, which refuses it
  static Result<XdpHook> Load(const XdpConfig& config, std::string* problem);

  int map_fd() const;
  int program_fd() const;

  struct Link {
    FileDescriptor file;  // the program is attached for as long as somebody has this open
    bool is_native;
  };
  // kAuto takes the driver's hook, else that of the system's receive path.
  //   kIo  the errno; EBUSY: another program is attached
  Result<Link> Attach(unsigned interface, Mode mode) const;

 private:
  explicit XdpHook(netindex::BpfProgram program) : program_(std::move(program)) {}

  netindex::BpfProgram program_;
};

}  // namespace skep::xdp
