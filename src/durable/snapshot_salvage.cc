#include "durable/snapshot_salvage.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "durable/snapshot_block.h"
#include "durable/snapshot_reader.h"

namespace skep::durable {
namespace {

constexpr size_t kSearchBytes = 256 * 1024;

bool IsDamage(Status status) { return status.code() == Code::kCorrupt; }

uint64_t BytesOfBlock(const SnapshotBlockHeader& header) {
  return sizeof(header) + header.stored_bytes;
}

}  // namespace

class SnapshotSalvager {
 public:
  SnapshotSalvager(std::unique_ptr<File> file, const SalvageVisit& visit)
      : reader_(std::move(file)), visit_(visit) {}

  Result<SnapshotSalvage> Run() {
    if (const Status status = ReadEnds(); !status.ok()) return Fail(status);
    const Status status = found_.has_footer ? ReadIndexed() : Walk();
    if (!status.ok()) return Fail(status);
    return std::move(found_);
  }

 private:
  File& file() { return *reader_.file_; }
  uint64_t file_bytes() const { return reader_.file_bytes_; }

  Status ReadEnds() {
    const Status header = reader_.ReadHeader();
    if (!header.ok() && !IsDamage(header)) return header;
    found_.has_header = header.ok();
    found_.created_ms = reader_.created_ms_;
    if (!header.ok()) Lose(0, std::min<uint64_t>(file_bytes(), sizeof(SnapshotHeader)));

    const Status footer = reader_.ReadFooter();
    if (!footer.ok() && !IsDamage(footer)) return footer;
    found_.has_footer = footer.ok();
    if (footer.ok()) found_.keyspaces = reader_.keyspaces_;
    return {};
  }

  Status ReadIndexed() {
    for (const SnapshotIndexEntry& entry : reader_.index_) {
      const Result<SnapshotBlockHeader> header = ReadBlockHeader(entry.offset);
      if (!header && !IsDamage(header.error())) return header.error();
      if (!header || header->crc != entry.crc) {
        Lose(entry.offset, entry.bytes);
      } else if (const Status status = TakeBlock(entry.offset, *header); !status.ok()) {
        return status;
      }
    }
    return {};
  }

  Status Walk() {
    for (uint64_t offset = sizeof(SnapshotHeader); offset < file_bytes();) {
      const Result<SnapshotBlockHeader> header = ReadBlockHeader(offset);
      if (header) {
        if (const Status status = TakeBlock(offset, *header); !status.ok()) return status;
        offset += BytesOfBlock(*header);
      } else if (IsDamage(header.error())) {
        const Result<uint64_t> next = FindHeader(offset + 1);
        if (!next) return next.error();
        Lose(offset, *next - offset);
        offset = *next;
      } else {
        return header.error();
      }
    }
    if (found_.lost.empty()) found_.lost.push_back({.offset = file_bytes(), .bytes = 0});
    return {};
  }

  Result<SnapshotBlockHeader> ReadBlockHeader(uint64_t offset) {
    SnapshotBlockHeader header;
    const Status status =
        ReadExactly(file(), offset, reinterpret_cast<char*>(&header), sizeof(header));
    if (!status.ok()) return Fail(status);
    if (!IsBlockHeader(header, offset, file_bytes())) {
      return Fail(Code::kCorrupt, "no header of a block", offset);
    }
    return header;
  }

  // Visits all items of a block, or notes that it is lost. Its header is good, so its end is known,
  // and no bytes inside the block are taken for another one.
  Status TakeBlock(uint64_t offset, const SnapshotBlockHeader& header) {
    const Result<std::string> raw = ReadBlockItems(file(), offset, header);
    if (!raw && !IsDamage(raw.error())) return raw.error();
    const auto look = [](const SnapshotItem&) { return Status(); };
    if (!raw || !VisitItems(*raw, header, offset, look).ok()) {
      Lose(offset, BytesOfBlock(header));
      return {};
    }
    ++found_.blocks;
    found_.items += header.items;
    return VisitItems(*raw, header, offset,
                      [&](const SnapshotItem& item) { return visit_(header.keyspace, item); });
  }

  // Returns the offset of the next header of a block, from `offset` on; the end of the file if
  // there is none.
  Result<uint64_t> FindHeader(uint64_t offset) {
    const std::string_view magic = BytesOf(kSnapshotBlockMagic);
    std::string window;
    while (offset < file_bytes()) {
      window.resize(std::min<uint64_t>(kSearchBytes, file_bytes() - offset));
      const Status status = ReadExactly(file(), offset, window.data(), window.size());
      if (!status.ok()) return Fail(status);
      for (size_t at = window.find(magic); at != window.npos; at = window.find(magic, at + 1)) {
        const Result<SnapshotBlockHeader> header = ReadBlockHeader(offset + at);
        if (header) return offset + at;
        if (!IsDamage(header.error())) return Fail(header.error());
      }
      if (window.size() < kSearchBytes) break;
      offset += window.size() - (magic.size() - 1);
    }
    return file_bytes();
  }

  void Lose(uint64_t offset, uint64_t bytes) {
    if (bytes == 0) return;
    auto& lost = found_.lost;
    if (!lost.empty() && lost.back().offset + lost.back().bytes == offset) {
      lost.back().bytes += bytes;
    } else {
      lost.push_back({.offset = offset, .bytes = bytes});
    }
  }

  SnapshotReader reader_;
  const SalvageVisit& visit_;
  SnapshotSalvage found_;
};

Result<SnapshotSalvage> SalvageBlocks(FileSystem& files, const std::string& path,
                                      const SalvageVisit& visit) {
  auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file) return Fail(file.error());
  return SnapshotSalvager(std::move(*file), visit).Run();
}

}  // namespace skep::durable
