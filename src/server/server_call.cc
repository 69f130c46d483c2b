#include "server/server_call.h"

namespace skep {

void ServerHost::Execute(Session& session, Batch& batch, std::span<const PlannedCommand> commands) {
  if (batch.kind() == Batch::Kind::kAtomic) {
    batch.set_answer_bytes_max(AnswerBytesMax(session));
    batch.set_returned_bytes_max(ReturnedBytesMax(session));
  }
  Engine& engine = EngineOf(session);
  if (rehearses()) {
    engine.Execute(batch);
    return;
  }
  gates_.Mark(session, engine, turn_.Execute(engine, batch, commands));
}

}  // namespace skep
