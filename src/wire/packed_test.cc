// The packed protocol's payloads: encoded ones are decoded, malformed ones are refused.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/memory_budget.h"
#include "engine/batch_writer.h"
#include "engine/testing/random_batch.h"
#include "model/model_engine.h"
#include "wire/packed_reply.h"
#include "wire/packed_request.h"
#include "wire/packed_top.h"

namespace skep::packed {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

constexpr uint64_t kNow = 1'700'000'000'000;

unsigned PrintedSeed() {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  return seed;
}

std::string Encoded(const Batch& batch, uint8_t flags = 0) {
  std::string bytes;
  AppendBatch(bytes, {.id = 7, .flags = flags, .keyspace = 3}, batch, batch.snapshot().id);
  return bytes;
}

Header HeaderOf(const std::string& message) { return Read<Header>(message); }
std::string_view PayloadOf(const std::string& message) {
  return std::string_view(message).substr(sizeof(Header));
}

// Decodes a message as a server does. The requests view the message.
Status Decode(const std::string& message, Batch& batch) {
  const Header header = HeaderOf(message);
  std::string_view payload = PayloadOf(message);
  const auto settings = TakeSettings(header, payload);
  if (!settings) return settings.error();
  if (settings->snapshot != 0) batch.set_snapshot({.version = 0, .id = settings->snapshot});
  batch.set_scan_bytes_max(settings->scan_bytes_max);
  batch.set_scan_visits_max(static_cast<uint32_t>(settings->scan_visits_max));
  return TakeRequests(payload, header.count, kNoLimit, batch);
}

std::string Shown(const Request& r) {
  std::string operand;
  switch (OperandOf(r)) {
    case Operand::kNone:
      break;
    case Operand::kBytes:
      operand = r.other;
      break;
    case Operand::kDigest:
      operand = std::to_string(r.digest.low) + "/" + std::to_string(r.digest.high);
      break;
    case Operand::kByteRange:
      operand = std::to_string(r.bytes.first) + ".." + std::to_string(r.bytes.last);
      break;
    case Operand::kNumber:
      operand = r.op == Op::kApply ? std::string(r.function == nullptr ? "?" : r.function->name)
                                   : std::to_string(r.random);
      break;
  }
  return std::to_string(static_cast<int>(r.op)) + " flags " + std::to_string(r.flags) + " when " +
         std::to_string(r.when) + " limit " + std::to_string(r.limit) + " key " +
         std::string(r.key) + " value " + std::string(HasValue(r.op) ? r.value : "") +
         " deadline " + std::to_string(r.deadline_ms) + " hint " + std::to_string(r.hint.bits) +
         " operand " + operand;
}

void ExpectEqualBatches(const Batch& a, const Batch& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(Shown(a.requests()[i]), Shown(b.requests()[i])) << "request " << i;
  }
  EXPECT_EQ(std::vector(a.part_begins().begin(), a.part_begins().end()),
            std::vector(b.part_begins().begin(), b.part_begins().end()));
  EXPECT_EQ(a.snapshot().id, b.snapshot().id);
  EXPECT_EQ(a.scan_bytes_max(), b.scan_bytes_max());
  EXPECT_EQ(a.scan_visits_max(), b.scan_visits_max());
}

// Copies the batch without its empty parts: parts that begin behind the last request have no effect
// and are not sent; two at one place are one.
void DropEmptyParts(const Batch& from, Batch& to) {
  size_t next = 0;
  for (uint32_t i = 0; i < from.size(); ++i) {
    bool begins = false;
    for (; next < from.part_begins().size() && from.part_begins()[next] == i; ++next) begins = true;
    if (begins) to.BeginPart();
    to.Add(from.requests()[i]);
  }
  to.set_snapshot(from.snapshot());
}

