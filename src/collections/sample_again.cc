#include "collections/sample_again.h"

#include "collections/layout.h"
#include "engine/batch_writer.h"

namespace skep::collections {

void SampleAgain(Engine& inner, Batch& batch) {
  constexpr int kDrawsMax = 32;
  BatchWriter out(batch, BatchWriter::KeepOutcomes());
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Request& r = batch.requests()[slot];
    if (r.op != Op::kSample) continue;
    uint64_t random = r.random;
    const auto is_hidden = [&] {
      return !batch.items(slot).empty() && IsHidden(batch.items(slot).front().key);
    };
    Batch one;
    for (int draws = 0; draws < kDrawsMax && is_hidden(); ++draws) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      one.Clear();
      one.set_now_ms(batch.now_ms());
      one.Sample(random);
      inner.Execute(one);
      CopyOutcome(one, 0, out, slot);
    }
    if (!is_hidden()) continue;
    Batch count;
    count.set_now_ms(batch.now_ms());
    count.Count(Range::Between({}, kHiddenFrom));
    inner.Execute(count);
    const auto keys = static_cast<uint64_t>(count.outcome(0).integer);
    one.Clear();
    one.set_now_ms(batch.now_ms());
    const auto index =
        static_cast<uint32_t>(keys == 0 ? 0 : static_cast<unsigned __int128>(random) * keys >> 64);
    one.Scan(Range::Between({}, kHiddenFrom), {.limit = index + 1, .keys_only = true});
    inner.Execute(one);
    out.outcome(slot) = one.outcome(0);
    out.BeginItems(slot);
    out.outcome(slot).value = {};
    out.outcome(slot).more = false;
    out.outcome(slot).verdict = one.items(0).empty() ? Verdict::kAbsent : Verdict::kDone;
    Item last;
    for (const Item& item : one.items(0)) last = item;
    if (!one.items(0).empty()) out.AddItem(slot, last);
  }
}

}  // namespace skep::collections
