#include "netindex/switch/switch_frame.h"

namespace skep::netindex {

SwitchKind SwitchFrame(const SwitchConfig& config, const SwitchBank& bank, SwitchCounters* counters,
                       std::string* frame) {
  const auto begin = [&] { return reinterpret_cast<uint8_t*>(frame->data()); };
  SwitchPlan plan{};
  SwitchLook(begin(), begin() + frame->size(), &config, &bank, counters, &plan);
  frame->resize(frame->size() + plan.grow);
  SwitchApply(begin(), begin() + frame->size(), &config, &bank, &plan);
  frame->resize(frame->size() - plan.shrink);
  return static_cast<SwitchKind>(plan.kind);
}

}  // namespace skep::netindex
