// rdb_listing FILE: prints what ReadRdb finds in an RDB file, a line each:
//
//   string DB KEY VALUE DEADLINE_MS       key and value in hexadecimal, `-` if empty
//   TYPE DB KEY DEADLINE_MS MEMBER...     a collection; in hexadecimal, too, are its members,
//                                         behind each of a hash its value, of a sorted set its
//                                         score
//   skipped DB KEY                        a skipped key
//   end VERSION STRINGS COLLECTIONS SKIPPED FUNCTIONS CHECKED
//
// Exits with 1 and an error on standard error if it cannot read the file.
#include <fmt/core.h>
#include <fmt/format.h>

#include <cstdio>

#include "durable/rdb_collection.h"
#include "durable/rdb_reader.h"
#include "types/score.h"
#include "types/value_type.h"

namespace {

std::string Hex(std::string_view bytes) {
  if (bytes.empty()) return "-";
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return hex;
}

struct Printer final : skep::durable::RdbVisitor {
  skep::Status OnString(uint64_t db, std::string_view key, std::string_view value,
                        uint64_t deadline_ms) override {
    fmt::print("string {} {} {} {}\n", db, Hex(key), Hex(value), deadline_ms);
    return {};
  }
  skep::Status OnMembers(uint64_t db, std::string_view key,
                         const skep::durable::RdbMembers& members, uint64_t deadline_ms) override {
    if (members.is_first) {
      fmt::print("{} {} {} {}", skep::types::NameOf(members.kind), db, Hex(key), deadline_ms);
    }
    skep::durable::ForEachMember(members.kind, members.value,
                                 [&](const skep::durable::RdbMember& member) {
                                   fmt::print(" {}", Hex(member.member));
                                   if (members.kind == skep::types::kHash)
                                     fmt::print(" {}", Hex(member.value));
                                   if (members.kind != skep::types::kSortedSet) return;
                                   fmt::print(" {}", Hex(skep::types::ScoreText(member.score)));
                                 });
    if (members.is_last) fmt::print("\n");
    return {};
  }
  skep::Status OnSkipped(uint64_t db, std::string_view key, std::string_view) override {
    fmt::print("skipped {} {}\n", db, Hex(key));
    return {};
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Printer printer;
  const auto summary = skep::durable::ReadRdb(skep::PosixFileSystem(), argv[1], printer);
  if (!summary) {
    fmt::print(stderr, "{}\n", summary.error().ToString());
    return 1;
  }
  fmt::print("end {} {} {} {} {} {}\n", summary->version, summary->strings, summary->collections,
             summary->skipped, summary->functions, summary->is_checked);
  return 0;
}