// Goal: the server decodes what a client encodes; a message that is cut short is refused.
// Method: random batches of all operations, and each prefix of some of them.
TEST(PackedRequest, DecodesWhatWasEncoded) {
  RandomBatch random(PrintedSeed());
  for (int round = 0; round < 300; ++round) {
    Batch batch(round % 2 == 0 ? Batch::Kind::kUnordered : Batch::Kind::kAtomic);
    batch.set_now_ms(kNow);
    random.Fill(batch);
    if (round % 7 == 0) batch.set_snapshot({.version = 9, .id = 1 + random.Below(1 << 20)});
    if (round % 5 == 0) batch.set_scan_visits_max(static_cast<uint32_t>(random.Below(1000)));
    const std::string message = Encoded(batch);
    EXPECT_EQ(HeaderOf(message).payload_bytes, PayloadOf(message).size());
    Batch decoded(batch.kind());
    ASSERT_TRUE(Decode(message, decoded).ok());
    Batch expected(batch.kind());
    DropEmptyParts(batch, expected);
    expected.set_scan_bytes_max(batch.scan_bytes_max());
    expected.set_scan_visits_max(batch.scan_visits_max());
    ExpectEqualBatches(expected, decoded);
    if (round % 10 != 0) continue;
    for (size_t bytes = sizeof(Header); bytes < message.size(); ++bytes) {
      Batch cut(batch.kind());
      EXPECT_EQ(Decode(message.substr(0, bytes), cut).code(), Code::kCorrupt) << bytes;
    }
    Batch longer(batch.kind());
    EXPECT_EQ(Decode(message + "x", longer).code(), Code::kCorrupt);
  }
}

// Goal: sizes and values that repeat are not sent, also if a request without them is in between.
TEST(PackedRequest, LeavesOutWhatRepeats) {
  Batch batch;
  batch.Put("key1", "value");
  batch.Put("key2", "value");
  batch.Get("key3");
  batch.Put("key4", "value");
  batch.Put("key5", "other");
  batch.Insert("six", "");
  batch.Insert("7", "");
  const std::string message = Encoded(batch);
  EXPECT_EQ(PayloadOf(message),
            "\x01\x04\x05"
            "key1value"
            "\x61key2"
            "\x20key3"
            "\x61key4"
            "\x21key5other"
            "\x02\x03\x00six"
            "\x42\x01"
            "7"sv);
  Batch decoded;
  ASSERT_TRUE(Decode(message, decoded).ok());
  ExpectEqualBatches(batch, decoded);
}

// Goal: an empty value right behind a request without one is not taken for a repeated one.
TEST(PackedRequest, TellsAnEmptyValueFromNone) {
  Batch batch;
  batch.Get("a");
  batch.Put("b", "");
  const std::string message = Encoded(batch);
  Batch decoded;
  ASSERT_TRUE(Decode(message, decoded).ok());
  ExpectEqualBatches(batch, decoded);
}

struct Malformed {
  const char* what;
  std::string_view payload;
};

// Goal: each kind of malformed request is refused.
TEST(PackedRequest, RefusesWhatIsNone) {
  const Malformed cases[] = {
      {"an op that there is not", "\x1f\x01k"sv},
      {"same sizes first", "\x20k"sv},
      {"same value first", "\x41\x01k"sv},
      {"same value of an op without one", "\x40\x01k"sv},
      {"fields that there are not", "\x80\x40\x01k"sv},
      {"fields, but none", "\x80\x00\x01k"sv},
      {"a key longer than the rest", "\x00\x05k"sv},
      {"a key longer than anything", "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01k"sv},
      {"a number of eleven bytes", "\x00\x81\x81\x81\x81\x81\x81\x81\x81\x81\x81\x01k"sv},
      {"a limit above 32 bits", "\x8b\x04\x80\x80\x80\x80\x10\x00\x00"sv},
      {"a digest cut short", "\x12\x01\x02\x03"sv},
      {"a function's number that skips one", "\x07\x01\x01\x01kx"sv},
      {"a kind of function that there is not", "\x07\x00\x04\x00\x01x\x01\x01kx"sv},
      {"nothing", ""sv},
  };
  for (const Malformed& c : cases) {
    Batch batch;
    EXPECT_EQ(TakeRequests(c.payload, 1, kNoLimit, batch).code(), Code::kCorrupt) << c.what;
  }
}

