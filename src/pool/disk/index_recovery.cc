#include "pool/disk/index_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "base/varint.h"
#include "durable/log_reader.h"
#include "pool/fields.h"
#include "pool/state_receiver.h"

namespace skep::pool {
namespace {

using durable::LogReader;
using durable::LogRecord;
using durable::RecordType;
using Kind = IndexLog::Kind;

constexpr Status kBad(Code::kCorrupt, "a record of the log is not what it should be");
constexpr rma::PeerId kPeer = 1;  // of the receiver: pieces come from the log alone

// Where the last whole state lies.
struct Outline {
  std::vector<uint32_t> owners;
  std::optional<uint64_t> state;  // from where on it is to be read
  std::optional<uint64_t> begun;  // the same of one that is not whole
  uint64_t end = 0;

  Status Take(const LogRecord& record, Kind kind, std::string_view bytes) {
    if (kind == Kind::kStateBegin) begun = record.position;
    if (kind == Kind::kStateSince) {
      StateSince since;
      if (!since.DecodeFrom(bytes)) return kBad;
      begun = since.position;
      // They may stand nowhere else any more.
      for (const uint32_t owner : since.owners) AddOwner(owner);
    }
    // Of a state whose first pieces were dropped with the segment that had them, the rest is left.
    if (kind == Kind::kStateEnd && begun) state = std::exchange(begun, std::nullopt);
    return kind == Kind::kOwner ? TakeOwner(bytes) : Status();
  }
  Status TakeOwner(std::string_view bytes) {
    uint32_t server = 0;
    if (!TakeNumber(bytes, &server) || server == 0 || bytes.size() != 1) return kBad;
    if (bytes[0] == 0) {
      owners.clear();
      state.reset();
      begun.reset();
    }
    AddOwner(server);
    return {};
  }
  void AddOwner(uint32_t server) {
    if (std::ranges::find(owners, server) == owners.end()) owners.push_back(server);
  }
};

class Recovery {
 public:
  Recovery(FileSystem& files, const std::string& directory, uint64_t end,
           const std::function<std::unique_ptr<Engine>()>& make_tree, std::string* problem)
      : files_(files), directory_(directory), end_(end), make_tree_(make_tree), problem_(problem) {}

  Result<RecoveredLog> Run();

 private:
  using Visit = std::function<Status(const LogRecord&, Kind, std::string_view)>;
  Result<uint64_t> Read(uint64_t position, const Visit& visit);
  Status TakeRecord(Kind kind, std::string_view bytes);
  Status TakePiece(std::string_view bytes);
  Status TakeEntries(std::string_view bytes);
  Status Apply(const LogBatch& entries);

