#include "server/batch_args.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "server/compare_args.h"
#include "server/range_args.h"

namespace skep {
namespace {

using Strings = std::vector<std::string>;

constexpr uint64_t kNow = 1'700'000'000'123;

std::vector<std::string_view> Views(const Strings& words) { return {words.begin(), words.end()}; }

std::string ErrorOf(const Strings& words) {
  Scratch scratch;
  Batch batch(Batch::Kind::kAtomic);
  return std::string(ParseKbatch(Views(words), {.ms = kNow}, scratch, batch));
}

std::string DigestWord(std::string_view value) {
  const auto text = DigestText(DigestOf(value));
  return {text.data(), text.size()};
}

// A request as one line of text. Ranges by their bounds.
std::string Shown(const Request& r) {
  std::string shown = std::to_string(static_cast<int>(r.op)) + " " + std::to_string(r.when) + " ";
  shown += testing::PrintToString(r.key) + testing::PrintToString(r.value);
  shown += std::to_string(r.deadline_ms);
  if (IsRange(r.op)) {
    return shown + (r.has(Request::kNoUpperBound) ? "+" : testing::PrintToString(r.other));
  }
  switch (r.op) {
    case Op::kRequireValue:
      return shown + testing::PrintToString(r.other);
    case Op::kRequireDigest:
      return shown + std::to_string(r.digest.low);
    case Op::kApply:
      return shown + r.function->name;
    default:
      return shown;
  }
}

// Writes random batches in words, and the same requests by calls of Batch.
class Writer {
 public:
  explicit Writer(unsigned seed) : rng_(seed) {}

  void Write() {
    words.clear();
    scratch_.Clear();
    wanted = Batch(Batch::Kind::kAtomic);
    for (size_t n = Pick(4); n > 0; --n) {
      words.push_back(Pick(2) == 0 ? "IF" : "if");
      Condition();
    }
    words.push_back(Pick(2) == 0 ? "DO" : "do");
    for (size_t n = 1 + Pick(4); n > 0; --n) Operation();
  }

  Strings words;
  Batch wanted{Batch::Kind::kAtomic};

 private:
  size_t Pick(size_t below) { return rng_() % below; }

  // Mostly words of the grammar, which must mean nothing where bytes are expected.
  const std::string& Bytes() {
    static const Strings kBytes = {"IF",      "DO",     "PUT", "EX",
                                   "KEEPTTL", "VALUE",  "a",   "GET",
                                   "",        "PREFIX", "1",   std::string("\0\xff", 2)};
    return kBytes[Pick(kBytes.size())];
  }
  std::string_view Say(const std::string& word) {
    words.push_back(word);
    return scratch_.Copy(word);
  }
  std::string_view SayBytes() { return Say(Bytes()); }

  Range SayRange() {
    if (Pick(2) == 0) {
      Say("prefix");
      return PrefixRange(SayBytes(), scratch_);
    }
    const std::string min = Pick(3) == 0 ? "-" : "[" + Bytes();
    const std::string max = Pick(3) == 0 ? "+" : "(" + Bytes();
    Say(min), Say(max);
    return *ParseRange(scratch_.Copy(min), scratch_.Copy(max), scratch_);
  }

  void Condition() {
    switch (Pick(5)) {
      case 0: {
        Say("VALUE");
        const auto key = SayBytes();
        wanted.RequireValue(key, SayBytes());
        return;
      }
      case 1: {
        Say("digest");
        const auto key = SayBytes();
        const std::string value = Bytes();
        Say(DigestWord(value));
        wanted.RequireDigest(key, DigestOf(value));
        return;
      }
      case 2:
        Say("Absent");
        wanted.RequireAbsent(SayBytes());
        return;
      case 3:
        Say("PRESENT");
        wanted.RequirePresent(SayBytes());
        return;
      default:
        Say("EMPTY");
        wanted.RequireEmpty(SayRange());
    }
  }

  void Put() {
    Say("put");
    Request request{.op = Op::kPut, .key = SayBytes(), .other = {}};
    request.value = SayBytes();
    switch (Pick(4)) {
      case 0:
        Say("EX"), Say("7");
        request.deadline_ms = kNow + 7000;
        break;
      case 1:
        Say("pxat"), Say("7");
        request.deadline_ms = 7;
        break;
      case 2:
        Say("KeepTTL");
        request.deadline_ms = kKeepDeadline;
        break;
      default:
        break;
    }
    wanted.Add(request);
  }

