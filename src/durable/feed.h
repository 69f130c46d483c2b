// feed.h: executes a stream of requests on an engine in batches, so that no request is refused for
// the memory that a batch takes.
//
// A function may make 64 MiB out of an operand of one byte, so the requests do not tell how many of
// them fit into a batch. The bytes that the batches before have made tell it, as a rule. Where they
// do not, the engine leaves requests for which its batch has no room (kAnswerBytesMax), and those
// are executed in further batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/engine.h"

namespace skep::durable {

// Whether the request in the slot was refused only because the answers of its batch had no more
// room. Then the later points on its key were refused for the same reason.
bool LackedRoomForAnswers(const Batch& batch, uint32_t slot);

// Thread safety: one owner.
// Memory: 4 MiB of requests, and one key and value; 16 MiB of what functions make, as a rule, but
// kAnswerBytesMax when values become much larger than before; and twice what one function makes.
class Feed {
 public:
  static constexpr size_t kRequestBytesMax = size_t{4} << 20;
  static constexpr size_t kAnswerBytesWanted = size_t{16} << 20;

  // The engine must outlive it.
  explicit Feed(Engine& engine, Batch::Kind kind = Batch::Kind::kUnordered)
      : engine_(engine), batch_(kind) {}

  // The batch to add a request to, which is executed behind the earlier ones on its key.
  Batch& batch() { return batch_; }
  // Must be called after each request, with the bytes of its key and value. Executes the batch if
  // it is large enough: the request's views must last until then, or be of batch().scratch().
  //   the status of a request that was refused for another reason, which ends the feeding
  Status Added(size_t bytes);
  // Executes the requests that were not executed yet. Errors as of Added().
  Status Finish();

 private:
  static constexpr uint32_t kOperationsMax = 256;

  Status ExecuteAll(Batch& batch);
  Status ExecuteLeft(std::span<const Request> requests);

  Engine& engine_;
  Batch batch_;
  size_t bytes_ = 0;
  uint32_t operations_max_ = 16;
};

}  // namespace skep::durable
