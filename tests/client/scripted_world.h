// scripted_world.h: a server whose every byte a test decides, for what Skep's server never sends;
// in a world of one thread (stepped_network.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "stepped_network.h"
#include "wire/packed.h"
#include "wire/packed_reply.h"

namespace skep {

class ScriptedWorld final : public SteppedWorld {
 public:
  // The server's side of a connection.
  class Peer {
   public:
    // Sends bytes, which the client reads next.
    void Say(std::string_view bytes) { said_.append(bytes); }
    void Say(const packed::ServerHello& hello) { packed::Append(said_, hello); }
    // Sends a message; sets the header's payload_bytes.
    void Say(packed::Header header, std::string_view payload) {
      header.payload_bytes = static_cast<uint32_t>(payload.size());
      packed::Append(said_, header);
      said_.append(payload);
    }
    // Ends the connection, once everything was read.
    void HangUp() { is_over_ = true; }
    bool is_over() const { return is_over_; }

   private:
    friend class ScriptedWorld;
    std::string said_;
    bool is_over_ = false;
    bool has_hello_ = false;
    std::string heard_;  // less than a whole message
  };

  struct Script {
    std::function<void(Peer&)> hello = [](Peer& peer) { peer.Say(UsualHello()); };
    // Called with each message; the header is the one for its reply.
    std::function<void(Peer&, const packed::Header&, std::string_view payload)> message;
    // Called when there is nothing to do before time passes. Returns whether it has done something.
    std::function<bool()> idle = [] { return false; };
    std::function<bool()> accepts = [] { return true; };
    // Returns how many bytes one read or write of the client moves at most; 0: none now.
    std::function<size_t()> pace = [] { return SIZE_MAX; };
  };

  explicit ScriptedWorld(Script script) : script_(std::move(script)) {}

  static packed::ServerHello UsualHello() {
    return {.keyspaces = 1,
            .message_bytes_max = 1 << 20,
            .operations_max = 1024,
            .instance = 7,
            .handles_max = 16};
  }
  // Returns a reply of `count` outcomes "done", with an integer each.
  static std::string DoneWith(uint32_t count, int64_t integer) {
    std::string bytes;
    for (uint32_t i = 0; i < count; ++i) {
      bytes.push_back(static_cast<char>(packed::kHasExtras));
      bytes.push_back(static_cast<char>(packed::kInteger));
      bytes.push_back(static_cast<char>(integer << 1));  // small integers only
    }
    return bytes;
  }

  std::unique_ptr<SteppedStream> Connect() override {
    if (!script_.accepts()) return nullptr;
    ++connections_;
    peer_ = std::make_shared<Peer>();
    return std::make_unique<ScriptedStream>(*this, peer_);
  }
  bool Step() override { return script_.idle(); }

  // Returns the newest connection; null: there was none.
  Peer* peer() { return peer_.get(); }
  uint64_t connections() const { return connections_; }

 private:
  class ScriptedStream final : public SteppedStream {
   public:
    ScriptedStream(ScriptedWorld& world, std::shared_ptr<Peer> peer)
        : world_(world), peer_(std::move(peer)) {}
    ~ScriptedStream() override { peer_->is_over_ = true; }

    ssize_t Read(char* to, size_t bytes) override {
      std::string& said = peer_->said_;
      if (said.empty()) return peer_->is_over_ ? 0 : -EAGAIN;
      const size_t moved = said.copy(to, std::min(bytes, world_.script_.pace()));
      said.erase(0, moved);
      return moved == 0 ? -EAGAIN : static_cast<ssize_t>(moved);
    }
    ssize_t Write(std::string_view bytes) override {
      if (peer_->is_over_) return -EPIPE;
      bytes = bytes.substr(0, world_.script_.pace());
      if (bytes.empty()) return -EAGAIN;
      peer_->heard_.append(bytes);
      world_.Hear(*peer_);
      return static_cast<ssize_t>(bytes.size());
    }
    void FinishSending() override {}
    bool Readable() const override { return !peer_->said_.empty() || peer_->is_over_; }
    bool Writable() const override { return true; }

   private:
    ScriptedWorld& world_;
    const std::shared_ptr<Peer> peer_;
  };

  void Hear(Peer& peer) {
    using packed::Header;
    std::string& heard = peer.heard_;
    if (!peer.has_hello_) {
      if (heard.size() < sizeof(packed::ClientHello)) return;
      heard.erase(0, sizeof(packed::ClientHello));
      peer.has_hello_ = true;
      script_.hello(peer);
    }
    while (heard.size() >= sizeof(Header)) {
      auto header = packed::Read<Header>(heard);
      header.flags = 0;  // flags mean something else in a reply
      if (heard.size() < sizeof(header) + header.payload_bytes) return;
      const std::string payload = heard.substr(sizeof(header), header.payload_bytes);
      heard.erase(0, sizeof(header) + payload.size());
      if (script_.message) script_.message(peer, header, payload);
    }
  }

  Script script_;
  std::shared_ptr<Peer> peer_;
  uint64_t connections_ = 0;
};

}  // namespace skep
