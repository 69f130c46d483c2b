// Two segments of any bytes, as they are and with all CRCs and positions made right.
//
//   bytes 0..1   where the second one begins, little-endian; 0: there is none
//   bytes 2..3   how long the first one is
//   then         the first one, and the second one
//
// Properties: the reader moves forward, errs within the file it names, and skips damage until there
// is nothing left; what is replayed leaves a sound engine; a change that is decoded is encoded and
// decoded to the same one.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/memory_budget.h"
#include "durable/log_change.h"
#include "durable/log_reader.h"
#include "durable/log_test.h"
#include "durable/replay.h"
#include "model/model_engine.h"

namespace skep::durable {
namespace {

constexpr uint64_t kEngineBytesMax = 8 << 20;
constexpr uint32_t kEngines = 2;

Image SegmentsOf(std::string_view input) {
  if (input.size() < 4) return {};
  const auto number = [&](size_t at) {
    return static_cast<uint64_t>(static_cast<uint8_t>(input[at])) |
           static_cast<uint64_t>(static_cast<uint8_t>(input[at + 1])) << 8;
  };
  const uint64_t second = number(0);
  const uint64_t length = second == 0 ? input.size() : number(2);
  input.remove_prefix(4);
  Image image = {{SegmentName(0), std::string(input.substr(0, length))}};
  if (second != 0) image[SegmentName(second)] = input.substr(std::min(length, input.size()));
  return image;
}

// Makes of bytes that are to be records what they are to be.
void ResealLog(uint64_t begin, std::string& bytes) {
  for (size_t at = 0; at + kRecordHeaderBytes < bytes.size();) {
    const size_t left = bytes.size() - at - kRecordHeaderBytes;
    RecordHeader header{.position = begin + at};
    memcpy(&header.payload_bytes, &bytes[at + 8], 8);
    header.payload_bytes = std::clamp<uint64_t>(header.payload_bytes, 1, left);
    header.payload_crc =
        Crc32c(std::string_view(bytes).substr(at + kRecordHeaderBytes, header.payload_bytes));
    WriteHeader(header, &bytes[at]);
    at += kRecordHeaderBytes + header.payload_bytes;
  }
}

bool AreEqual(const LogChange& a, const LogChange& b) {
  return a.kind == b.kind && a.version == b.version && a.key == b.key && a.value == b.value &&
         a.deadline_ms == b.deadline_ms && a.function == b.function;
}

void CheckChanges(std::string_view payload) {
  auto decoder = ChangeDecoder::Open(payload);
  if (!decoder) {
    SKEP_CHECK(decoder.error().detail() <= payload.size());
    return;
  }
  while (true) {
    const auto change = decoder->Next();
    if (!change) SKEP_CHECK(change.error().detail() <= payload.size());
    if (!change || !*change) return;
    SKEP_CHECK((*change)->key.size() + (*change)->value.size() <= payload.size());
    std::string again;
    ChangeEncoder(again, decoder->keyspace(), decoder->now_ms(), 0).Add(**change);
    auto second = ChangeDecoder::Open(again);
    const auto same = second->Next();
    SKEP_CHECK(same && *same && AreEqual(**change, **same));
    SKEP_CHECK(!*second->Next());
  }
}

class Check {
 public:
  explicit Check(const Image& image) : disk_(1, trace_, {.short_reads_ppm = 0}) {
    StoreImage(disk_, image);
    for (auto& engine : engines_) {
      engine = std::make_unique<ModelEngine>(EngineOptions{.budget = &budget_});
    }
  }

  void Run(const Image& image) {
    const auto find = [&](uint32_t keyspace) -> Replay::Target {
      if (keyspace >= kEngines) return {};
      return {.engine = engines_[keyspace].get(), .has = keyspace};
    };
    Replay replay(find, 1);
    const auto reader = LogReader::Open(disk_, kTestDirectory, 0);
    SKEP_CHECK(reader.has_value());
    bool replays = true;
    uint64_t position = 0;
    while (true) {
      const auto record = (*reader)->Next();
      SKEP_CHECK((*reader)->position() >= position);
      position = (*reader)->position();
      if (!record) {
        CheckDamage(record.error(), image, **reader);
        const auto skipped = (*reader)->Skip();
        SKEP_CHECK(skipped && (!*skipped || **skipped > 0));
        if (!*skipped) break;
        continue;
      }
      if (!*record) break;
      CheckChanges((*record)->payload);
      replays = replays && IsReplayed(replay, **record);
    }
    SKEP_CHECK(IsExpected(replay.Finish()));
    for (const auto& engine : engines_) SKEP_CHECK(engine->Verify() == nullptr);
  }

 private:
  static void CheckDamage(const Status& status, const Image& image, const LogReader& reader) {
    SKEP_CHECK(status.code() == Code::kCorrupt);
    const std::string name = reader.file().substr(reader.file().rfind('/') + 1);
    SKEP_CHECK(image.contains(name) && status.detail() <= image.at(name).size());
  }

  // Whether an engine may refuse changes that no store has made with this status.
  static bool IsExpected(const Status& s) {
    return s.ok() || s.code() == Code::kInvalidArgument || s.code() == Code::kTooLarge ||
           s.code() == Code::kOutOfMemory;
  }

  static bool IsReplayed(Replay& replay, const LogRecord& record) {
    const Status s = replay.Add(record);
    SKEP_CHECK(s.code() == Code::kCorrupt || IsExpected(s));
    if (s.code() == Code::kCorrupt) SKEP_CHECK(s.detail() <= record.payload.size());
    return s.ok();
  }

  Trace trace_;
  SimFileSystem disk_;
  MemoryBudget budget_{kEngineBytesMax};
  std::unique_ptr<ModelEngine> engines_[kEngines];
};

}  // namespace
}  // namespace skep::durable

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skep::durable;
  CheckChanges({reinterpret_cast<const char*>(data), size});
  Image image = SegmentsOf({reinterpret_cast<const char*>(data), size});
  if (image.empty()) return 0;
  Check(image).Run(image);
  for (auto& [name, bytes] : image) ResealLog(*PositionOfSegment(name), bytes);
  Check(image).Run(image);
  return 0;
}
