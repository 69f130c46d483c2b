#include "durable/keyspace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/crc32c.h"
#include "base/decimal.h"

namespace skep::durable {
namespace {

constexpr std::string_view kTitle = "skep-keyspaces ";
constexpr uint32_t kVersion = 1;

std::string CrcLine(std::string_view lines) { return fmt::format("crc {:08x}\n", Crc32c(lines)); }

// Takes the first line off the text; returns it without its end.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

Result<KeyspaceEngines> ReadKeyspaceFile(FileSystem& files, const std::string& directory) {
  const auto names = files.List(directory);
  if (!names) return Fail(names.error());
  if (std::ranges::find(*names, kKeyspaceFile) == names->end()) return KeyspaceEngines();
  const auto text = files.ReadAll(directory + "/" + kKeyspaceFile);
  if (!text) return Fail(text.error());
  const auto bad = [](uint64_t line) {
    return Fail(Code::kCorrupt, "the list of keyspaces is damaged", line);
  };
  std::string_view left = *text;
  std::string_view title = TakeLine(left);
  if (!title.starts_with(kTitle)) return bad(1);
  const auto version = ParseDecimal<uint32_t>(title.substr(kTitle.size()));
  if (!version) return bad(1);
  if (*version > kVersion) {
    const size_t end = text->size() - std::min(text->size(), CrcLine({}).size());
    if (text->substr(end) != CrcLine(std::string_view(*text).substr(0, end))) return bad(1);
    return Fail(Code::kNotSupported, "the list of keyspaces is of a newer version", *version);
  }
  KeyspaceEngines engines;
  for (uint64_t line = 2;; ++line) {
    const size_t at = text->size() - left.size();
    if (left == CrcLine(std::string_view(*text).substr(0, at))) return engines;
    const std::string_view words = TakeLine(left);
    const size_t space = words.find(' ');
    const auto index = ParseDecimal<uint32_t>(words.substr(0, space));
    if (!index || space == std::string_view::npos) return bad(line);
    engines[*index] = words.substr(space + 1);
  }
}

Status WriteKeyspaceFile(FileSystem& files, const std::string& directory,
                         const KeyspaceEngines& engines) {
  std::string text = fmt::format("{}{}\n", kTitle, kVersion);
  for (const auto& [index, engine] : engines) text += fmt::format("{} {}\n", index, engine);
  text += CrcLine(text);
  const std::string path = directory + "/" + kKeyspaceFile;
  const std::string temporary = path + ".tmp";
  const auto file = files.Open(temporary, FileSystem::Mode::kCreate);
  if (!file) return file.error();
  if (const Status s = (*file)->Append(text); !s.ok()) return s;
  if (const Status s = (*file)->Sync(); !s.ok()) return s;
  if (const Status s = files.Rename(temporary, path); !s.ok()) return s;
  return files.SyncDirectory(directory);
}

}  // namespace skep::durable
