#include "bench/hstore/no_order.h"

#include "engine/batch_writer.h"

namespace skep::bench {
namespace {

constexpr Status kKeepsNothing(Code::kNotSupported, "there is no order");

class NoOrder final : public Engine {
 public:
  const EngineTraits& traits() const override {
    static constexpr EngineTraits kTraits = {.name = "none", .snapshots = false};
    return kTraits;
  }
  Version Execute(Batch& batch) override {
    BatchWriter out(batch);
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      if (IsWrite(batch.requests()[slot].op)) {
        out.outcome(slot).verdict = Verdict::kDone;
      } else {
        out.Refuse(slot, kKeepsNothing);
      }
    }
    return 0;
  }
  Result<SnapshotRef> OpenSnapshot(uint64_t) override { return Fail(kKeepsNothing); }
  void CloseSnapshot(SnapshotRef) override {}
  Result<uint64_t> Watch(std::string_view, uint64_t) override { return Fail(kKeepsNothing); }
  bool Maintain(uint64_t) override { return false; }
  EngineStatistics Statistics() const override { return {}; }
  const char* Verify() const override { return nullptr; }
  void StartAfter(Version, uint64_t) override {}
  Result<std::unique_ptr<PairIterator>> OpenPairIterator(uint64_t) override {
    return Fail(kKeepsNothing);
  }
};

}  // namespace

std::unique_ptr<Engine> MakeNoOrder() { return std::make_unique<NoOrder>(); }

}  // namespace skep::bench
