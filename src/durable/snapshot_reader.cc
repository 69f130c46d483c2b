#include "durable/snapshot_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace skep::durable {
namespace {

constexpr uint64_t kHeaderBytes = sizeof(SnapshotHeader);
constexpr uint64_t kTrailerBytes = sizeof(SnapshotTrailer);

// The number is in the text because a Status has room for one more only, the file's.
static_assert(kSnapshotVersion == 3);
constexpr const char* kTooNew = "this Skep reads snapshot files up to version 3, the file's is";

Status Damaged(const char* what, uint64_t offset) { return Status(Code::kCorrupt, what, offset); }

// Takes a struct off the front; false if there are too few bytes.
template <typename T>
bool Take(std::string_view* from, T* to) {
  if (from->size() < sizeof(T)) return false;
  std::memcpy(to, from->data(), sizeof(T));
  from->remove_prefix(sizeof(T));
  return true;
}

template <typename T>
Status ReadStruct(File& file, uint64_t offset, T* to) {
  static_assert(std::has_unique_object_representations_v<T>);
  return ReadExactly(file, offset, reinterpret_cast<char*>(to), sizeof(T));
}

bool TakeKeyspace(std::string_view* from, SnapshotKeyspace* keyspace) {
  SnapshotKeyspaceEntry entry;
  if (!Take(from, &entry)) return false;
  if (entry.engine_bytes > kSnapshotEngineBytesMax || entry.engine_bytes > from->size()) {
    return false;
  }
  *keyspace = {.index = entry.index,
               .engine = std::string(from->substr(0, entry.engine_bytes)),
               .version = entry.version,
               .now_ms = entry.now_ms,
               .log_position = entry.log_position,
               .items = entry.items};
  from->remove_prefix(entry.engine_bytes);
  return true;
}

}  // namespace

Result<std::unique_ptr<SnapshotReader>> SnapshotReader::Open(FileSystem& files,
                                                             const std::string& path) {
  auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file) return Fail(file.error());
  std::unique_ptr<SnapshotReader> reader(new SnapshotReader(std::move(*file)));
  if (const Status status = reader->ReadHeader(); !status.ok()) return Fail(status);
  if (const Status status = reader->ReadFooter(); !status.ok()) return Fail(status);
  return reader;
}

SnapshotBlockInfo SnapshotReader::block(size_t i) const {
  SKEP_DCHECK(i < index_.size());
  const SnapshotIndexEntry& entry = index_[i];
  return {.offset = entry.offset,
          .bytes = entry.bytes,
          .raw_bytes = entry.raw_bytes,
          .items = entry.items,
          .keyspace = entry.keyspace};
}

Status SnapshotReader::ReadBlock(size_t i, const SnapshotVisit& visit) const {
  SKEP_CHECK(i < index_.size());
  const SnapshotIndexEntry& entry = index_[i];
  SnapshotBlockHeader header;
  if (const Status status = ReadStruct(*file_, entry.offset, &header); !status.ok()) return status;
  const bool is_as_indexed =
      header.crc == entry.crc && IsBlockHeader(header, entry.offset, entry.offset + entry.bytes) &&
      sizeof(header) + header.stored_bytes == entry.bytes && header.raw_bytes == entry.raw_bytes &&
      header.items == entry.items && header.keyspace == entry.keyspace;
  if (!is_as_indexed) {
    return Damaged("the header of a block of a snapshot file is damaged", entry.offset);
  }
  const Result<std::string> raw = ReadBlockItems(*file_, entry.offset, header);
  if (!raw) return raw.error();
  return VisitItems(*raw, header, entry.offset, visit);
}

