#include "tools/dump_writer.h"

#include "wire/resp_reply.h"

namespace skep {
namespace {

constexpr size_t kOutBytes = 256 * 1024;

}  // namespace

DumpWriter::DumpWriter(const ExportOptions& options, const DumpTarget& target,
                       ExportSummary* summary)
    : options_(options), target_(target), summary_(*summary) {
  if (options.format == DumpFormat::kResp) {
    AppendCommand(out_, {"SELECT", std::to_string(options.db)});
  }
}

bool DumpWriter::IsWanted(std::string_view key) const {
  if (options_.prefix) return key.starts_with(*options_.prefix);
  return key >= options_.from && (!options_.to || key < *options_.to);
}

bool DumpWriter::Write(const DumpItem& item) {
  ++summary_.keys;
  options_.format == DumpFormat::kResp ? AppendResp(item, &out_) : AppendJsonl(item, &out_);
  return out_.size() < kOutBytes || Flush();
}

bool DumpWriter::Flush() {
  if (!target_(out_)) return false;
  out_.clear();
  return true;
}

}  // namespace skep
