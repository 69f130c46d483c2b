// switch_host.h: the process with the privilege: has the program of a switch at some interfaces,
// and installs the tables that a controller sends (switch_request.h).
//
// Progress: packets are handled by the kernel, whatever this process does. Connections are served
// one after the other; one that sends nothing is given up after kPatienceMs. When the process ends
// the kernel detaches the program, and packets pass as they are.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "netindex/switch/switch_program.h"
#include "netindex/switch/switch_request.h"
#include "skep/status.h"

namespace skep::netindex {

struct SwitchOptions {
  std::vector<std::string> interfaces;
  std::string socket;   // a path
  std::string service;  // an IPv4 address; empty: none
  uint16_t port = 6379;
  uint16_t duties = 0;
  SwitchMode mode = SwitchMode::kGeneric;
};

class SwitchHost {
 public:
  static constexpr int kPatienceMs = 1000;

  explicit SwitchHost(SwitchOptions options) : options_(std::move(options)) {}

  // Loads, attaches and listens. On an error *problem is a line for a person.
  //   kInvalidArgument  no such interface, no address
  //   kIo               the errno
  Status Start(std::string* problem);
  // Serves until `end`, a descriptor, can be read.
  void Run(int end);

 private:
  Status AttachTo(const std::string& interface, std::string* problem);
  void Serve();
  uint32_t Install(int file, uint32_t version);

  const SwitchOptions options_;
  std::optional<SwitchProgram> program_;
  std::vector<FileDescriptor> links_;
  FileDescriptor listener_;
  uint32_t version_ = 0;
};

}  // namespace skep::netindex
