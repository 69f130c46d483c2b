#include "durable/snapshot_writer.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/check.h"

namespace skep::durable {
namespace {

constexpr uint64_t kSyncEvery = uint64_t{8} << 20;

std::string UnfinishedPath(const std::string& path) { return path + ".tmp"; }

std::string DirectoryOf(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  return directory.empty() ? "." : directory;
}

// Sorts the keyspaces, and sets how many items each has.
Status CountItems(const std::vector<SnapshotIndexEntry>& index,
                  std::vector<SnapshotKeyspace>& keyspaces) {
  std::ranges::sort(keyspaces, {}, &SnapshotKeyspace::index);
  std::map<uint32_t, SnapshotKeyspace*> by_index;
  for (SnapshotKeyspace& keyspace : keyspaces) {
    if (keyspace.engine.size() > kSnapshotEngineBytesMax) {
      return Status(Code::kInvalidArgument, "the name of a keyspace's engine is too long");
    }
    if (!by_index.emplace(keyspace.index, &keyspace).second) {
      return Status(Code::kInvalidArgument, "a keyspace is there twice", keyspace.index);
    }
    keyspace.items = 0;
  }
  for (const SnapshotIndexEntry& block : index) {
    const auto found = by_index.find(block.keyspace);
    if (found == by_index.end()) {
      return Status(Code::kInvalidArgument, "a keyspace with items is missing", block.keyspace);
    }
    found->second->items += block.items;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<SnapshotWriter>> SnapshotWriter::Create(FileSystem& files,
                                                               const std::string& path,
                                                               uint64_t created_ms) {
  auto file = files.Open(UnfinishedPath(path), FileSystem::Mode::kCreate);
  if (!file) return Fail(file.error());
  std::unique_ptr<SnapshotWriter> writer(new SnapshotWriter(files, path, std::move(*file)));
  SnapshotHeader header = {
      .magic = kSnapshotMagic, .created_ms = created_ms, .version = kSnapshotVersion, .crc = 0};
  header.crc = Crc32c(BytesOf(header).substr(0, offsetof(SnapshotHeader, crc)));
  if (const Status status = writer->Append(BytesOf(header)); !status.ok()) return Fail(status);
  return writer;
}

SnapshotWriter::SnapshotWriter(FileSystem& files, const std::string& path,
                               std::unique_ptr<File> file)
    : files_(files), path_(path), file_(std::move(file)) {}

SnapshotWriter::~SnapshotWriter() { Abandon(); }

Status SnapshotWriter::Add(uint32_t keyspace, std::string_view key, std::string_view value,
                           uint64_t deadline_ms, uint8_t type) {
  if (!status_.ok()) return status_;
  SKEP_CHECK(file_ != nullptr);
  if (key.size() > kSnapshotKeyBytesMax) {
    return Ended(Status(Code::kTooLarge, "a key is too long for a snapshot", kSnapshotKeyBytesMax));
  }
  if (value.size() > kSnapshotValueBytesMax) {
    return Ended(
        Status(Code::kTooLarge, "a value is too long for a snapshot", kSnapshotValueBytesMax));
  }
  if (keyspace != keyspace_ || !builder_.HasRoom(key.size(), value.size())) {
    if (const Status status = FlushBlock(); !status.ok()) return Ended(status);
    keyspace_ = keyspace;
  }
  builder_.Add({.key = key, .value = value, .deadline_ms = deadline_ms, .type = type});
  return {};
}

Status SnapshotWriter::Finish(std::vector<SnapshotKeyspace> keyspaces) {
  if (!status_.ok()) return status_;
  SKEP_CHECK(file_ != nullptr);
  if (const Status status = FlushBlock(); !status.ok()) return Ended(status);
  if (const Status status = CountItems(index_, keyspaces); !status.ok()) return Ended(status);
  if (const Status status = WriteFooter(keyspaces); !status.ok()) return Ended(status);
  return Ended(Publish());
}

void SnapshotWriter::Abandon() {
  if (file_ == nullptr) return;
  file_ = nullptr;
  // If the removal fails the next writer of this path empties the file.
  static_cast<void>(files_.Remove(UnfinishedPath(path_)));
}

Status SnapshotWriter::Append(std::string_view bytes) {
  const Status status = file_->Append(bytes);
  if (status.ok()) bytes_ += bytes.size();
  return status;
}

// The file is synced a piece at a time: a sync of the log may have to wait for all that the file
// system has to write, and must not find much.
Status SnapshotWriter::FlushBlock() {
  if (builder_.empty()) return {};
  encoder_.Encode(builder_, keyspace_, &block_);
  index_.push_back({.offset = bytes_,
                    .bytes = block_.size(),
                    .raw_bytes = static_cast<uint32_t>(builder_.raw().size()),
                    .items = builder_.items(),
                    .keyspace = keyspace_,
                    .crc = SealBlock(bytes_, &block_)});
  builder_.Clear();
  if (const Status status = Append(block_); !status.ok()) return status;
  if (bytes_ - synced_ < kSyncEvery) return {};
  synced_ = bytes_;
  return file_->Sync();
}

Status SnapshotWriter::WriteFooter(std::vector<SnapshotKeyspace>& keyspaces) {
  SnapshotFooterHead head = {.magic = kSnapshotFooterMagic,
                             .keyspaces = static_cast<uint32_t>(keyspaces.size()),
                             .blocks = index_.size(),
                             .items = 0,
                             .raw_bytes = 0};
  std::string rest;
  for (const SnapshotKeyspace& keyspace : keyspaces) {
    rest += BytesOf(SnapshotKeyspaceEntry{
        .index = keyspace.index,
        .engine_bytes = static_cast<uint32_t>(keyspace.engine.size()),
        .version = keyspace.version,
        .now_ms = keyspace.now_ms,
        .log_position = keyspace.log_position,
        .items = keyspace.items,
    });
    rest += keyspace.engine;
    head.items += keyspace.items;
  }
  for (const SnapshotIndexEntry& block : index_) {
    rest += BytesOf(block);
    head.raw_bytes += block.raw_bytes;
  }
  std::string footer = std::string(BytesOf(head)) + rest;
  SnapshotTrailer trailer = {.footer_offset = bytes_,
                             .footer_crc = CrcAt(bytes_, footer),
                             .crc = 0,
                             .magic = kSnapshotTrailerMagic};
  trailer.crc =
      CrcAt(bytes_ + footer.size(), BytesOf(trailer).substr(0, offsetof(SnapshotTrailer, crc)));
  footer += BytesOf(trailer);
  return Append(footer);
}

// The bytes are durable before the name is, so that whoever finds the name finds the bytes.
Status SnapshotWriter::Publish() {
  if (const Status status = file_->Sync(); !status.ok()) return status;
  if (const Status status = files_.Rename(UnfinishedPath(path_), path_); !status.ok()) {
    return status;
  }
  file_ = nullptr;
  return files_.SyncDirectory(DirectoryOf(path_));
}

Status SnapshotWriter::Ended(Status status) {
  status_ = status;
  Abandon();
  return status;
}

}  // namespace skep::durable
