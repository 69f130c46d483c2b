#include "netindex/leaves/leaf_reader.h"

#include <algorithm>
#include <cstring>

#include "base/prefetch.h"
#include "btree/page_table.h"
#include "skep/options.h"

namespace skep::leaves {
namespace {

using btree::Link;
using btree::NodeHeader;
using btree::NodeWord;
using Row = btree::PageTable::Entry;

constexpr uint32_t kVersionAt = kFrontBytes + offsetof(NodeHeader, version);
constexpr uint32_t kWordAt = kFrontBytes + offsetof(NodeHeader, word);
constexpr uint32_t kGatesAt = offsetof(LeafBoard, released);
constexpr uint32_t kFormAt = kFrontBytes + btree::heads::kFormAt;

}  // namespace

bool LeafReader::Open() {
  memory_.Clear();
  const std::byte* const board = Add(kBoardRegion, 0, sizeof(LeafBoard));
  if (board == nullptr || !Run()) return false;
  instance_ = LoadAt<uint64_t>(board + offsetof(LeafBoard, instance));
  node_bytes_ = LoadAt<uint32_t>(board + offsetof(LeafBoard, node_bytes));
  return LoadAt<uint64_t>(board) == LeafBoard::kMagic &&
         LoadAt<uint32_t>(board + offsetof(LeafBoard, layout)) ==
             static_cast<uint32_t>(NodeLayout::kHeads) &&
         btree::Geometry{.node_bytes = node_bytes_}.IsValid();
}

bool LeafReader::Read(std::span<LeafQuestion> questions) {
  memory_.Clear();
  bool is_there = true;
  for (size_t at = 0; at < questions.size() && is_there; at += kSideBySide) {
    is_there = ReadSome(questions.subspan(at, std::min(kSideBySide, questions.size() - at)));
  }
  if (!is_there) {
    for (LeafQuestion& question : questions) question.finding = Finding::kAsk;
  }
  for (const LeafQuestion& question : questions) {
    ++(question.finding == Finding::kAsk ? statistics_.asked : statistics_.answered);
  }
  return is_there;
}

bool LeafReader::ReadSome(std::span<LeafQuestion> questions) {
  for (LeafQuestion& question : questions) question.finding = Finding::kStale;
  for (uint32_t i = 0; i < kTriesMax; ++i) {
    tries_.clear();
    tries_.reserve(questions.size());
    for (LeafQuestion& question : questions) {
      if (question.finding == Finding::kStale) tries_.push_back({.question = &question});
    }
    if (tries_.empty()) return true;
    statistics_.tries += tries_.size();
    if (!TryAll(tries_)) return false;
  }
  for (LeafQuestion& question : questions) {
    if (question.finding == Finding::kStale) question.finding = Finding::kAsk;
  }
  return true;
}

// False: the peer is gone.
bool LeafReader::TryAll(Tries& tries) {
  // Nodes of a detached subtree may have no mark as long as the lower count is not zero.
  const auto has_unmarked = [this] { return static_cast<uint32_t>(gates_.detached) != 0; };
  if (has_unmarked() && !ReadBoard()) return false;
  if (has_unmarked()) {
    std::ranges::for_each(tries, Ask);
    return true;
  }
  return Locate(tries) && ReadHeads(tries) && ReadPieces(tries) && Check(tries);
}

bool LeafReader::ReadBoard() {
  const std::byte* const gates = Add(kBoardRegion, kGatesAt, sizeof(Gates));
  if (gates == nullptr || !Run()) return false;
  gates_ = LoadAt<Gates>(gates);
  return true;
}

// The server's answer is right whatever has been read.
void LeafReader::Ask(Try& t) {
  t.question->finding = Finding::kAsk;
  t.stage = Try::Stage::kOver;
}

// The next try learns the place anew.
void LeafReader::Fail(Try& t) {
  t.place->row = 0;
  t.stage = Try::Stage::kOver;
}

// Null: no row can have this link.
LeafReader::Place* LeafReader::PlaceOf(uint64_t link) {
  const uint64_t lid = Link{link}.lid();
  const uint64_t lids = endpoint_.RegionBytes(peer_, kRowRegion) / sizeof(uint64_t);
  if (lid == 0 || lid >= lids) return nullptr;
  if (lid / kPlacesTogether >= places_.size()) places_.resize(lid / kPlacesTogether + 1);
  auto& together = places_[lid / kPlacesTogether];
  if (together == nullptr) together = std::make_unique<Place[]>(kPlacesTogether);
  return &together[lid % kPlacesTogether];
}

// Whether the place is of the question's link.
bool LeafReader::HasRow(const Try& t) {
  const Row row{t.place->row};
  return row.generation() == Link{t.question->link}.generation() && row.buffer();
}

bool LeafReader::Locate(Tries& tries) {
  for (Try& t : tries) {
    t.place = PlaceOf(t.question->link);
    FetchLine(t.place);  // the misses of all places overlap
  }
  bool are_known = true;
  for (Try& t : tries) {
    if (t.place == nullptr) {
      Ask(t);
    } else if (!HasRow(t)) {
      t.row = Add(kRowRegion, Link{t.question->link}.lid() * sizeof(uint64_t), sizeof(uint64_t));
      are_known = false;
    }
  }
  return are_known || (Run() && LearnPlaces(tries));
}

// The rows have come. Reads the version and the number of items of each.
bool LeafReader::LearnPlaces(Tries& tries) {
  for (Try& t : tries) {
    if (t.row == nullptr) continue;
    t.place->row = LoadAt<uint64_t>(t.row);
    t.image = HasRow(t) ? AddOfBuffer(*t.place, kSightPiece) : nullptr;
    if (t.image != nullptr) continue;
    t.place->row = 0;
    Ask(t);
  }
  if (!Run()) return false;
  for (Try& t : tries) {
    if (t.row == nullptr || t.stage == Try::Stage::kOver) continue;
    const std::byte* const sight = t.image - kSightPiece.begin;
    t.place->version = LoadAt<uint64_t>(sight + kVersionAt);
    t.place->items = LoadAt<btree::heads::Form>(sight + kFormAt).count;
  }
  return true;
}

// Step 1.
bool LeafReader::ReadHeads(Tries& tries) {
  for (Try& t : tries) {
    if (t.stage == Try::Stage::kOver) continue;
    t.image = AddOfBuffer(*t.place, HeadPiece(t.place->items));
    if (t.image == nullptr) Fail(t);
  }
  if (!Run()) return false;
  for (Try& t : tries) {
    if (t.stage != Try::Stage::kOver) TakeHead(t);
  }
  return true;
}

void LeafReader::TakeHead(Try& t) {
  const LeafHead head(t.image, t.place->items);
  if (!head.is_valid()) return Fail(t);
  t.word = head.word();
  t.is_log_sure = head.log_items() == 0;
  if (t.question->is_scan) {
    t.stage = Try::Stage::kWhole;
    return;
  }
  t.spot.emplace(head, t.question->key);
  if (t.spot->verdict() == Finding::kAsk) return Ask(t);
  if (t.spot->verdict() == Finding::kWhole) t.stage = Try::Stage::kWhole;
}

// Step 2. A spot may lead elsewhere once, as the log's words were older than the leaf's, and then
// to the whole leaf.
bool LeafReader::ReadPieces(Tries& tries) {
  const auto is_unread = [](const Try& t) {
    return t.stage == Try::Stage::kSpot || t.stage == Try::Stage::kWhole;
  };
  while (std::ranges::any_of(tries, is_unread)) {
    for (Try& t : tries) {
      if (is_unread(t)) AskForPieces(t);
    }
    if (!Run()) return false;
    for (Try& t : tries) {
      if (is_unread(t)) t.stage == Try::Stage::kWhole ? TakeWhole(t) : TakePieces(t);
    }
  }
  return true;
}

void LeafReader::AskForPieces(Try& t) {
  if (t.stage == Try::Stage::kWhole) {
    t.image = AddOfBuffer(*t.place, LeafHead(t.image, t.place->items).whole());
    if (t.image == nullptr) Fail(t);
    return;
  }
  const auto pieces = t.spot->pieces();
  for (size_t i = 0; i < pieces.size(); ++i) {
    t.pieces[i] = AddOfBuffer(*t.place, pieces[i]);
    if (t.pieces[i] == nullptr) return Fail(t);
  }
  if (!t.is_log_sure) t.log = AddOfBuffer(*t.place, kLogPiece);
}

void LeafReader::TakePieces(Try& t) {
  if (!t.is_log_sure && !t.spot->AgreesWith(t.log)) return TakeLog(t);
  t.found = t.spot->Look(t.pieces, &t.question->value, &t.delta);
  t.stage = t.found == Finding::kWhole ? Try::Stage::kWhole : Try::Stage::kRead;
}

// Puts the log's words, which are complete for the head's word, in place of the head's.
void LeafReader::TakeLog(Try& t) {
  std::memcpy(t.image, t.log, kLogPiece.bytes());
  std::memcpy(t.image + kWordAt, &t.word, sizeof(t.word));
  t.is_log_sure = true;
  const LeafHead head(t.image, t.place->items);
  if (!head.is_valid()) return Fail(t);
  t.spot.emplace(head, t.question->key);
  if (t.spot->verdict() == Finding::kAsk) return Ask(t);
  if (t.spot->verdict() == Finding::kWhole) t.stage = Try::Stage::kWhole;
}

void LeafReader::TakeWhole(Try& t) const {
  LeafQuestion& q = *t.question;
  const WholeLeaf leaf(t.image, t.word, t.place->version, node_bytes_);
  if (!leaf.is_valid()) return Fail(t);
  t.found = q.is_scan ? leaf.Scan(q.key, q.hi, q.items_max, &q.items, &q.bound)
                      : leaf.Get(q.key, &q.value, &t.delta);
  if (q.is_scan) t.delta = leaf.newest_delta();
  t.stage = Try::Stage::kRead;
}

// Step 3.
bool LeafReader::Check(Tries& tries) {
  for (Try& t : tries) {
    if (t.stage != Try::Stage::kRead) continue;
    t.version = AddOfBuffer(*t.place, {kVersionAt, kVersionAt + sizeof(Version)});
    t.row = Add(kRowRegion, Link{t.question->link}.lid() * sizeof(uint64_t), sizeof(uint64_t));
  }
  const Gates before = gates_;
  if (!ReadBoard()) return false;
  for (Try& t : tries) {
    if (t.stage == Try::Stage::kRead) Conclude(t, before);
  }
  return true;
}

void LeafReader::Conclude(Try& t, const Gates& before) {
  const bool is_same =
      LoadAt<uint64_t>(t.row) == t.place->row && LoadAt<Version>(t.version) == t.place->version;
  if (!is_same) return Fail(t);
  if (gates_.detached != before.detached) return;
  // The leaf does not have the key: the link is stale.
  if (t.found == Finding::kStale || t.found == Finding::kAsk) return Ask(t);
  Answer(t);
}

void LeafReader::Answer(Try& t) {
  t.question->version = t.place->version + t.delta;
  const Version gate = gates_.syncs != 0 ? gates_.synced : gates_.released;
  if (t.question->version > gate) {
    ++statistics_.unreleased;
    return Ask(t);
  }
  t.question->finding = t.found;
}

// Reads the bytes with the next Run. Null: the peer does not have them.
std::byte* LeafReader::Add(uint32_t region, uint64_t offset, uint32_t bytes) {
  const uint64_t there = endpoint_.RegionBytes(peer_, region);
  if (bytes > there || offset > there - bytes) return nullptr;
  std::byte* const to = memory_.Allocate(bytes);
  operations_.push_back({.kind = rma::Operation::Kind::kRead,
                         .region = region,
                         .offset = offset,
                         .bytes = bytes,
                         .local = to});
  return to;
}

std::byte* LeafReader::AddOfBuffer(const Place& place, Piece piece) {
  if (piece.end > btree::Geometry::kBufferBytesMax) return nullptr;
  const ArenaAddress at = Row{place.row}.buffer();
  return Add(kFirstArenaRegion + at.region(), at.offset() + piece.begin, piece.bytes());
}

// One round trip: the reads that were added. False: the connection has ended.
bool LeafReader::Run() {
  if (operations_.empty()) return true;
  ++statistics_.posts;
  statistics_.reads += operations_.size();
  for (const rma::Operation& operation : operations_) statistics_.bytes += operation.bytes;
  endpoint_.Post(peer_, ++token_, operations_);
  operations_.clear();
  while (true) {
    const auto events = endpoint_.Poll(timeout_ms_);
    const rma::Event* done = nullptr;
    for (const rma::Event& event : events) {
      has_left_ |= event.kind == rma::Event::Kind::kLeft && event.peer == peer_;
      if (event.kind == rma::Event::Kind::kDone && event.token == token_) done = &event;
    }
    if (done != nullptr) return done->status.ok();
    // The reads end with the connection; until then their memory may be written.
    if (events.empty()) endpoint_.Disconnect(peer_);
  }
}

}  // namespace skep::leaves