// Goal: a function is named once in a message; if the server has no function of that name, the
// engine refuses the requests with it.
TEST(PackedRequest, NamesFunctionsOnce) {
  Batch batch;
  batch.Apply("k", functions::kAppend, "x");
  batch.Apply("k", functions::kAppend, "y");
  std::string bytes;
  AppendBatch(bytes, {}, batch);
  const std::string name = functions::kAppend->name;
  const std::string named = "\x07" + std::string(3, '\0') + static_cast<char>(name.size()) + name;
  std::string expected = named + "\x01\x01kx" + "\x27" + '\0' + "ky";
  expected.front() = static_cast<char>(0x80 | 0x07);
  EXPECT_EQ(std::string(PayloadOf(bytes)).substr(1), expected.substr(1));
  Batch decoded;
  ASSERT_TRUE(TakeRequests(PayloadOf(bytes), 2, kNoLimit, decoded).ok());
  ExpectEqualBatches(batch, decoded);
  Batch unknown;
  const std::string other = "\x07" + std::string(3, '\0') + "\x04none\x01\x01kx";
  ASSERT_TRUE(TakeRequests(other, 1, kNoLimit, unknown).ok());
  EXPECT_EQ(unknown.requests()[0].function, nullptr);
}

// ---- Replies ----

void ExpectEqualOutcomes(const Batch& a, const Batch& b, bool deadlines, bool versions) {
  EXPECT_EQ(a.applied(), b.applied());
  for (uint32_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "slot " << i);
    const Outcome& x = a.outcome(i);
    const Outcome& y = b.outcome(i);
    EXPECT_EQ(x.verdict, y.verdict);
    EXPECT_EQ(x.present, y.present);
    EXPECT_EQ(x.more, y.more);
    EXPECT_EQ(x.integer, y.integer);
    EXPECT_EQ(x.value, y.value);
    EXPECT_EQ(x.status, y.status);
    EXPECT_STREQ(x.status.what(), y.status.what());
    EXPECT_EQ(deadlines ? x.deadline_ms : 0, y.deadline_ms);
    EXPECT_EQ(versions ? x.version : 0, y.version);
    EXPECT_EQ(x.hint.bits, y.hint.bits);
    const auto items = [](const Batch& batch, uint32_t slot) {
      std::vector<std::pair<std::string, std::string>> all;
      for (const Item& item : batch.items(slot)) all.emplace_back(item.key, item.value);
      return all;
    };
    EXPECT_EQ(items(a, i), items(b, i));
  }
}

void CopyRequests(const Batch& from, Batch& to) {
  for (const Request& request : from.requests()) to.Add(request);
}

// Goal: outcomes arrive as they were, and a reply that is cut short or damaged is refused or read
// as another one, never beyond its bytes (checked by AddressSanitizer).
// Method: random batches executed by the model engine.
TEST(PackedReply, DecodesWhatWasEncoded) {
  const unsigned seed = PrintedSeed();
  RandomBatch random(seed);
  std::mt19937 rng(seed);
  MemoryBudget budget(0);
  ModelEngine engine({.budget = &budget});
  for (int round = 0; round < 400; ++round) {
    Batch batch(round % 2 == 0 ? Batch::Kind::kUnordered : Batch::Kind::kAtomic);
    batch.set_now_ms(kNow + static_cast<uint64_t>(round));
    random.Fill(batch);
    engine.Execute(batch);
    const auto flags = static_cast<uint8_t>((round / 2) % 4 * kWantDeadlines);
    const Header request{.id = 5,
                         .kind = round % 2 == 0 ? Kind::kBatch : Kind::kAtomic,
                         .flags = flags,
                         .keyspace = 1};
    std::string message;
    AppendReply(message, request, batch, 0, static_cast<uint32_t>(batch.size()));
    const Header header = HeaderOf(message);
    EXPECT_EQ(header.id, 5u);
    EXPECT_EQ(header.payload_bytes, PayloadOf(message).size());
    Batch decoded(batch.kind());
    CopyRequests(batch, decoded);
    ASSERT_TRUE(ReadReply(header, PayloadOf(message), decoded).ok());
    ExpectEqualOutcomes(batch, decoded, request.has(kWantDeadlines), request.has(kWantVersions));
    if (round % 10 != 0) continue;
    for (size_t bytes = 0; bytes < header.payload_bytes; ++bytes) {
      const std::string cut(PayloadOf(message).substr(0, bytes));
      EXPECT_EQ(ReadReply(header, cut, decoded).code(), Code::kCorrupt);
      EXPECT_EQ(decoded.outcome(0).status.code(), Code::kCorrupt);
    }
    for (int i = 0; i < 200 && header.payload_bytes > 0; ++i) {
      std::string damaged(PayloadOf(message));
      damaged[rng() % damaged.size()] = static_cast<char>(rng());
      static_cast<void>(ReadReply(header, damaged, decoded));
    }
  }
}

