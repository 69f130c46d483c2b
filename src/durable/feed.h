// feed.h: brings requests to an engine in batches, and nothing is refused for what it takes.
//
// A function may make 64 MiB out of an operand of one byte, so the requests do not tell how large a
// batch may be; what the batches before have made does, as a rule. Where it does not, the engine
// leaves what its batch has no room for (kAnswerBytesMax), and that comes into further batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/engine.h"

namespace skep::durable {

// Whether the request in the slot was refused only because the answers of its batch had no more
// room. Then so were the later points on its key.
bool LackedRoomForAnswers(const Batch& batch, uint32_t slot);

// Thread safety: one owner.
// Memory: of the requests 4 MiB and one key and value; of what functions make 16 MiB as a rule, and
// when much larger values come than before kAnswerBytesMax, and twice what one function makes.
class Feed {
 public:
  static constexpr size_t kRequestBytesMax = size_t{4} << 20;
  static constexpr size_t kAnswerBytesWanted = size_t{16} << 20;

  // The engine must outlive it.
  explicit Feed(Engine& engine, Batch::Kind kind = Batch::Kind::kUnordered)
      : engine_(engine), batch_(kind) {}

  // To add a request to; it comes behind what was added before on its key.
  Batch& batch() { return batch_; }
  // Must be called after each request, with the bytes of its key and value. Executes the batch if
  // it is large enough: the request's views must last until then, or be of batch().scratch().
  //   the status of a request that was refused for another reason, which ends the feeding
  Status Added(size_t bytes);
  // Executes what was added last. As Added().
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
