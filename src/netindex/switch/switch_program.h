// switch_program.h: loads the program of switch.bpf.c, gives it tables, attaches it to interfaces.
// Needs the privilege to do so (CAP_BPF, CAP_NET_ADMIN).
//
// Tables. There are two banks; the program uses one of them. Install() writes the other one, makes
// it the one in use, and returns when no packet is handled by the old one any more: the kernel
// waits for that when an entry of a map of maps is replaced from outside. So a packet sees one
// bank, and nothing that it sees is being written.
//
// Progress: packets never wait. Install() waits for the packets that are being handled when it
// flips, each of which has a bounded number of steps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "netindex/bpf/bpf_program.h"
#include "netindex/switch/switch_packet.h"
#include "skep/status.h"

namespace skep::netindex {

enum class SwitchMode : uint8_t {
  kNative,   // in the driver's hook
  kGeneric,  // behind the driver
  kTc        // in the system's receive path
};

// Thread safety: one owner.
class SwitchProgram {
 public:
  // Loads the program, whose banks are empty. On an error *problem is a line for a person.
  //   kIo  the errno of the system, which refuses it
  static Result<SwitchProgram> Load(const SwitchConfig& config, std::string* problem);

  // Uses this bank for the packets that come from now on.
  //   kIo  the errno
  Status Install(const SwitchBank& bank);

  // Of all processors together.
  SwitchCounters Counters() const;

  // Returns a link; the program is attached for as long as it is open. Of one SwitchProgram several
  // interfaces may have a link.
  //   kIo  the errno; EBUSY: another program is attached
  Result<FileDescriptor> Attach(unsigned interface, SwitchMode mode) const;

  int program_fd(SwitchMode mode) const;

 private:
  struct Unmapper {
    void operator()(SwitchBank* bank) const;
  };
  explicit SwitchProgram(BpfProgram program) : program_(std::move(program)) {}

  bool MapBanks();

  BpfProgram program_;
  std::vector<std::unique_ptr<SwitchBank, Unmapper>> banks_;
  uint32_t used_ = 0;
};

}  // namespace skep::netindex
