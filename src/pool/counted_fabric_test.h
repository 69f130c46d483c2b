// counted_fabric_test.h: a fabric whose endpoints stop sending after so many messages, as if their
// process had been killed before the next one, or break a connection instead of a reply.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "rma/fabric.h"
#include "rma/testing/passing_endpoint.h"

namespace skep::pool {

// The messages of one process.
struct MessageCount {
  uint64_t sent = 0;
  uint64_t sent_max = UINT64_MAX;
  bool is_dead = false;  // it has wanted to send one more
  int wait_ms = 0;       // that the last Poll was to take at most
  uint64_t posts = 0;
  bool counts_posts = false;          // they are messages, too
  std::function<void()> before_each;  // if any: called before each message is counted
  // The first reply after so many breaks its connection instead.
  uint64_t breaks_after = UINT64_MAX;

  bool Spend() {
    if (before_each) before_each();
    if (sent == sent_max) is_dead = true;
    if (!is_dead) ++sent;
    return !is_dead;
  }
};

class CountedEndpoint final : public rma::PassingEndpoint {
 public:
  CountedEndpoint(std::unique_ptr<rma::Endpoint> inner, MessageCount& count)
      : PassingEndpoint(std::move(inner)), count_(count) {}

  void Post(rma::PeerId peer, uint64_t token, std::span<const rma::Operation> operations) override {
    ++count_.posts;
    // A Post to nobody ends at once.
    if (count_.counts_posts && !count_.Spend()) Disconnect(peer);
    PassingEndpoint::Post(peer, token, operations);
  }
  void Call(rma::PeerId peer, uint64_t token, std::string_view request) override {
    if (count_.Spend()) PassingEndpoint::Call(peer, token, request);
  }
  void Reply(rma::PeerId peer, uint64_t token, std::string_view reply) override {
    if (count_.sent >= count_.breaks_after) {
      count_.breaks_after = UINT64_MAX;
      return Disconnect(peer);
    }
    if (count_.Spend()) PassingEndpoint::Reply(peer, token, reply);
  }
  std::span<const rma::Event> Poll(int timeout_ms) override {
    count_.wait_ms = timeout_ms;
    return PassingEndpoint::Poll(timeout_ms);
  }

 private:
  MessageCount& count_;
};

// `inner` and `count` outlive its endpoints.
class CountedFabric final : public rma::Fabric {
 public:
  CountedFabric(rma::Fabric& inner, MessageCount& count) : inner_(inner), count_(count) {}
  Result<std::unique_ptr<rma::Endpoint>> Open(const rma::EndpointOptions& options) override {
    auto endpoint = inner_.Open(options);
    if (!endpoint) return Fail(endpoint.error());
    return std::make_unique<CountedEndpoint>(std::move(*endpoint), count_);
  }

 private:
  rma::Fabric& inner_;
  MessageCount& count_;
};

}  // namespace skep::pool
