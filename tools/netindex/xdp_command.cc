#include "tools/netindex/xdp_command.h"

#include <string>

#include "tools/netindex/service.h"

namespace skep {

int RunXdpHelper(const xdp::HelperOptions& options) {
  const FileDescriptor end = TakeEndSignals();
  xdp::XdpHelper helper(options, SayLine);
  std::string problem;
  if (const Status s = helper.Start(&problem); !s.ok()) return FailWith(problem);
  SayLine("ready: " + options.socket);
  helper.Run(end.get());
  return 0;
}

}  // namespace skep
