// leaf_reader.h: reads keys out of the leaves of another process's tree, without that process's
// code (Fat-B+Tree, section III-D, whose clients read nodes by RDMA).
//
//   the client's                                    the server's, over a fabric (rma/fabric.h)
//   key -> link (LID, generation)
//   places: LID -> row, version ------ row ---------> page table: where the LID's buffer is
//                               ------ 1 head ------> buffer: front, header, search line, heads
//                               ------ 2 pieces ----> buffer: the item, or the fences
//                               ------ 3 check -----> buffer: version; row; board
//
// All leaves of a call are read side by side: each step is one Post, and so one round trip. A leaf
// whose place is known takes three; one that is met for the first time five, two of them to learn
// the place (row; sight: version and form). A leaf whose items are not all of one form is read as a
// whole in step 2. The first call reads the board, and so does one after a range was detached.
//
// What the server does (btree/reader.h, structure_change.h, reclaim.h), in this order:
//   G1  A buffer is complete but for its log before its row leads to it. Its version is that of
//       the write that made it, which is drawn after the buffer's memory was taken: no two nodes
//       that an address ever held have the same version.
//   G2  A log item, its place and its tag are written before the word that counts it, and do not
//       change as long as the buffer is a node.
//   G3  A row leads to another buffer, or the node's word is marked as retired, before a write that
//       the buffer does not have can be seen. Only the nodes of a detached subtree are marked late:
//       the board counts a detachment before it can be seen, and the nodes without a mark until
//       they have one.
//   G4  The board's gates are never above those that the server's replies pass.
//
// Why an answer is right. Let T0 be a moment before step 1 at which the reader knew the place
//   (row r, version v), and the board with no node without a mark. Step 3 reads the row, the
//   version and the board; each step begins when the one before is done.
//   (1) The row is r at an instant t of step 3. So the buffer was the newest one of its LID then,
//       with the same generation, and so the same key range. Let X be the node in it.
//   (2) X is the node that the reader knew: the buffer had version v before step 1 and in step 3,
//       and by G1 another node has another version. So all of steps 1 and 2 were reads of X.
//   (3) The word w that step 1 brought is X's at an instant s of step 1. What it counts was
//       complete at s (G2), so step 2, which begins later, reads it whole. Tags and places of step
//       1 may be older than w; where w counts log items step 2 reads these again, and if they lead
//       to other pieces those are read, too.
//   (4) At s, X was the newest buffer of its LID (it still was at t), not retired (w has no mark),
//       and in no detached subtree: the board's count is the one of T0, when all nodes that had
//       been detached were marked. By G3 no write that X does not have could be seen at s.
//   (5) X has the key: the item has it, or the key lies between X's fences.
//   So what w counts is the key's newest state at s, within the call. Replies of the server wait
//   until what they tell is released, and so does this one: its version is at most the gate's of
//   step 3 (with appendfsync always the synced one's), else the reader asks the server, whose reply
//   waits. A scan that begins later reads at the released version or above, so nothing goes back.
//
// Torn and stale bytes. Fabrics read words whole, lines in any order (F1, F2), and steps begin
//   after kDone (F4). Nothing else is assumed, but Capabilities::coherent. Between (1) and (2)
//   there is one gap, as step 3 reads row and version in any order: memory that was freed, given to
//   a value, and given to a node of the same LID again, all within step 3, could show the value's
//   bytes for the version. A reader is wrong then if these 8 bytes happen to be v, and only then.
//
// A reader is no part of the server's epochs (protocol E of versions.h): memory is used again under
//   it. That is what (1) and (2) find out, and until then bytes are only compared with bounds
//   (leaf_image.h).
//
// Progress. No step waits for the server's threads; over a fabric that needs the target's progress
//   it waits for its thread that shares, timeout_ms at most. A try fails if a write moves the leaf,
//   or a range is detached, within it. After kTriesMax tries the reader says kAsk, and whoever
//   asked calls the server: so writers cannot starve it. A reader holds nothing back: no lock, no
//   epoch.
//
// A server that dies. Its memory stays mapped (mem), as it was. The caller looks whether the
//   connection is there after the reads, before it uses what they say (leaf_session.h).
//
// Not thread-safe: one owner, the endpoint's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/leaf_board.h"
#include "netindex/leaves/leaf_image.h"
#include "netindex/leaves/word_memory.h"
#include "rma/fabric.h"
#include "skep/items.h"

namespace skep::leaves {

// The regions of a server that shares its leaves.
inline constexpr uint32_t kBoardRegion = 0;
inline constexpr uint32_t kRowRegion = 1;
inline constexpr uint32_t kFirstArenaRegion = 2;

// A key to be read, or a scan that begins at it.
struct LeafQuestion {
  std::string_view key;
  uint64_t link = 0;  // skep::Hint of the leaf; 0: it is not known
  bool is_scan = false;
  uint32_t items_max = 0;                // of a scan
  const std::string_view* hi = nullptr;  // of a scan; null: no upper bound