  void Operation() {
    switch (Pick(9)) {
      case 0:
        Say("GET");
        wanted.Get(SayBytes());
        return;
      case 1:
        Say("DELETE");
        wanted.Delete(SayBytes());
        return;
      case 2: {
        Say("INCRBY");
        const auto key = SayBytes();
        wanted.Apply(key, functions::kAddDecimal, Say("-3"));
        return;
      }
      case 3: {
        Say("append");
        const auto key = SayBytes();
        wanted.Apply(key, functions::kAppend, SayBytes());
        return;
      }
      case 4: {
        Say("EXPIRE");
        const auto key = SayBytes();
        Say("5");
        wanted.Expire(key, kNow + 5000);
        return;
      }
      case 5: {
        Say("PEXPIRE");
        const auto key = SayBytes();
        Say("-9223372036854775808");
        wanted.Expire(key, 1);
        return;
      }
      case 6:
        Say("persist");
        wanted.Persist(SayBytes());
        return;
      case 7:
        Say("DELRANGE");
        wanted.DeleteRange(SayRange());
        return;
      default:
        Put();
    }
  }

  std::mt19937 rng_;
  Scratch scratch_;  // bytes that `wanted` views
};

// Goal: words have the meaning that the header's grammar gives them, whatever the keys and values
// are.
// Method: random batches whose keys and values are mostly words of the grammar, against the same
// requests written as calls. Cut short anywhere, the words are refused, or are a batch that ends
// there.
TEST(BatchArgs, MeansWhatTheGrammarSays) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Writer writer(seed);
  for (int i = 0; i < 3000; ++i) {
    writer.Write();
    SCOPED_TRACE(testing::PrintToString(writer.words));
    Scratch scratch;
    Batch got(Batch::Kind::kAtomic);
    ASSERT_EQ(ParseKbatch(Views(writer.words), {.ms = kNow}, scratch, got), "");
    ASSERT_EQ(got.size(), writer.wanted.size());
    for (uint32_t slot = 0; slot < got.size(); ++slot) {
      ASSERT_EQ(Shown(got.requests()[slot]), Shown(writer.wanted.requests()[slot])) << slot;
    }
    for (size_t words = 0; words < writer.words.size(); ++words) {
      Batch cut(Batch::Kind::kAtomic);
      const auto views = Views(writer.words);
      const auto error = ParseKbatch(std::span(views).first(words), {.ms = kNow}, scratch, cut);
      ASSERT_TRUE(error.empty() || error.starts_with("ERR KBATCH")) << words << error;
      if (!error.empty()) continue;
      ASSERT_LE(cut.size(), got.size());
      // Only the last request's option may have been cut off.
      for (uint32_t slot = 0; slot + 1 < cut.size(); ++slot) {
        ASSERT_EQ(Shown(cut.requests()[slot]), Shown(got.requests()[slot])) << slot;
      }
    }
  }
}

// Goal: each mistake has its own text, which names its place.
TEST(BatchArgs, NamesEachMistake) {
  EXPECT_EQ(ErrorOf({}), "ERR KBATCH: DO and its operations are missing");
  EXPECT_EQ(ErrorOf({"IF", "ABSENT", "a"}), "ERR KBATCH: DO and its operations are missing");
  EXPECT_EQ(ErrorOf({"PUT", "a", "1"}), "ERR KBATCH: expected IF or DO, not 'PUT'");
  EXPECT_EQ(ErrorOf({"IF", "ABSENT", "a", "b"}), "ERR KBATCH: expected IF or DO, not 'b'");
  EXPECT_EQ(ErrorOf({"DO"}), "ERR KBATCH: no operation after DO");
  EXPECT_EQ(ErrorOf({"IF"}), "ERR KBATCH condition 0: it is missing");
  EXPECT_EQ(ErrorOf({"IF", "ABSENT", "a", "IF"}), "ERR KBATCH condition 1: it is missing");
  EXPECT_EQ(ErrorOf({"IF", "X", "a"}), "ERR KBATCH condition 0: there is no condition 'X'");
  EXPECT_EQ(ErrorOf({"IF", "GET", "a"}), "ERR KBATCH condition 0: there is no condition 'GET'");
  EXPECT_EQ(ErrorOf({"IF", "VALUE", "a"}), "ERR KBATCH condition 0: VALUE takes key value");
  EXPECT_EQ(ErrorOf({"IF", "DIGEST", "a"}), "ERR KBATCH condition 0: DIGEST takes key digest");
  EXPECT_EQ(ErrorOf({"IF", "ABSENT"}), "ERR KBATCH condition 0: ABSENT takes key");
  EXPECT_EQ(ErrorOf({"IF", "PRESENT"}), "ERR KBATCH condition 0: PRESENT takes key");
  EXPECT_EQ(ErrorOf({"IF", "EMPTY", "-"}),
            "ERR KBATCH condition 0: EMPTY takes min max, or PREFIX prefix");
  EXPECT_EQ(ErrorOf({"IF", "DIGEST", "a", "b", "DO", "GET", "a"}),
            "ERR KBATCH condition 0: a digest must be exactly 32 hexadecimal characters");
  EXPECT_EQ(ErrorOf({"IF", "EMPTY", "a", "b", "DO", "GET", "a"}),
            "ERR KBATCH condition 0: " + std::string(kNotABound));
  EXPECT_EQ(ErrorOf({"DO", "GET", "a", "X"}), "ERR KBATCH operation 1: there is no operation 'X'");
  EXPECT_EQ(ErrorOf({"DO", "GET"}), "ERR KBATCH operation 0: GET takes key");
  EXPECT_EQ(ErrorOf({"IF", "ABSENT", "b", "DO", "GET", "a", "PUT", "a"}),
            "ERR KBATCH operation 1: PUT takes key value");
  EXPECT_EQ(ErrorOf({"DO", "PUT", "a", "1", "EX"}),
            "ERR KBATCH operation 1: there is no operation 'EX'");
  EXPECT_EQ(ErrorOf({"DO", "PUT", "a", "1", "EX", "1", "KEEPTTL"}),
            "ERR KBATCH operation 1: there is no operation 'KEEPTTL'");
  EXPECT_EQ(ErrorOf({"DO", "PUT", "a", "1", "PERSIST"}),
            "ERR KBATCH operation 1: PERSIST takes key");
  EXPECT_EQ(ErrorOf({"DO", "PUT", "a", "1", "EX", "x"}),
            "ERR KBATCH operation 0: value is not an integer or out of range");
  EXPECT_EQ(ErrorOf({"DO", "PUT", "a", "1", "EX", "0"}),
            "ERR KBATCH operation 0: invalid expire time in 'kbatch' command");
  EXPECT_EQ(ErrorOf({"DO", "INCRBY", "a", "x"}),
            "ERR KBATCH operation 0: value is not an integer or out of range");
  EXPECT_EQ(ErrorOf({"DO", "EXPIRE", "a", "9223372036854775807"}),
            "ERR KBATCH operation 0: invalid expire time in 'kbatch' command");
  EXPECT_EQ(ErrorOf({"DO", "DELRANGE", "-", "x"}),
            "ERR KBATCH operation 0: " + std::string(kNotABound));
  EXPECT_EQ(ErrorOf({"DO", std::string(1000, 'x')}),
            "ERR KBATCH operation 0: there is no operation '" + std::string(64, 'x') + "'");
}

// Goal: conditions and operations together are bounded.
TEST(BatchArgs, IsBounded) {
  Strings words;
  for (size_t i = 0; i < kKbatchMax / 2; ++i) words.insert(words.end(), {"IF", "ABSENT", "a"});
  words.push_back("DO");
  for (size_t i = 0; i < kKbatchMax / 2; ++i) words.insert(words.end(), {"GET", "a"});
  EXPECT_EQ(ErrorOf(words), "");
  words.insert(words.end(), {"GET", "a"});
  EXPECT_EQ(ErrorOf(words), "ERR KBATCH takes at most 4096 conditions and operations");
}

}  // namespace
}  // namespace skep
