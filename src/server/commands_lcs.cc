// LCS: the longest common subsequence of two values.
//
// By the textbook: a table of the lengths for all prefixes of both, and a way back through it. The
// way is Redis's, since where there are several subsequences of that length it decides which one is
// told, and which matches.
#include <algorithm>
#include <string>
#include <vector>

#include "base/decimal.h"
#include "server/commands.h"

namespace skep::commands {
namespace {

// Cells of the table, of 4 bytes each. They take some 60 ms to fill, in which a worker's other
// connections wait.
constexpr uint64_t kCellsMax = uint64_t{16} << 20;

struct LcsArgs {
  bool only_length = false;  // LEN
  bool matches = false;      // IDX
  bool match_lengths = false;
  int64_t match_bytes_min = 0;
};

// Returns Redis's error text, or an empty one.
std::string_view ParseLcs(std::span<const std::string_view> options, LcsArgs& to) {
  for (size_t i = 0; i < options.size(); ++i) {
    if (EqualsIgnoringCase(options[i], "idx")) {
      to.matches = true;
    } else if (EqualsIgnoringCase(options[i], "len")) {
      to.only_length = true;
    } else if (EqualsIgnoringCase(options[i], "withmatchlen")) {
      to.match_lengths = true;
    } else if (EqualsIgnoringCase(options[i], "minmatchlen") && i + 1 < options.size()) {
      const auto bytes = ParseInt64(options[++i]);
      if (!bytes) return kNotAnInteger;
      to.match_bytes_min = std::max<int64_t>(*bytes, 0);
    } else {
      return kSyntaxError;
    }
  }
  if (!to.only_length || !to.matches) return {};
  return "ERR If you want both the length and indexes, please just use IDX.";
}

class LcsTable {
 public:
  LcsTable(std::string_view a, std::string_view b)
      : columns_(b.size() + 1), cells_((a.size() + 1) * columns_) {
    for (size_t i = 1; i <= a.size(); ++i) {
      for (size_t j = 1; j <= b.size(); ++j) {
        cells_[i * columns_ + j] =
            a[i - 1] == b[j - 1] ? At(i - 1, j - 1) + 1 : std::max(At(i - 1, j), At(i, j - 1));
      }
    }
  }

  // The length for the first i and j bytes.
  uint32_t At(size_t i, size_t j) const { return cells_[i * columns_ + j]; }
  uint32_t length() const { return cells_.back(); }

 private:
  const size_t columns_;
  std::vector<uint32_t> cells_;
};

// Equal bytes in both values.
struct Match {
  size_t a = 0;
  size_t b = 0;
  size_t bytes = 0;  // 0: none
};

struct Lcs {
  std::string text;
  std::vector<Match> matches;  // from the end on
};

// Goes back from the end of both values.
Lcs Trace(std::string_view a, std::string_view b, const LcsTable& table) {
  Lcs lcs;
  Match now;
  const auto end_match = [&] {
    if (now.bytes > 0) lcs.matches.push_back(now);
    now.bytes = 0;
  };
  size_t i = a.size();
  size_t j = b.size();
  while (i > 0 && j > 0) {
    if (a[i - 1] != b[j - 1]) {
      table.At(i - 1, j) > table.At(i, j - 1) ? --i : --j;
      end_match();
      continue;
    }
    --i;
    --j;
    lcs.text.push_back(a[i]);
    if (now.bytes > 0 && (now.a != i + 1 || now.b != j + 1)) {
      // As in Redis, the byte that ends a match begins no other.
      end_match();
      continue;
    }
    now = {.a = i, .b = j, .bytes = now.bytes + 1};
    if (i == 0 || j == 0) end_match();
  }
  std::ranges::reverse(lcs.text);
  return lcs;
}

void ReplyMatches(const Call& call, const LcsArgs& args, const Lcs& lcs) {
  std::vector<Match> told;
  for (const Match& match : lcs.matches) {
    if (static_cast<int64_t>(match.bytes) >= args.match_bytes_min) told.push_back(match);
  }
  RespWriter reply = call.reply();
  const auto reply_range = [&](size_t first, size_t bytes) {
    reply.Array(2);
    reply.Integer(static_cast<int64_t>(first));
    reply.Integer(static_cast<int64_t>(first + bytes - 1));
  };
  reply.Map(2);
  reply.Bulk("matches");
  reply.Array(told.size());
  for (const Match& match : told) {
    reply.Array(args.match_lengths ? 3 : 2);
    reply_range(match.a, match.bytes);
    reply_range(match.b, match.bytes);
    if (args.match_lengths) reply.Integer(static_cast<int64_t>(match.bytes));
  }
  reply.Bulk("len");
  reply.Integer(static_cast<int64_t>(lcs.text.size()));
}

}  // namespace

Plan PlanLcs(const Call& call, Batch& batch) {
  for (const size_t at : {1, 2}) {
    batch.Add({.op = Op::kGet, .flags = Request::kIfOfType, .key = call.arg(at)});
  }
  return Plan::Requests();
}

void FinishLcs(const Call& call, const Batch& batch, uint32_t slot) {
  if (call.Refused(batch, slot, 2)) return;
  if (batch.outcome(slot).type != kPlainType || batch.outcome(slot + 1).type != kPlainType) {
    return call.Error("ERR The specified keys must contain string values");
  }
  LcsArgs args;
  const std::string_view error = ParseLcs(call.args().subspan(3), args);
  if (!error.empty()) return call.Error(error);
  const std::string_view a = batch.outcome(slot).value;
  const std::string_view b = batch.outcome(slot + 1).value;
  if ((a.size() + 1) * (b.size() + 1) > kCellsMax) {
    return call.Error("ERR LCS: the product of the lengths exceeds 16777216");
  }
  static_assert(kCellsMax == 16'777'216);
  const LcsTable table(a, b);
  if (args.only_length) return call.reply().Integer(table.length());
  const Lcs lcs = Trace(a, b, table);
  args.matches ? ReplyMatches(call, args, lcs) : call.reply().Bulk(lcs.text);
}

}  // namespace skep::commands
