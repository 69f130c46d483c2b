// one_sided_reads.h: GETs, and scans within a leaf, that a client answers itself: it reads the
// leaves of its server's tree out of the server's memory (netindex/leaves/leaf_session.h), and the
// server's processor has no part in it. What the leaves do not answer for certain is asked for by
// call, as ever.
//
//   a batch -- requests that may be read --> one-sided, within Begin ----> their outcomes
//           \- all others, and those without an answer --> a message --> the others' outcomes
//
// Why this is a right Engine::Begin (engine.h), and the batch a right batch (batch.h).
//   One answer by itself is the key's newest released state at an instant within Begin
//   (leaf_reader.h), of the server that calls go to (leaf_session.h). So it is linearizable, and a
//   batch that is begun after another one was finished sees its effects: the reply of a write
//   leaves the server when the write is released, and what is released is in the leaves and on the
//   board. What is left is the order of operations on one key, of one thread:
//   (1) An operation before, in an earlier batch. If it was sent and is not finished, its key has
//       an entry in CallsUnderWay, made by this thread before; then the GET is sent, too. If it is
//       finished, or was read one-sided, it took effect before Begin. Reads count as operations: of
//       two GETs the later must not see the older value. Writes of ranges count for all keys.
//   (2) An operation before, in the same batch. A GET that has a request on its key before it which
//       is sent, is sent behind it, in the same message. GETs of one key without another request
//       between them are one question and have one answer: all are answered, or all are sent.
//   (3) An operation after, in this batch or a later one: it takes effect later, as one-sided
//       answers are there before anything of the batch is sent, and before Begin returns.
//   Scans are in no order (engine.h, batch.h).
//
// The client reads a GET, and a forward scan with an upper bound or with few items, in an unordered
// batch without a snapshot or limits of scans. The reader finds out which items have a deadline or
// lie outside their node, and which scans span leaves; requests for these are sent.
//
// Progress. A thread waits for other threads' reads in the same lane (leaf_sessions.h), and for
// nothing of the server: a read that the server disturbs is sent.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "client/calls_under_way.h"
#include "client/fat_root.h"
#include "client/leaf_sessions.h"
#include "client/remote.h"
#include "engine/batch_writer.h"
#include "skep/batch.h"

namespace skep::client {

class OneSidedReads {
 public:
  // A scan without an upper bound is read if it wants at most so many items: more are seldom all in
  // one leaf.
  static constexpr uint32_t kScanItemsMax = 64;
  // Longer keys are sent: the server knows how long a key may be.
  static constexpr size_t kKeyBytesMax = 512;

  // All must outlive it.
  OneSidedReads(Remote& remote, LeafSessions& sessions, FatRoot& fat_root);

  // Answers what it can of the batch, whose outcomes begin anew, and puts the slots of the others
  // into *left, ascending. `connection`: that of the thread, Remote::IndexForThread.
  void Answer(Batch& batch, size_t connection, std::vector<uint32_t>* left);

  CallsUnderWay& calls() { return calls_; }
  leaves::LeafReaderStatistics Statistics() { return sessions_.Statistics(); }

 private:
  // The keys of a batch: of each the question that its GETs have.
  class KeyTable {
   public:
    // Makes room for so many keys, and drops those that are there.
    void Reset(size_t keys);
    // The place of the key's question, kNone if the key is new.
    uint32_t& At(uint64_t hash, std::string_view key);

   private:
    struct Cell {
      uint64_t hash;
      std::string_view key;
      uint32_t question;
      bool is_used = false;
    };
    std::vector<Cell> cells_;
  };
  // The memory of one lane's batches. Guarded by the lane's mutex.
  struct Work {
    std::vector<Hint> hints;
    std::vector<leaves::LeafQuestion> questions;
    std::vector<uint32_t> question_of;  // by slot; kSent: it is sent
    KeyTable keys;
  };
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kSent = UINT32_MAX - 1;

  void Choose(const Batch& batch, Work& work);
  static uint32_t AddQuestion(const Request& request, Hint hint, Work& work);
  static void Write(const Request& request, const leaves::LeafQuestion& answer, BatchWriter& writer,
                    uint32_t slot);

  Remote& remote_;
  LeafSessions& sessions_;
  FatRoot& fat_root_;
  CallsUnderWay calls_;
  std::vector<std::unique_ptr<Work>> work_;  // by lane
};

}  // namespace skep::client
