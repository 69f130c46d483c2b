#include "sim/echo.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace skep {

EchoServer::EchoServer(Network& network, std::unique_ptr<Listener> listener)
    : listener_(std::move(listener)), poller_(network.NewPoller()) {
  SKEP_CHECK(poller_->Add(*listener_, listener_.get()).ok());
}

bool EchoServer::Turn(int timeout_ms) {
  const std::span<const ReadyEvent> ready = poller_->Wait(timeout_ms);
  for (const ReadyEvent& event : ready) {
    if (event.tag == listener_.get()) {
      AcceptAll();
      continue;
    }
    Session& session = *static_cast<Session*>(event.tag);
    if (!Serve(session)) sessions_.erase(session.id);
  }
  return !ready.empty();
}

void EchoServer::AcceptAll() {
  int error = 0;
  while (std::unique_ptr<Stream> stream = listener_->Accept(&error)) {
    auto session = std::make_unique<Session>();
    session->id = ++last_session_;
    session->stream = std::move(stream);
    SKEP_CHECK(poller_->Add(*session->stream, session.get(), true, false).ok());
    sessions_.emplace(last_session_, std::move(session));
  }
}

bool EchoServer::Serve(Session& session) {
  if (session.owed.empty() && !session.finished && !Receive(session)) return false;
  if (!Send(session)) return false;
  if (session.finished && session.owed.empty()) return false;
  const bool owes = !session.owed.empty();
  return poller_->Change(*session.stream, &session, !owes, owes).ok();
}

bool EchoServer::Receive(Session& session) {
  std::array<char, 4096> buffer;
  const ssize_t got = session.stream->Read(buffer.data(), buffer.size());
  if (got == -EAGAIN) return true;
  if (got < 0) return false;
  session.finished = got == 0;
  session.owed.assign(buffer.data(), static_cast<size_t>(got));
  return true;
}

bool EchoServer::Send(Session& session) {
  if (session.owed.empty()) return true;
  const ssize_t taken = session.stream->Write(session.owed);
  if (taken == -EAGAIN) return true;
  if (taken < 0) return false;
  session.owed.erase(0, static_cast<size_t>(taken));
  bytes_echoed_ += static_cast<uint64_t>(taken);
  return true;
}

EchoClient::EchoClient(std::unique_ptr<Stream> stream, Random& random, size_t bytes)
    : stream_(std::move(stream)), random_(random), sent_(bytes, '\0') {
  for (char& byte : sent_) byte = static_cast<char>(random_.Next());
}

bool EchoClient::Move() {
  if (done_) return false;
  const bool wrote = WriteSome();
  const bool read = !done_ && ReadSome();
  return wrote || read;
}

bool EchoClient::WriteSome() {
  if (finished_) return false;
  if (taken_ == sent_.size()) {
    stream_->FinishSending();
    finished_ = true;
    return true;
  }
  const std::string_view left = std::string_view(sent_).substr(taken_);
  const ssize_t taken = stream_->Write(left.substr(0, 1 + random_.Below(left.size())));
  if (taken == -EAGAIN) return false;
  if (taken < 0) return End(static_cast<int>(-taken));
  taken_ += static_cast<size_t>(taken);
  return true;
}

bool EchoClient::ReadSome() {
  std::array<char, 8192> buffer;
  const ssize_t got = stream_->Read(buffer.data(), 1 + random_.Below(buffer.size()));
  if (got == -EAGAIN) return false;
  if (got <= 0) return End(static_cast<int>(-got));
  received_.append(buffer.data(), static_cast<size_t>(got));
  return true;
}

bool EchoClient::End(int error) {
  done_ = true;
  error_ = error;
  return true;
}

}  // namespace skep