// Goal: a message of gets alone gives its keys, and its reply is a batch's, byte for byte; any
// other message, and one that is cut short or has a byte more, gives none.
// Method: random keys and values of a few sizes, some of which are absent.
TEST(PackedReply, OfGetsIsThatOfABatch) {
  const unsigned seed = PrintedSeed();
  std::mt19937 rng(seed);
  const auto text = [&](size_t bytes_max) {
    return std::string(rng() % (bytes_max + 1), static_cast<char>('a' + rng() % 26));
  };
  for (int round = 0; round < 300; ++round) {
    MemoryBudget budget(0);
    ModelEngine engine({.budget = &budget});
    Batch fill;
    Batch gets;
    const auto count = static_cast<uint32_t>(rng() % 40 + 1);
    for (uint32_t i = 0; i < count; ++i) {
      const std::string_view key = gets.scratch().Copy(text(i % 3 == 0 ? 200 : 3));
      gets.Get(key);
      if (rng() % 4 > 0) fill.Put(key, fill.scratch().Copy(text(rng() % 2 == 0 ? 3 : 300)));
    }
    engine.Execute(fill);
    std::string message;
    AppendBatch(message, {.id = 7}, gets);
    std::vector<std::string_view> keys;
    ASSERT_TRUE(TakeGets(PayloadOf(message), count, &keys));
    ASSERT_EQ(keys.size(), count);
    engine.Execute(gets);
    std::vector<GetAnswer> answers(count);
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(keys[i], gets.requests()[i].key);
      const Outcome& outcome = gets.outcome(i);
      answers[i] = {.data = outcome.value.data(),
                    .bytes = static_cast<uint32_t>(outcome.value.size()),
                    .verdict = outcome.verdict};
    }
    const Header request{.id = 7, .kind = Kind::kBatch, .keyspace = 2};
    std::string of_batch;
    AppendReply(of_batch, request, gets, 0, count);
    std::string of_answers;
    AppendGetReply(of_answers, request, answers);
    EXPECT_EQ(of_answers, of_batch);

    const std::string payload(PayloadOf(message));
    std::vector<std::string_view> none;
    for (size_t bytes = 0; bytes < payload.size(); ++bytes) {
      EXPECT_FALSE(TakeGets(std::string_view(payload).substr(0, bytes), count, &none));
    }
    EXPECT_FALSE(TakeGets(payload + 'x', count, &none));
    EXPECT_FALSE(TakeGets(payload, count + 1, &none));
    Batch other;
    const uint32_t wanting = static_cast<uint32_t>(rng() % count);
    for (uint32_t i = 0; i < count; ++i) {
      const uint8_t flags = i == wanting ? Request::kWantHint : 0;
      other.Add({.op = Op::kGet, .flags = flags, .key = keys[i]});
    }
    std::string mixed;
    AppendBatch(mixed, {.id = 7}, other);
    EXPECT_FALSE(TakeGets(PayloadOf(mixed), count, &none));
    gets.Delete("key");
    mixed.clear();
    AppendBatch(mixed, {.id = 7}, gets);
    EXPECT_FALSE(TakeGets(PayloadOf(mixed), count + 1, &none));
  }
}

