#include "tools/netindex/switch_command.h"

#include <string>

#include "tools/netindex/service.h"

namespace skep {

int RunSwitch(const netindex::SwitchOptions& options) {
  const FileDescriptor end = TakeEndSignals();
  netindex::SwitchHost host(options);
  std::string problem;
  if (const Status s = host.Start(&problem); !s.ok()) return FailWith(problem);
  SayLine("ready: " + options.socket);
  host.Run(end.get());
  return 0;
}

}  // namespace skep
