// dump_writer.h: writes the items of an export.
#pragma once

#include <string>
#include <string_view>

#include "tools/dump_export.h"
#include "tools/dump_format.h"

namespace skep {

// Thread safety: one owner. The constructor's arguments must outlive it.
class DumpWriter {
 public:
  DumpWriter(const ExportOptions& options, const DumpTarget& target, ExportSummary* summary);

  // Returns whether the key is in the range of the export.
  bool IsWanted(std::string_view key) const;

  // Each returns false if the target takes no more.
  bool Write(const DumpItem& item);
  bool Flush();

 private:
  const ExportOptions& options_;
  const DumpTarget& target_;
  ExportSummary& summary_;
  std::string out_;
};

}  // namespace skep
