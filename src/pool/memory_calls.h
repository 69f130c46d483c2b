// memory_calls.h: what the hash server asks memory servers, without waiting.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "pool/dialer.h"
#include "pool/index_context.h"

namespace skep::pool {

class MemoryCalls {
 public:
  // The fields of the answer; nothing: it was refused, or there was none.
  using OnAnswer = std::function<void(std::optional<std::string_view> fields)>;

  explicit MemoryCalls(IndexContext& context) : context_(context), servers_(context.endpoint) {}

  // False: there is no connection now, but one is being made; nothing was asked.
  bool Call(uint32_t server, std::string_view request, OnAnswer on_answer) {
    const auto at = context_.map.memory_servers.find(server);
    if (at == context_.map.memory_servers.end()) return false;
    const rma::PeerId peer = servers_.Find(server, at->second, context_.now_ns());
    if (peer == 0) return false;
    asked_[next_token_] = std::move(on_answer);
    context_.endpoint.Call(peer, next_token_++, request);
    return true;
  }
  // False: the call of this token is none of these.
  bool HandleReply(uint64_t token, std::optional<std::string_view> fields) {
    auto asked = asked_.extract(token);
    if (!asked) return false;
    asked.mapped()(fields);
    return true;
  }
  void HandlePeer(const rma::Event& event) { servers_.Handle(event); }

 private:
  // Tokens that nobody else uses.
  static constexpr uint64_t kFirstToken = uint64_t{1} << 61;

  IndexContext& context_;
  Dialer servers_;
  uint64_t next_token_ = kFirstToken;
  std::unordered_map<uint64_t, OnAnswer> asked_;
};

}  // namespace skep::pool
