#include "durable/log_change.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>
#include <vector>

#include "base/varint.h"
#include "durable/log_format.h"

namespace skep::durable {
namespace {

using Kind = LogChange::Kind;

constexpr Kind kKinds[] = {Kind::kPut,      Kind::kPutUntil, Kind::kErase,      Kind::kSetDeadline,
                           Kind::kMove,     Kind::kApply,    Kind::kEraseRange, Kind::kEraseFrom,
                           Kind::kEraseAll, Kind::kPutTyped};

bool AreEqual(const LogChange& a, const LogChange& b) {
  return a.kind == b.kind && a.type == b.type && a.version == b.version && a.key == b.key &&
         a.value == b.value && a.deadline_ms == b.deadline_ms && a.function == b.function;
}

// All changes of a payload; fails if it is not one.
std::vector<LogChange> Decode(ChangeDecoder& decoder) {
  std::vector<LogChange> changes;
  while (true) {
    const auto change = decoder.Next();
    EXPECT_TRUE(change.has_value()) << change.error().ToString();
    if (!change || !*change) return changes;
    changes.push_back(**change);
  }
}

// The code of the first error; kOk if there is none.
Code FirstError(std::string_view payload) {
  auto decoder = ChangeDecoder::Open(payload);
  if (!decoder) return decoder.error().code();
  while (true) {
    const auto change = decoder->Next();
    if (!change) {
      EXPECT_LE(change.error().detail(), payload.size());
      return change.error().code();
    }
    if (!*change) return Code::kOk;
  }
}

class RandomChanges {
 public:
  explicit RandomChanges(unsigned seed) : rng_(seed) {}

  // A random change, with the fields that its kind has.
  LogChange Next(Version base) {
    LogChange change{
        .kind = kKinds[rng_() % std::size(kKinds)], .version = base + Number(), .key = Bytes()};
    switch (change.kind) {
      case Kind::kPutTyped:
        change.type = static_cast<uint8_t>(1 + rng_() % 255);
        [[fallthrough]];
      case Kind::kPutUntil:
        change.deadline_ms = Number();
        [[fallthrough]];
      case Kind::kPut:
      case Kind::kMove:
      case Kind::kEraseRange:
        change.value = Bytes();
        break;
      case Kind::kSetDeadline:
        change.deadline_ms = Number();
        break;
      case Kind::kApply: {
        const auto all = AllFunctions();
        do {
          change.function = all[rng_() % all.size()];
        } while (change.function->kind != FunctionKind::kPlain &&
                 change.function->kind != FunctionKind::kUpdate);
        change.value = Bytes();
        break;
      }
      default:
        break;
    }
    return change;
  }

  // A random number of a random length.
  uint64_t Number() { return rng_() >> (rng_() % 64); }
  std::string_view Bytes() {
    std::string& bytes = bytes_.emplace_back(rng_() % 8 == 0 ? rng_() % 400 : rng_() % 8, '\0');
    for (char& c : bytes) c = static_cast<char>(rng_());
    return bytes;
  }

 private:
  std::mt19937_64 rng_;
  std::deque<std::string> bytes_;
};

// Goal: what was encoded is decoded, whatever it is.
TEST(LogChange, RoundTrip) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  RandomChanges random(seed);
  for (int round = 0; round < 500; ++round) {
    const auto keyspace = static_cast<uint32_t>(random.Number());
    const uint64_t now_ms = random.Number();
    const Version base = random.Number() >> 1;
    std::string payload;
    ChangeEncoder encoder(payload, keyspace, now_ms, base);
    std::vector<LogChange> changes;
    for (uint64_t i = random.Number() % 20; i > 0; --i) {
      changes.push_back(random.Next(base));
      encoder.Add(changes.back());
    }
    auto decoder = ChangeDecoder::Open(payload);
    ASSERT_TRUE(decoder.has_value());
    EXPECT_EQ(decoder->keyspace(), keyspace);
    EXPECT_EQ(decoder->now_ms(), now_ms);
    EXPECT_TRUE(std::ranges::equal(Decode(*decoder), changes, AreEqual));
  }
}

// Goal: a payload that ends too early is damaged wherever it ends, but between two changes.
TEST(LogChange, EveryPrefix) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  RandomChanges random(seed);
  for (int round = 0; round < 100; ++round) {
    std::string payload;
    ChangeEncoder encoder(payload, 1, 2, 3);
    const size_t header_bytes = payload.size();
    encoder.Add(random.Next(3));
    for (size_t length = 0; length < payload.size(); ++length) {
      const Code code = FirstError(std::string_view(payload).substr(0, length));
      EXPECT_EQ(code, length == header_bytes ? Code::kOk : Code::kCorrupt) << length;
    }
  }
}