  FileSystem& files_;
  const std::string& directory_;
  const uint64_t end_;
  const std::function<std::unique_ptr<Engine>()>& make_tree_;
  std::optional<StateReceiver> receiver_;  // of the state that has begun
  std::string* const problem_;
  FoundState found_;
  std::deque<LogBatch> early_;  // entries that came before their state was whole
  std::vector<CommitVerdict> verdicts_;
};

// What LogRecord::type does not say: the log is one of a pool.
Status CheckType(const LogRecord& record) {
  std::string_view payload = record.payload.substr(1);
  uint64_t version = 0;
  switch (record.type) {
    case RecordType::kStart:
      if (!TakeVarint(payload, &version)) return kBad;
      if (version <= durable::kLogVersion) return {};
      return {Code::kInvalidArgument, "the log is of a newer format", version};
    case RecordType::kChanges:
      return {Code::kInvalidArgument, "the directory is that of a server, not of a pool"};
    case RecordType::kPool:
      return payload.empty() ? kBad : Status();
    default:
      return {};
  }
}

// Returns the position behind the last record.
Result<uint64_t> Recovery::Read(uint64_t position, const Visit& visit) {
  auto reader = LogReader::Open(files_, directory_, position);
  if (!reader) return Fail(reader.error());
  const auto fail = [&](const Status& status) {
    *problem_ = fmt::format("{}: {}", (*reader)->file(), status.ToString());
    return Fail(status);
  };
  while (true) {
    const auto record = (*reader)->Next();
    if (!record) return fail(record.error());
    if (!*record) return (*reader)->position();
    if ((*record)->position >= end_) return end_;
    Status status = CheckType(**record);
    if (status.ok() && (*record)->type == RecordType::kPool) {
      const std::string_view payload = (*record)->payload;
      status = visit(**record, static_cast<Kind>(payload[1]), payload.substr(2));
    }
    if (status.ok()) continue;
    *problem_ = fmt::format("{}: the record at position {} of the log: {}", (*reader)->file(),
                            (*record)->position, status.ToString());
    return Fail(status);
  }
}

Result<RecoveredLog> Recovery::Run() {
  const auto files = durable::ListStoreFiles(files_, directory_);
  if (!files) {
    *problem_ = fmt::format("{}: {}", directory_, files.error().ToString());
    return Fail(files.error());
  }
  Outline outline;
  if (!files->segments.empty()) {
    const auto end = Read(files->segments.front().begin,
                          [&](const auto& record, Kind kind, std::string_view bytes) {
                            return outline.Take(record, kind, bytes);
                          });
    if (!end) return Fail(end.error());
    outline.end = *end;
  }
  if (outline.state) {
    const auto end = Read(*outline.state, [this](const auto&, Kind kind, std::string_view bytes) {
      return TakeRecord(kind, bytes);
    });
    if (!end) return Fail(end.error());
  }
  found_.owners = std::move(outline.owners);
  return RecoveredLog{.found = std::move(found_), .end = outline.end};
}

Status Recovery::TakeRecord(Kind kind, std::string_view bytes) {
  StateSince since;
  switch (kind) {
    case Kind::kOwner:
      return {};
    case Kind::kStateSince:
      if (!since.DecodeFrom(bytes)) return kBad;
      [[fallthrough]];
    case Kind::kStateBegin:
      if (found_.state == nullptr) receiver_.emplace(make_tree_);
      [[fallthrough]];
    case Kind::kState:
    case Kind::kStateEnd:
      // The state is the last whole one: what is behind was never finished.
      return found_.state == nullptr ? TakePiece(bytes) : Status();
    case Kind::kEntries:
      return TakeEntries(bytes);
  }
  return kBad;
}

Status Recovery::TakePiece(std::string_view bytes) {
  // It may be the rest of one that began before.
  if (!receiver_) return {};
  const StateReceiver::Result result = receiver_->Take(kPeer, bytes);
  if (result == StateReceiver::Result::kRefused) return kBad;
  if (result != StateReceiver::Result::kWhole) return {};
  ReceivedState received = receiver_->TakeState();
  found_.state = std::make_unique<IndexState>(received.keys);
  found_.state->Resume(std::move(received.sessions), std::move(received.chunks), received.applied,
                       received.next_client);
  found_.tree = std::move(received.tree);
  found_.state->set_tree(found_.tree.get(), true);
  for (; !early_.empty(); early_.pop_front()) {
    if (const Status s = Apply(early_.front()); !s.ok()) return s;
  }
  return {};
}

Status Recovery::TakeEntries(std::string_view bytes) {
  LogBatch entries;
  if (!LogBatch::Decode(bytes, &entries) || !bytes.empty() || entries.empty()) return kBad;
  if (found_.state != nullptr) return Apply(entries);
  early_.push_back(std::move(entries));
  return {};
}

// A state has whole batches.
Status Recovery::Apply(const LogBatch& entries) {
  if (entries.end_index() <= found_.state->applied() + 1) return {};
  if (entries.first_index() != found_.state->applied() + 1) {
    return {Code::kCorrupt, "entries of the log are missing", found_.state->applied() + 1};
  }
  verdicts_.clear();
  found_.state->Apply(entries, &verdicts_);
  return {};
}

}  // namespace

void StateSince::EncodeTo(std::string& to) const {
  AppendVarint(to, position);
  AppendVarint(to, owners.size());
  for (const uint32_t owner : owners) AppendVarint(to, owner);
}

bool StateSince::DecodeFrom(std::string_view& from) {
  uint64_t count = 0;
  if (!TakeVarint(from, &position) || !TakeVarint(from, &count) || count > from.size()) {
    return false;
  }
  owners.resize(count);
  return std::ranges::all_of(owners, [&](uint32_t& owner) { return TakeNumber(from, &owner); });
}

Result<RecoveredLog> RecoverIndexLog(FileSystem& files, const std::string& directory, uint64_t end,
                                     const std::function<std::unique_ptr<Engine>()>& make_tree,
                                     std::string* problem) {
  return Recovery(files, directory, end, make_tree, problem).Run();
}

}  // namespace skep::pool
