#include "wire/packed_reply.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "base/varint.h"
#include "engine/batch_writer.h"
#include "wire/byte_writer.h"

namespace skep::packed {
namespace {

constexpr Status kMalformedReply(Code::kCorrupt, "the reply is malformed");
// Limits of an outcome, without value, items and text, and of a run without its items.
constexpr size_t kOutcomeBytesMax = 80;
constexpr size_t kRunBytesMax = 15;
constexpr size_t kTextsMax = 4096;
constexpr size_t kTextBytesMax = 256;

constexpr uint64_t ToZigzag(int64_t n) {
  return (static_cast<uint64_t>(n) << 1) ^ static_cast<uint64_t>(n >> 63);
}
constexpr int64_t FromZigzag(uint64_t n) {
  return static_cast<int64_t>((n >> 1) ^ (uint64_t{0} - (n & 1)));
}

// Returns a literal with this text.
const char* Intern(std::string_view text) {
  static Mutex mutex;
  static std::set<std::string, std::less<>>& texts = *new std::set<std::string, std::less<>>;
  const MutexLock lock(mutex);
  const auto found = texts.find(text);
  if (found != texts.end()) return found->c_str();
  if (texts.size() >= kTextsMax || text.size() > kTextBytesMax) return "the server refused it";
  return texts.emplace(text).first->c_str();
}

void AddStatus(ByteWriter& writer, const Status& status) {
  const std::string_view text = status.what();
  writer.Byte(static_cast<uint8_t>(status.code()));
  writer.Varint(status.detail());
  writer.Varint(text.size());
  writer.Bytes(text);
}

// Writes outcomes one after the other.
class OutcomeWriter {
 public:
  // `begin` is the string in which it writes from `at` on. `pins` is as in AppendReply.
  OutcomeWriter(const char* begin, char* at, uint8_t request_flags, const StoreNow& now,
                std::vector<PinnedPart>* pins)
      : begin_(begin), writer_(at), request_flags_(request_flags), now_(now), pins_(pins) {}

  // `pin` is null unless the value is pinned.
  void Add(Op op, const Outcome& outcome, const ItemRange& items,
           const std::shared_ptr<const PinnedValue>* pin) {
    const size_t value_bytes = pin == nullptr ? outcome.value.size() : (*pin)->size();
    const bool has_value = value_bytes > 0 || (op == Op::kGet && outcome.verdict == Verdict::kDone);
    const bool same_size = has_value && has_size_ && value_bytes == value_bytes_;
    const uint8_t extras = ExtrasOf(outcome);
    writer_.Byte(static_cast<uint8_t>(
        static_cast<uint8_t>(outcome.verdict) | (has_value ? kHasOutcomeValue : 0) |
        (same_size ? kSameValueSize : 0) | (outcome.present ? kPresent : 0) |
        (outcome.more ? kMore : 0) | (extras != 0 ? kHasExtras : 0)));
    if (extras != 0) writer_.Byte(extras);
    if (has_value) {
      if (!same_size) writer_.Varint(value_bytes);
      pin == nullptr ? writer_.Bytes(outcome.value) : AddPinned(*pin);
      value_bytes_ = value_bytes;
      has_size_ = true;
    }
    if (extras != 0) AddExtras(outcome, extras, items);
  }
  char* end() const { return writer_.at(); }

 private:
  void AddPinned(const std::shared_ptr<const PinnedValue>& pin) {
    if (pins_ != nullptr) {
      pins_->push_back({.at = static_cast<size_t>(writer_.at() - begin_), .value = pin});
      return;
    }
    for (size_t at = 0; at < pin->size();) {
      const std::string_view bytes = pin->From(at);
      writer_.Bytes(bytes);
      at += bytes.size();
    }
  }

  uint8_t ExtrasOf(const Outcome& outcome) const {
    const auto wants = [&](Flag flag) { return (request_flags_ & flag) != 0; };
    return static_cast<uint8_t>(
        (outcome.integer != 0 ? kInteger : 0) | (outcome.item_count != 0 ? kItems : 0) |
        (outcome.status.ok() ? 0 : kStatus) |
        (outcome.deadline_ms != 0 && wants(kWantDeadlines) ? kDeadlineOf : 0) |
        (outcome.version != 0 && wants(kWantVersions) ? kVersionOf : 0) |
        (outcome.hint.bits != 0 ? kHintOf : 0));
  }