// Goal: deadlines in messages are the wall clock's, also while that is behind the store's time:
// they become later on their way in and earlier on their way out; no deadline stays none.
TEST(PackedReply, DeadlinesAreThoseOfTheWallClock) {
  constexpr uint64_t kBehind = 86'400'000;
  const StoreNow now{.ms = kNow, .behind_ms = kBehind};
  Batch sent;
  sent.Add({.op = Op::kPut, .key = "a", .value = "1", .deadline_ms = kNow});
  sent.Expire("a", kNow + 1);
  sent.Persist("b");
  sent.Add({.op = Op::kPut, .key = "c", .value = "1", .deadline_ms = kKeepDeadline});
  const std::string message = Encoded(sent);
  Batch taken;
  ASSERT_TRUE(TakeRequests(PayloadOf(message), 4, kNoLimit, taken, now).ok());
  EXPECT_EQ(taken.requests()[0].deadline_ms, kNow + kBehind);
  EXPECT_EQ(taken.requests()[1].deadline_ms, kNow + 1 + kBehind);
  EXPECT_EQ(taken.requests()[2].deadline_ms, 0u);
  EXPECT_EQ(taken.requests()[3].deadline_ms, kKeepDeadline);

  MemoryBudget budget(0);
  ModelEngine engine({.budget = &budget});
  taken.set_now_ms(now.ms);
  engine.Execute(taken);
  std::string reply;
  AppendReply(reply, {.flags = kWantDeadlines}, taken, 0, 4, now);
  ASSERT_TRUE(ReadReply(HeaderOf(reply), PayloadOf(reply), sent).ok());
  EXPECT_EQ(sent.outcome(1).verdict, Verdict::kDone);
  EXPECT_EQ(sent.outcome(1).deadline_ms, kNow);
}

// Goal: the bytes are those of the documentation.
TEST(PackedReply, LeavesOutWhatRepeats) {
  MemoryBudget budget(0);
  ModelEngine engine({.budget = &budget});
  Batch fill;
  fill.Put("a", "one");
  fill.Put("b", "two");
  fill.Put("c", "three");
  engine.Execute(fill);
  Batch batch;
  for (const char* key : {"a", "b", "x", "c"}) batch.Get(key);
  batch.Count(Range::All());
  batch.Scan(Range::All());
  engine.Execute(batch);
  std::string message;
  AppendReply(message, {}, batch, 0, 6);
  EXPECT_EQ(PayloadOf(message),
            "\x28\x03"
            "one"
            "\x38two"
            "\x01"
            "\x28\x05three"
            "\x80\x01\x06"
            "\x80\x02\x02\x02\x01\x03\x01\x01\x05"
            "aonebtwocthree"sv);
}

// Goal: a reply has a limit. Ranges whose items exceed it are refused, and nothing else: other
// answers, of writes above all, arrive.
// Method: the limit is chosen so that the items of a number of scans fit, and those of the next
// not.
TEST(PackedReply, RefusesItemsThatDoNotFit) {
  MemoryBudget budget(0);
  ModelEngine engine({.budget = &budget});
  Batch fill;
  for (const char* key : {"a", "b", "c"}) fill.Put(key, "value");
  engine.Execute(fill);
  const auto ask = [](Batch& batch) {
    batch.Put("a", "other", Request::kReturnPrevious);
    for (int i = 0; i < 3; ++i) batch.Scan(Range::From("b"));
    batch.Count(Range::All());
    batch.Scan(Range::From("x"));
    batch.Get("b");
  };
  Batch batch;
  ask(batch);
  engine.Execute(batch);
  // Bytes of a scan: a run, and two items.
  constexpr size_t kScanBytes = 15 + 2 * (1 + 5);
  for (const size_t scans : {0u, 1u, 2u, 3u}) {
    for (const size_t more : {size_t{0}, kScanBytes - 1}) {
      std::string message;
      AppendReply(message, {}, batch, 0, static_cast<uint32_t>(batch.size()), {},
                  scans * kScanBytes + more);
      Batch decoded;
      ask(decoded);
      ASSERT_TRUE(ReadReply(HeaderOf(message), PayloadOf(message), decoded).ok());
      EXPECT_EQ(decoded.outcome(0).value, "value");
      for (uint32_t slot = 1; slot <= 3; ++slot) {
        const bool fits = slot <= scans;
        EXPECT_EQ(decoded.items(slot).size(), fits ? 2u : 0u);
        EXPECT_EQ(decoded.outcome(slot).status.code(), fits ? Code::kOk : Code::kTooLarge);
      }
      EXPECT_EQ(decoded.outcome(4).integer, 3);
      EXPECT_EQ(decoded.outcome(5).verdict, Verdict::kDone);
      EXPECT_EQ(decoded.outcome(6).value, "value");
    }
  }
}