Status SnapshotReader::ReadHeader() {
  const Result<uint64_t> size = file_->Size();
  if (!size) return size.error();
  file_bytes_ = *size;
  if (file_bytes_ < kHeaderBytes) return Damaged("too short for a snapshot file", 0);
  SnapshotHeader header;
  if (const Status status = ReadStruct(*file_, 0, &header); !status.ok()) return status;
  if (header.magic != kSnapshotMagic) return Damaged("not a snapshot file", 0);
  if (header.crc != Crc32c(BytesOf(header).substr(0, offsetof(SnapshotHeader, crc)))) {
    return Damaged("the header of a snapshot file is damaged", 0);
  }
  if (header.version > kSnapshotVersion) {
    return Status(Code::kNotSupported, kTooNew, header.version);
  }
  if (header.version == 0) return Damaged("the header of a snapshot file is malformed", 0);
  version_ = header.version;
  created_ms_ = header.created_ms;
  return {};
}

Status SnapshotReader::ReadFooter() {
  if (file_bytes_ < kHeaderBytes + kTrailerBytes) {
    return Damaged("a snapshot file ends too early", file_bytes_);
  }
  const uint64_t end = file_bytes_ - kTrailerBytes;
  SnapshotTrailer trailer;
  if (const Status status = ReadStruct(*file_, end, &trailer); !status.ok()) return status;
  const std::string_view checked = BytesOf(trailer).substr(0, offsetof(SnapshotTrailer, crc));
  if (trailer.magic != kSnapshotTrailerMagic || trailer.crc != CrcAt(end, checked) ||
      trailer.footer_offset < kHeaderBytes || trailer.footer_offset > end) {
    return Damaged("a snapshot file has no end: it is cut off or damaged", end);
  }
  std::string footer(end - trailer.footer_offset, '\0');
  const Status status = ReadExactly(*file_, trailer.footer_offset, footer.data(), footer.size());
  if (!status.ok()) return status;
  if (CrcAt(trailer.footer_offset, footer) != trailer.footer_crc) {
    return Damaged("the footer of a snapshot file is damaged", trailer.footer_offset);
  }
  return ParseFooter(trailer.footer_offset, footer);
}

Status SnapshotReader::ParseFooter(uint64_t offset, std::string_view footer) {
  const Status malformed = Damaged("the footer of a snapshot file is malformed", offset);
  SnapshotFooterHead head;
  if (!Take(&footer, &head) || head.magic != kSnapshotFooterMagic) return malformed;
  for (uint32_t i = 0; i < head.keyspaces; ++i) {
    SnapshotKeyspace keyspace;
    if (!TakeKeyspace(&footer, &keyspace)) return malformed;
    if (i > 0 && keyspace.index <= keyspaces_.back().index) return malformed;
    keyspaces_.push_back(std::move(keyspace));
  }
  if (footer.size() % sizeof(SnapshotIndexEntry) != 0 ||
      footer.size() / sizeof(SnapshotIndexEntry) != head.blocks) {
    return malformed;
  }
  index_.resize(head.blocks);
  for (SnapshotIndexEntry& entry : index_) Take(&footer, &entry);
  items_ = head.items;
  raw_bytes_ = head.raw_bytes;
  return CheckIndex(offset);
}

// The blocks lie side by side up to the footer, and are of keyspaces that have as many items.
Status SnapshotReader::CheckIndex(uint64_t footer_offset) const {
  const Status malformed = Damaged("the index of a snapshot file is malformed", footer_offset);
  std::vector<uint64_t> items(keyspaces_.size());
  uint64_t offset = kHeaderBytes;
  uint64_t raw_bytes = 0;
  for (const SnapshotIndexEntry& entry : index_) {
    if (entry.offset != offset || entry.bytes < sizeof(SnapshotBlockHeader) ||
        entry.bytes > footer_offset - offset) {
      return malformed;
    }
    const auto at =
        std::ranges::lower_bound(keyspaces_, entry.keyspace, {}, &SnapshotKeyspace::index);
    if (at == keyspaces_.end() || at->index != entry.keyspace) return malformed;
    items[static_cast<size_t>(at - keyspaces_.begin())] += entry.items;
    raw_bytes += entry.raw_bytes;
    offset += entry.bytes;
  }
  uint64_t all_items = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i] != keyspaces_[i].items) return malformed;
    all_items += items[i];
  }
  const bool adds_up = offset == footer_offset && raw_bytes == raw_bytes_ && all_items == items_;
  return adds_up ? Status() : malformed;
}

}  // namespace skep::durable
