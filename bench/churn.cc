#include "bench/churn.h"

#include <algorithm>

namespace skep::bench {

Churn::Churn(const Workload& workload, uint64_t items, uint32_t thread, uint32_t threads,
             uint64_t seed)
    : workload_(workload),
      order_(items, seed),
      items_(items),
      thread_(thread),
      threads_(threads),
      loaded_(items / threads + (thread < items % threads ? 1 : 0)),
      random_(seed * 0x9e3779b97f4a7c15 + thread) {}

void Churn::Fill(OpStream& stream, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const OpKind kind = DrawKind();
    uint64_t place = 0;
    if (kind == OpKind::kInsert) {
      place = end();
      ++inserted_;
    } else if (kind == OpKind::kDelete) {
      place = deleted_++;
    } else {
      place = deleted_ + random_.Below(end() - deleted_);
    }
    stream.Add(kind, NumberAt(place));
  }
}

// The last key is not deleted: updates need one.
OpKind Churn::DrawKind() {
  auto ticket = static_cast<int>(
      random_.Below(static_cast<uint64_t>(workload_.update + workload_.insert + workload_.remove)));
  if ((ticket -= workload_.update) < 0) return OpKind::kUpdate;
  if ((ticket -= workload_.insert) < 0 || end() - deleted_ == 1) return OpKind::kInsert;
  return OpKind::kDelete;
}

uint64_t Churn::NumberAt(uint64_t place) const {
  if (place < loaded_) return order_.at(place * threads_ + thread_);
  return items_ + (place - loaded_) * threads_ + thread_;
}

Churn::Undo::Undo(const Churn& churn)
    : churn_(churn),
      next_delete_(std::max(churn.deleted_, churn.loaded_)),
      deletes_end_(churn.end()),
      inserts_end_(std::min(churn.deleted_, churn.loaded_)) {}

void Churn::Undo::Fill(OpStream& stream, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const bool deletes = next_delete_ < deletes_end_;
    const uint64_t place = deletes ? next_delete_++ : next_insert_++;
    stream.Add(deletes ? OpKind::kDelete : OpKind::kInsert, churn_.NumberAt(place));
  }
}

}  // namespace skep::bench