  // The answer: kValue, kAbsent, kItems, or kAsk. Its bytes are valid until the next Read.
  Finding finding = Finding::kAsk;
  std::string_view value = {};
  std::vector<Item> items = {};
  std::string_view bound = {};  // of a scan: the key behind the last item; no data: there is none
  Version version = 0;
};

struct LeafReaderStatistics {
  uint64_t answered = 0;
  uint64_t asked = 0;       // questions that were not answered
  uint64_t unreleased = 0;  // those of them whose version was above the gate
  uint64_t tries = 0;       // of questions, the first ones included
  uint64_t posts = 0;       // round trips
  uint64_t reads = 0;
  uint64_t bytes = 0;  // that were read

  LeafReaderStatistics& operator+=(const LeafReaderStatistics& more) {
    answered += more.answered;
    asked += more.asked;
    unreleased += more.unreleased;
    tries += more.tries;
    posts += more.posts;
    reads += more.reads;
    bytes += more.bytes;
    return *this;
  }
};

class LeafReader {
 public:
  static constexpr uint32_t kTriesMax = 4;
  // Questions of one Read are read so many at a time.
  static constexpr size_t kSideBySide = 128;
  static constexpr uint64_t kPlacesTogether = 4096;

  // `endpoint` must outlive the reader, and have joined `peer`.
  LeafReader(rma::Endpoint& endpoint, rma::PeerId peer, int timeout_ms)
      : endpoint_(endpoint), peer_(peer), timeout_ms_(timeout_ms) {}

  // Reads the constants of the board. False: nothing there is a board that this code knows.
  bool Open();
  uint64_t instance() const { return instance_; }

  // Answers what it can. False: the connection has ended, or the peer does not answer; then all of
  // `questions` are kAsk.
  bool Read(std::span<LeafQuestion> questions);

  // Whether the connection has ended, as far as the reads have told.
  bool has_left() const { return has_left_; }
  const LeafReaderStatistics& statistics() const { return statistics_; }

 private:
  struct Place {
    uint64_t row = 0;  // 0: not known
    uint64_t version = 0;
    uint32_t items = 0;
  };
  struct Gates {
    Version released = 0;
    Version synced = 0;
    uint64_t syncs = 0;
    uint64_t detached = UINT64_MAX;  // not known
  };
  // A try of one question.
  struct Try {
    enum class Stage : uint8_t {
      kSpot,   // the spot's pieces are to be read
      kWhole,  // the whole leaf is
      kRead,   // both are behind it: `found` counts if the check says so
      kOver,   // the question has its answer, or the try has failed
    };
    LeafQuestion* question;
    Place* place = nullptr;
    Stage stage = Stage::kSpot;
    std::byte* image = nullptr;  // of the head, then of the whole leaf
    btree::NodeWord word = {};
    std::optional<LeafSpot> spot = {};
    std::array<const std::byte*, LeafSpot::kPiecesMax> pieces = {};  // of the spot
    std::byte* log = nullptr;  // the log's words once more; null: the head's count
    bool is_log_sure = false;  // the head's words of the log are no older than its word
    Finding found = Finding::kStale;
    uint64_t delta = 0;
    const std::byte* row = nullptr;
    const std::byte* version = nullptr;
  };
  using Tries = std::vector<Try>;

  bool ReadSome(std::span<LeafQuestion> questions);
  bool TryAll(Tries& tries);
  bool ReadBoard();

  bool Locate(Tries& tries);
  bool LearnPlaces(Tries& tries);
  bool ReadHeads(Tries& tries);
  bool ReadPieces(Tries& tries);
  bool Check(Tries& tries);

  Place* PlaceOf(uint64_t link);
  static bool HasRow(const Try& t);
  void TakeHead(Try& t);
  void AskForPieces(Try& t);
  static void TakePieces(Try& t);
  static void TakeLog(Try& t);
  void TakeWhole(Try& t) const;
  void Conclude(Try& t, const Gates& before);
  void Answer(Try& t);
  static void Ask(Try& t);
  static void Fail(Try& t);

  std::byte* Add(uint32_t region, uint64_t offset, uint32_t bytes);
  std::byte* AddOfBuffer(const Place& place, Piece piece);
  bool Run();

  rma::Endpoint& endpoint_;
  const rma::PeerId peer_;
  const int timeout_ms_;
  uint64_t instance_ = 0;
  uint32_t node_bytes_ = 0;
  uint64_t token_ = 0;
  bool has_left_ = false;
  Gates gates_;
  std::vector<std::unique_ptr<Place[]>> places_;  // by LID, so many together
  std::vector<rma::Operation> operations_;
  WordMemory memory_;
  Tries tries_;
  LeafReaderStatistics statistics_;
};

}  // namespace skep::leaves