  void AddExtras(const Outcome& outcome, uint8_t extras, const ItemRange& items) {
    if ((extras & kInteger) != 0) writer_.Varint(ToZigzag(outcome.integer));
    if ((extras & kItems) != 0) AddItems(items);
    if ((extras & kStatus) != 0) AddStatus(writer_, outcome.status);
    if ((extras & kDeadlineOf) != 0) writer_.Varint(now_.ToWall(outcome.deadline_ms));
    if ((extras & kVersionOf) != 0) writer_.Varint(outcome.version);
    if ((extras & kHintOf) != 0) writer_.Fixed(outcome.hint.bits);
  }

  void AddItems(const ItemRange& items) {
    size_t runs = 0;
    items.ForEachSpan([&](const ItemSpan&) { ++runs; });
    writer_.Varint(runs);
    items.ForEachSpan([&](const ItemSpan& run) {
      writer_.Varint(run.count);
      writer_.Varint(run.key_bytes);
      writer_.Varint(run.value_bytes);
    });
    items.ForEachSpan(
        [&](const ItemSpan& run) { writer_.Bytes({run.at, run.count * run.stride()}); });
  }

  const char* const begin_;
  ByteWriter writer_;
  const uint8_t request_flags_;
  const StoreNow now_;
  std::vector<PinnedPart>* const pins_;
  bool has_size_ = false;
  size_t value_bytes_ = 0;
};

// The size of an outcome without its items.
size_t BytesMax(const Outcome& outcome) {
  const size_t text_bytes = outcome.status.ok() ? 0 : std::strlen(outcome.status.what());
  return kOutcomeBytesMax + outcome.value.size() + text_bytes;
}

size_t BytesMax(const ItemRange& items) {
  size_t bytes = 0;
  items.ForEachSpan([&](const ItemSpan& run) { bytes += kRunBytesMax + run.count * run.stride(); });
  return bytes;
}

constexpr Outcome kTooManyItems = {
    .verdict = Verdict::kRefused,
    .status = {Code::kTooLarge, "the items of a batch exceed the maximum size",
               kReplyBytesMax / 2}};
static_assert(kReplyBytesMax / 2 > kAnswerBytesMax + (kAnswerBytesMax >> 2));

// Decides which outcomes with items are sent as they are: those for which there is room.
class ItemsRoom {
 public:
  explicit ItemsRoom(size_t bytes) : left_(bytes) {}

  // Returns false for every outcome after the first one that did not fit.
  bool Takes(const ItemRange& items) {
    const size_t bytes = BytesMax(items);
    if (bytes == 0) return true;
    const bool takes = bytes <= left_;
    left_ = takes ? left_ - bytes : 0;
    return takes;
  }

