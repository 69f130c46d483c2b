// rdb_listing FILE: prints what ReadRdb finds in an RDB file, a line each:
//
//   string DB KEY VALUE DEADLINE_MS       key and value in hexadecimal, `-` if empty
//   TYPE DB KEY                           a skipped key
//   end VERSION STRINGS SKIPPED FUNCTIONS CHECKED
//
// Exits with 1 and an error on standard error if it cannot read the file.
#include <fmt/core.h>
#include <fmt/format.h>

#include <cstdio>

#include "durable/rdb_reader.h"

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
  skep::Status OnSkipped(uint64_t db, std::string_view key, std::string_view type) override {
    fmt::print("{} {} {}\n", type, db, Hex(key));
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
  fmt::print("end {} {} {} {} {}\n", summary->version, summary->strings, summary->skipped,
             summary->functions, summary->is_checked);
  return 0;
}
