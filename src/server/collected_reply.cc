#include "server/collected_reply.h"

#include <string_view>

#include "server/session.h"

namespace skep {

bool CollectedReply::HasRoom(const Call& call) {
  // Reads are allowed at the memory limit: a reply of this size is made whatever is left.
  constexpr size_t kBytesFree = 1 << 20;
  budget_.Charge(bytes_.capacity() - charged_bytes_);
  charged_bytes_ = bytes_.capacity();
  if (bytes_.size() <= kBytesFree || budget_.HasRoomFor(0)) return true;
  call.Error(kOutOfMemory);
  return false;
}

bool CollectedReply::Send(const Call& call) {
  constexpr size_t kPieceBytes = 256 * 1024;
  const std::string_view piece = std::string_view(bytes_).substr(sent_, kPieceBytes);
  call.session().out.append(piece);
  sent_ += piece.size();
  return sent_ < bytes_.size();
}

}  // namespace skep