 private:
  size_t left_;
};

}  // namespace

void AppendReply(std::string& to, const Header& request, const Batch& batch, uint32_t slot,
                 uint32_t count, const StoreNow& now, size_t items_bytes_max,
                 std::vector<PinnedPart>* pins) {
  const uint8_t flags = request.kind == Kind::kAtomic && !batch.applied() ? +kNotApplied : 0;
  const size_t begin = BeginMessage(to, {.id = request.id,
                                         .kind = request.kind,
                                         .flags = flags,
                                         .keyspace = request.keyspace,
                                         .count = count});
  const auto pin_of = [&](uint32_t i) {
    return batch.outcome(i).pinned == 0 ? nullptr : &batch.pinned(i);
  };
  const size_t used = to.size();
  size_t bytes_max = used;
  size_t pinned_bytes = 0;
  ItemsRoom counted(items_bytes_max);
  for (uint32_t i = slot; i < slot + count; ++i) {
    const bool takes = counted.Takes(batch.items(i));
    bytes_max +=
        takes ? BytesMax(batch.outcome(i)) + BytesMax(batch.items(i)) : BytesMax(kTooManyItems);
    if (const auto* const pin = pin_of(i); pin != nullptr) pinned_bytes += (*pin)->size();
  }
  if (pins == nullptr) bytes_max += std::exchange(pinned_bytes, 0);
  to.resize_and_overwrite(bytes_max, [&](char* bytes, size_t) {
    OutcomeWriter writer(bytes, bytes + used, request.flags, now, pins);
    ItemsRoom room(items_bytes_max);
    for (uint32_t i = slot; i < slot + count; ++i) {
      const bool takes = room.Takes(batch.items(i));
      writer.Add(batch.requests()[i].op, takes ? batch.outcome(i) : kTooManyItems,
                 takes ? batch.items(i) : ItemRange(), pin_of(i));
    }
    return static_cast<size_t>(writer.end() - bytes);
  });
  EndMessage(to, begin, pinned_bytes);
}

void AppendGetReply(std::string& to, const Header& request, std::span<const GetAnswer> answers) {
  const size_t begin = BeginMessage(to, {.id = request.id,
                                         .kind = request.kind,
                                         .keyspace = request.keyspace,
                                         .count = static_cast<uint32_t>(answers.size())});
  const size_t used = to.size();
  size_t bytes_max = used + answers.size() * (1 + kVarintBytesMax);
  for (const GetAnswer& answer : answers) bytes_max += answer.bytes;
  to.resize_and_overwrite(bytes_max, [&](char* bytes, size_t) {
    ByteWriter writer(bytes + used);
    bool has_size = false;
    uint32_t value_bytes = 0;
    for (const GetAnswer& answer : answers) {
      const auto verdict = static_cast<uint8_t>(answer.verdict);
      if (answer.verdict != Verdict::kDone) {
        writer.Byte(verdict);
        continue;
      }
      const bool same_size = has_size && answer.bytes == value_bytes;
      writer.Byte(static_cast<uint8_t>(verdict | kHasOutcomeValue | kPresent |
                                       (same_size ? kSameValueSize : 0)));
      if (!same_size) writer.Varint(answer.bytes);
      writer.Bytes(answer.value());
      has_size = true;
      value_bytes = answer.bytes;
    }
    return static_cast<size_t>(writer.at() - bytes);
  });
  EndMessage(to, begin);
}

void AppendFailure(std::string& to, const Header& request, const Status& status) {
  const size_t begin = BeginMessage(
      to, {.id = request.id, .kind = request.kind, .flags = kFailed, .keyspace = request.keyspace});
  const size_t used = to.size();
  const size_t bytes_max = used + kOutcomeBytesMax + std::strlen(status.what());
  to.resize_and_overwrite(bytes_max, [&](char* bytes, size_t) {
    ByteWriter writer(bytes + used);
    AddStatus(writer, status);
    return static_cast<size_t>(writer.at() - bytes);
  });
  EndMessage(to, begin);
}

bool TakeStatus(std::string_view& from, Status* status) {
  uint8_t code = 0;
  uint64_t detail = 0;
  std::string_view text;
  if (!TakeByte(from, &code) || code == 0 || code > static_cast<uint8_t>(Code::kWrongType)) {
    return false;
  }
  if (!TakeVarint(from, &detail) || !TakeBytes(from, &text)) return false;
  *status = Status(static_cast<Code>(code), Intern(text), detail);
  return true;
}

namespace {

// Reads outcomes one after the other.
class OutcomeReader {
 public:
  OutcomeReader(std::string_view payload, BatchWriter& writer) : left_(payload), writer_(writer) {}

  // False: the next bytes are no outcome.
  bool Take(uint32_t slot) {
    uint8_t first = 0;
    if (!TakeByte(left_, &first)) return false;
    const uint8_t verdict = first & kVerdictMask;
    if (verdict > static_cast<uint8_t>(Verdict::kRefused)) return false;
    Outcome& outcome = writer_.outcome(slot);
    outcome.verdict = static_cast<Verdict>(verdict);
    outcome.present = (first & kPresent) != 0;
    outcome.more = (first & kMore) != 0;
    uint8_t extras = 0;
    if ((first & kHasExtras) != 0 && (!TakeByte(left_, &extras) || (extras & ~kExtras) != 0)) {
      return false;
    }
    if ((first & kHasOutcomeValue) != 0 && !TakeValue((first & kSameValueSize) != 0, outcome)) {
      return false;
    }
    return TakeExtras(slot, extras, outcome);
  }
  bool done() const { return left_.empty(); }