// Goal: bytes of a stranger are an error or changes, never views of what is not theirs.
TEST(LogChange, AnyBytes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  RandomChanges random(seed);
  for (int round = 0; round < 20'000; ++round) {
    const std::string payload = std::string(1, '\x01') + std::string(random.Bytes());
    auto decoder = ChangeDecoder::Open(payload);
    while (decoder) {
      const auto change = decoder->Next();
      if (!change || !*change) break;
      for (const std::string_view bytes : {(*change)->key, (*change)->value}) {
        EXPECT_TRUE(bytes.empty() ||
                    (bytes.data() >= payload.data() &&
                     bytes.data() + bytes.size() <= payload.data() + payload.size()));
      }
    }
  }
}

// Goal: what no encoder writes is refused, and where it is is said.
TEST(LogChange, Strange) {
  const std::string header("\x01\0\0\0", 4);
  const std::string long_number(10, '\xff');
  EXPECT_EQ(FirstError(""), Code::kCorrupt);
  EXPECT_EQ(FirstError(std::string("\x03\0\0\0", 4)), Code::kCorrupt);  // another type
  EXPECT_EQ(FirstError(header), Code::kOk);
  EXPECT_EQ(FirstError(header + std::string("\0\0\0", 3)), Code::kCorrupt);  // no such kind
  EXPECT_EQ(FirstError(header + std::string("\x0a\0\0", 3)), Code::kCorrupt);
  EXPECT_EQ(FirstError("\x01" + long_number), Code::kCorrupt);
  EXPECT_EQ(FirstError(std::string("\x01\x80\x80\x80\x80\x10\0\0", 8)), Code::kCorrupt);  // 2^32
  EXPECT_EQ(FirstError(header + "\x03" + std::string(1, '\0') + long_number), Code::kCorrupt);
  // An apply of elements that there are not.
  EXPECT_EQ(FirstError(header + std::string("\x06\0\0\x0a\x03"
                                            "add\0",
                                            9)),
            Code::kCorrupt);
  auto decoder = ChangeDecoder::Open(header + std::string("\x03\0\x01k\x0b", 5));
  ASSERT_TRUE(decoder.has_value());
}

// Goal: a function that is not registered is named.
TEST(LogChange, MissingFunction) {
  const Function unknown{.name = "nobody", .body = nullptr};
  std::string payload;
  ChangeEncoder(payload, 0, 0, 0).Add({.kind = Kind::kApply, .key = "k", .function = &unknown});
  auto decoder = ChangeDecoder::Open(payload);
  const auto change = decoder->Next();
  ASSERT_FALSE(change.has_value());
  EXPECT_EQ(change.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(decoder->missing_function(), "nobody");
}

// Goal: numbers are as short as they can be, and come back.
TEST(Varint, RoundTrip) {
  for (int bit = 0; bit < 64; ++bit) {
    for (const uint64_t number :
         {uint64_t{1} << bit, (uint64_t{1} << bit) - 1, ~uint64_t{0} >> bit}) {
      std::string bytes;
      AppendVarint(bytes, number);
      EXPECT_EQ(bytes.size(), number == 0 ? 1 : (std::bit_width(number) + 6) / 7);
      std::string_view left = bytes;
      uint64_t read = ~number;
      ASSERT_TRUE(TakeVarint(left, &read));
      EXPECT_EQ(read, number);
      EXPECT_TRUE(left.empty());
      left = std::string_view(bytes).substr(0, bytes.size() - 1);
      EXPECT_FALSE(TakeVarint(left, &read));
    }
  }
  // 2^64 and more.
  std::string_view large("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02", 10);
  uint64_t number = 0;
  EXPECT_FALSE(TakeVarint(large, &number));
}

}  // namespace
}  // namespace skep::durable