// Goal: a page of links arrives as it was sent; one that is cut, has no link or too many, or whose
// fences do not rise, is refused. The page of the documentation has its bytes.
TEST(PackedTop, ArrivesOrIsRefused) {
  LeafLinks page;
  page.links.push_back({.lower = "", .hint = {0x0001'0000'0000'0001}, .hits = 0});
  page.links.push_back({.lower = "k", .hint = {0x0001'0000'0000'0002}, .hits = 3});
  std::string bytes;
  AppendTop(bytes, page);
  EXPECT_EQ(bytes, "\x02\x00\x01\0\0\0\0\0\x01\0\x00\x01k\x02\0\0\0\0\0\x01\0\x03"s);
  page.next = "next";
  bytes.clear();
  AppendTop(bytes, page);
  LeafLinks decoded;
  ASSERT_TRUE(ReadTop(bytes, &decoded));
  EXPECT_EQ(decoded.next, page.next);
  ASSERT_EQ(decoded.links.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(decoded.links[i].lower, page.links[i].lower);
    EXPECT_EQ(decoded.links[i].hint.bits, page.links[i].hint.bits);
    EXPECT_EQ(decoded.links[i].hits, page.links[i].hits);
  }
  for (size_t size = 0; size < bytes.size() - page.next.size(); ++size) {
    LeafLinks cut;
    EXPECT_FALSE(ReadTop(std::string_view(bytes).substr(0, size), &cut)) << size;
  }
  const auto is_refused = [](const LeafLinks& wrong) {
    std::string sent;
    AppendTop(sent, wrong);
    LeafLinks read;
    return !ReadTop(sent, &read);
  };
  EXPECT_TRUE(is_refused({}));
  LeafLinks falls;
  falls.links = {{.lower = "b"}, {.lower = "a"}};
  EXPECT_TRUE(is_refused(falls));
  LeafLinks begins_again;
  begins_again.links = {{.lower = "b"}};
  begins_again.next = "b";
  EXPECT_TRUE(is_refused(begins_again));
  LeafLinks many;
  for (uint32_t i = 0; i <= kTopLinksMax; ++i) {
    many.links.push_back({.lower = many.bytes.Copy(std::to_string(10'000 + i))});
  }
  EXPECT_TRUE(is_refused(many));
  many.links.pop_back();
  EXPECT_FALSE(is_refused(many));
}

// Goal: hints beside a batch are sent instead of its own.
TEST(PackedRequest, HintsBesideTheBatchAreSent) {
  Batch batch;
  batch.Add({.op = Op::kGet, .key = "a", .hint = {1}});
  batch.Get("b");
  const Hint hints[] = {{0}, {7}};
  std::string message;
  AppendBatch(message, {}, batch, 0, hints);
  Batch decoded;
  ASSERT_TRUE(Decode(message, decoded).ok());
  EXPECT_EQ(decoded.requests()[0].hint.bits, 0u);
  EXPECT_EQ(decoded.requests()[1].hint.bits, 7u);
}

// Goal: a failure of a whole message arrives with its text and detail.
TEST(PackedReply, TellsFailures) {
  std::string message;
  AppendFailure(message, {.id = 8, .kind = Kind::kSave}, {Code::kIo, "the disk is full", 28});
  EXPECT_TRUE(HeaderOf(message).flags & kFailed);
  std::string_view payload = PayloadOf(message);
  Status status;
  ASSERT_TRUE(TakeStatus(payload, &status));
  EXPECT_TRUE(payload.empty());
  EXPECT_EQ(status, Status(Code::kIo, "", 28));
  EXPECT_STREQ(status.what(), "the disk is full");
  for (size_t bytes = 0; bytes < PayloadOf(message).size(); ++bytes) {
    std::string_view cut = PayloadOf(message).substr(0, bytes);
    EXPECT_FALSE(TakeStatus(cut, &status));
  }
}

}  // namespace
}  // namespace skep::packed