 private:
  bool TakeValue(bool same_size, Outcome& outcome) {
    if (same_size) return has_size_ && TakeFront(left_, value_bytes_, &outcome.value);
    uint64_t bytes = 0;
    if (!TakeVarint(left_, &bytes)) return false;
    value_bytes_ = bytes;
    has_size_ = true;
    return TakeFront(left_, value_bytes_, &outcome.value);
  }

  bool TakeExtras(uint32_t slot, uint8_t extras, Outcome& outcome) {
    if ((extras & kInteger) != 0) {
      uint64_t integer = 0;
      if (!TakeVarint(left_, &integer)) return false;
      outcome.integer = FromZigzag(integer);
    }
    if ((extras & kItems) != 0 && !TakeItems(slot)) return false;
    if ((extras & kStatus) != 0 && !TakeStatus(left_, &outcome.status)) return false;
    if (outcome.verdict == Verdict::kRefused && outcome.status.ok()) return false;
    if ((extras & kDeadlineOf) != 0 && !TakeVarint(left_, &outcome.deadline_ms)) return false;
    if ((extras & kVersionOf) != 0 && !TakeVarint(left_, &outcome.version)) return false;
    return (extras & kHintOf) == 0 || TakeFixed(left_, &outcome.hint.bits);
  }

  bool TakeItems(uint32_t slot) {
    uint64_t runs = 0;
    if (!TakeVarint(left_, &runs)) return false;
    // First finds where the heads end, then reads the runs with their bytes.
    std::string_view heads = left_;
    for (uint64_t i = 0; i < runs; ++i) {
      ItemSpan unused;
      if (!TakeRunHead(left_, &unused)) return false;
    }
    writer_.BeginItems(slot);
    for (uint64_t i = 0; i < runs; ++i) {
      ItemSpan run;
      TakeRunHead(heads, &run);
      std::string_view bytes;
      if (run.count > left_.size() / std::max<size_t>(run.stride(), 1) + 1) return false;
      if (!TakeFront(left_, run.count * run.stride(), &bytes)) return false;
      run.at = bytes.data();
      writer_.AddKeptItems(slot, run);
    }
    return true;
  }

  // A run has at least one item, and not two without a byte.
  static bool TakeRunHead(std::string_view& from, ItemSpan* run) {
    uint64_t count = 0;
    uint64_t key_bytes = 0;
    uint64_t value_bytes = 0;
    if (!TakeVarint(from, &count) || !TakeVarint(from, &key_bytes) ||
        !TakeVarint(from, &value_bytes)) {
      return false;
    }
    if (count == 0 || count > kNoLimit || key_bytes > kNoLimit || value_bytes > kNoLimit) {
      return false;
    }
    if (key_bytes == 0 && value_bytes == 0 && count != 1) return false;
    *run = {.at = nullptr,
            .count = static_cast<uint32_t>(count),
            .key_bytes = static_cast<uint32_t>(key_bytes),
            .value_bytes = static_cast<uint32_t>(value_bytes)};
    return true;
  }

  std::string_view left_;
  BatchWriter& writer_;
  bool has_size_ = false;
  size_t value_bytes_ = 0;
};

}  // namespace

Status ReadReply(const Header& reply, std::string_view payload, Batch& batch) {
  BatchWriter writer(batch);
  OutcomeReader reader(payload, writer);
  bool fits = reply.count == batch.size();
  for (uint32_t slot = 0; fits && slot < reply.count; ++slot) fits = reader.Take(slot);
  if (!fits || !reader.done()) {
    writer.RefuseAll(kMalformedReply);
    return kMalformedReply;
  }
  writer.set_applied(!reply.has(kNotApplied));
  return {};
}

}  // namespace skep::packed
