#include "server/hot_filler.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "netindex/xdp/xdp_answer.h"

namespace skep {
namespace {

std::string_view BytesOf(const XdpKey& key) {
  return {reinterpret_cast<const char*>(key.words), key.bytes};
}

bool IsSame(const XdpKey& a, const XdpKey& b) {
  return a.keyspace == b.keyspace && BytesOf(a) == BytesOf(b);
}

// The gate of replies: ReplyGates.
bool IsReleased(Engine& engine, Version ticket) {
  ReleaseGate& gate = engine.syncs_to_release() ? engine.synced_gate() : engine.gate();
  return gate.IsReleased(ticket);
}

}  // namespace

void HotFiller::Missed(std::string_view datagram) {
  HotGets* const hot = host_.state().hot_gets();
  if (hot == nullptr || wanted_.size() == kFillsMax || datagram.size() < XDP_FIXED_BYTES) return;
  XdpFixed fixed{};
  std::memcpy(&fixed, datagram.data(), XDP_FIXED_BYTES);
  if (!XdpUnderstands(&fixed, static_cast<uint32_t>(datagram.size()), hot->instance())) return;
  const auto key = xdp::KeyOf(fixed.keyspace, datagram.substr(XDP_FIXED_BYTES));
  if (!key || !hot->map().CountMiss(*key)) return;
  const auto is_same = [&](const XdpKey& other) { return IsSame(*key, other); };
  if (std::ranges::none_of(wanted_, is_same)) wanted_.push_back(*key);
}

void HotFiller::Step() {
  HotGets* const hot = host_.state().hot_gets();
  if (hot == nullptr) return;
  FinishReleased(*hot);
  for (const XdpKey& key : wanted_) {
    if (waiting_.size() < kFillsMax) Begin(*hot, key);
  }
  if (!wanted_.empty()) FinishReleased(*hot);
  wanted_.clear();
}

// The order is that of the argument of xdp_map.h: observe, claim, watch, read.
void HotFiller::Begin(HotGets& hot, const XdpKey& key) {
  Keyspaces& keyspaces = host_.state().keyspaces();
  if (key.keyspace >= keyspaces.count()) return;
  Engine& engine = keyspaces.at(key.keyspace);
  if (!hot.Observe(engine, key.keyspace)) return;
  const std::optional<xdp::HotMap::Claim> claim = hot.map().BeginFill(key);
  if (!claim) return;
  const auto watch = engine.Watch(BytesOf(key), host_.turn().now().ms);
  if (!watch) return;
  batch_.Clear();
  batch_.Get(BytesOf(key));
  const Version ticket = host_.turn().Execute(engine, batch_);
  engine.Unwatch(*watch);
  const Outcome& out = batch_.outcome(0);
  const bool is_answerable = out.verdict == Verdict::kDone && out.deadline_ms == 0 &&
                             out.value.size() <= XDP_VALUE_BYTES_MAX;
  waiting_.push_back({.claim = *claim,
                      .value = std::string(is_answerable ? out.value : ""),
                      .is_answerable = is_answerable,
                      .engine = &engine,
                      .ticket = ticket,
                      .begun_ms = host_.turn().monotonic_ms()});
}

void HotFiller::FinishReleased(HotGets& hot) {
  std::erase_if(waiting_, [&](const Fill& fill) {
    fill.engine->Release();
    if (!IsReleased(*fill.engine, fill.ticket)) {
      return host_.turn().monotonic_ms() > fill.begun_ms + kWaitMsMax;
    }
    if (fill.is_answerable) {
      hot.map().FinishFill(fill.claim, fill.value);
    } else {
      hot.map().FinishWithoutValue(fill.claim);
    }
    return true;
  });
}

}  // namespace skep
