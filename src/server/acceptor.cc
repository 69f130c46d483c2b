#include "server/acceptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "server/server_state.h"

namespace skep {
namespace {

constexpr int kAcceptsMax = 256;  // accepts in a turn

}  // namespace

Status Acceptor::Listen(Listener& listener) {
  if (Status s = poller_.Add(listener, &listener); !s.ok()) return s;
  listeners_.push_back(&listener);
  return {};
}

Listener* Acceptor::Find(const void* tag) const {
  const auto at = std::ranges::find(listeners_, tag);
  return at == listeners_.end() ? nullptr : *at;
}

void Acceptor::Accept(Listener& listener) {
  for (int i = 0; i < kAcceptsMax; ++i) {
    int error = 0;
    auto stream = listener.Accept(&error);
    if (stream != nullptr) {
      RejectOrPlace(std::move(stream));
      continue;
    }
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
      state_.log().Report(
          Incident::kNoDescriptors,
          fmt::format("cannot accept connections for now: {}", strerrordesc_np(error)));
      poller_.Remove(listener);
      exhausted_.push_back(&listener);
    }
    if (error != ECONNABORTED && error != EINTR) return;
  }
}

void Acceptor::RejectOrPlace(std::unique_ptr<Stream> stream) {
  if (pool_.connections() >= turn_.options().maxclients) {
    state_.log().Report(Incident::kRefusedClient,
                        fmt::format("a connection from {} refused: maxclients ({}) is reached",
                                    stream->peer(), turn_.options().maxclients));
    stream->Write("-ERR max number of clients reached\r\n");
    Bump(turn_.statistics().rejected);
    return;
  }
  pool_.Place(std::move(stream));
}

void Acceptor::Retry() {
  for (Listener* listener : std::exchange(exhausted_, {})) {
    if (!poller_.Add(*listener, listener).ok()) exhausted_.push_back(listener);
  }
}

void Acceptor::Stop() {
  for (Listener* listener : listeners_) poller_.Remove(*listener);
  listeners_.clear();
  exhausted_.clear();
}

}  // namespace skep
