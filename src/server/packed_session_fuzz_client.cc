#include "packed_session_fuzz_client.h"

#include <errno.h>

#include <algorithm>

#include "base/check.h"
#include "wire/packed_reply.h"
#include "wire/packed_top.h"

namespace skep::packed_session_fuzz {

void CheckTop(std::string_view payload) {
  LeafLinks page;
  SKEP_CHECK(packed::ReadTop(payload, &page));
}

void Client::Connect() {
  stream_ = world_.Connect();
  out_.clear();
  in_.clear();
  pushed_ = 0;
  has_hello_ = false;
  packed::Append(out_, packed::ClientHello{.client = id_});
}

void Client::Send(Message& message) {
  out_.append(message.bytes);
  message.end = pushed_ + out_.size();
  under_way_[message.header.id] = &message;
}

void Client::SendAgain() {
  for (const auto& [id, message] : under_way_) {
    out_.append(message->bytes);
    message->end = pushed_ + out_.size();
  }
}

void Client::Push(size_t bytes_max) {
  if (stream_ == nullptr) return;
  const ssize_t taken = stream_->Write(std::string_view(out_).substr(0, bytes_max));
  if (taken == -EAGAIN) return;
  SKEP_CHECK(taken >= 0);
  out_.erase(0, static_cast<size_t>(taken));
  pushed_ += static_cast<uint64_t>(taken);
}

void Client::Pull() {
  if (stream_ == nullptr) return;
  char buffer[32 * 1024];
  ssize_t got = 0;
  while ((got = stream_->Read(buffer, sizeof buffer)) > 0) {
    in_.append(buffer, static_cast<size_t>(got));
  }
  SKEP_CHECK(got == -EAGAIN);  // a server does not hang up on a correct client
  if (!has_hello_) TakeHello();
  while (has_hello_ && TakeReply()) {
  }
}

void Client::TakeHello() {
  if (in_.size() < sizeof(packed::ServerHello)) return;
  SKEP_CHECK(packed::IsHello(in_));
  const auto hello = packed::Read<packed::ServerHello>(in_);
  SKEP_CHECK(hello.version == packed::kVersion && hello.why == packed::kHelloAccepted);
  SKEP_CHECK(hello.keyspaces == World::kKeyspaces);
  in_.erase(0, sizeof(hello));
  has_hello_ = true;
}

// Returns false if there is no whole reply.
bool Client::TakeReply() {
  if (in_.size() < sizeof(packed::Header)) return false;
  const auto header = packed::Read<packed::Header>(in_);
  const size_t bytes = sizeof(header) + header.payload_bytes;
  if (in_.size() < bytes) return false;
  const auto asked = under_way_.find(header.id);
  SKEP_CHECK(asked != under_way_.end());
  Message& message = *asked->second;
  SKEP_CHECK(header.kind == message.header.kind);
  SKEP_CHECK(message.end <= pushed_);
  std::string reply = in_.substr(0, bytes);
  in_.erase(0, bytes);
  Status failure;
  std::string_view payload = std::string_view(reply).substr(sizeof(header));
  if (header.has(packed::kFailed)) SKEP_CHECK(packed::TakeStatus(payload, &failure));
  if (failure.code() == Code::kUnavailable && message.may_repeat()) {
    Send(message);  // it is being executed, for the connection that broke
    return true;
  }
  message.reply = std::move(reply);
  under_way_.erase(asked);
  return true;
}

bool Client::WouldLose() const {
  return std::ranges::any_of(under_way_, [&](const auto& entry) {
    return entry.second->end <= pushed_ && !entry.second->may_repeat();
  });
}

}  // namespace skep::packed_session_fuzz
