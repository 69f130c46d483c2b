#include "pool/index_server.h"

#include "base/check.h"

namespace skep::pool {
namespace {

// A tree is given a little of its upkeep in each turn that has nothing else to do.
constexpr uint64_t kNoTime = 0;

}  // namespace

Result<std::unique_ptr<IndexServer>> IndexServer::Open(rma::Fabric& fabric, Clock& clock,
                                                       IndexServerOptions options) {
  auto server = std::unique_ptr<IndexServer>(new IndexServer(clock, std::move(options)));
  const Status reserved = server->Reserve();
  if (!reserved.ok()) return Fail(reserved);
  auto endpoint = fabric.Open({.listen = server->options_.listen,
                               .regions = {{.memory = &*server->header_},
                                           {.memory = &*server->buckets_},
                                           {.memory = &*server->overflow_}}});
  if (!endpoint) return Fail(endpoint.error());
  server->endpoint_ = std::move(*endpoint);
  return server;
}

IndexServer::~IndexServer() = default;

Status IndexServer::Reserve() {
  const struct {
    std::optional<SharedMemory>& memory;
    uint64_t bytes;
    SharedPages pages;
  } wanted[] = {
      {header_, 4096, SharedPages::kPlain},
      {buckets_, options_.buckets_max * sizeof(Bucket), SharedPages::kTransparent},
      {overflow_, options_.overflow_max * sizeof(Bucket), SharedPages::kTransparent},
  };
  for (const auto& [memory, bytes, pages] : wanted) {
    auto made = SharedMemory::Create(bytes, pages);
    if (!made) return made.error();
    memory.emplace(std::move(*made));
  }
  return {};
}

void IndexServer::SetMap(const PoolMap& map) {
  if (context_ != nullptr && map.epoch < context_->map.epoch) return;
  const bool is_hash = map.hash_server == options_.id;
  const bool is_sorted = map.sorted_server == options_.id || (is_hash && map.sorted_server == 0);
  if (!is_hash && !is_sorted) return Retire();
  if (context_ == nullptr) Begin(map);
  context_->map = map;
  if (is_sorted && sorted_role_ == nullptr) {
    if (tree_ == nullptr) MakeTree();
    sorted_role_ = std::make_unique<SortedRole>(*context_);
  }
  if (is_hash && hash_role_ == nullptr) {
    if (hash_ == nullptr) MakeHash();
    hash_role_ = std::make_unique<HashRole>(*context_, header().applied);
  }
  if (is_hash) hash_role_->MapChanged();
}

void IndexServer::Begin(const PoolMap& map) {
  state_ = std::make_unique<IndexState>(map.keys);
  context_ = std::make_unique<IndexContext>(IndexContext{.endpoint = *endpoint_,
                                                         .clock = clock_,
                                                         .times = options_.times,
                                                         .state = *state_,
                                                         .map = map,
                                                         .reply = {}});
}

void IndexServer::MakeHash() {
  auto* const table = reinterpret_cast<Bucket*>(buckets_->begin());
  auto* const overflow = reinterpret_cast<Bucket*>(overflow_->begin());
  auto made = HashIndex::Create({.bucket_count = &header().bucket_count,
                                 .table = {table, options_.buckets_max},
                                 .overflow = {overflow, options_.overflow_max}},
                                {.read_limit_ns = options_.times.read_ns_max});
  SKEP_CHECK(made.has_value());
  hash_ = std::move(*made);
  state_->set_hash(hash_.get());
}

void IndexServer::MakeTree() {
  tree_ = options_.make_tree();
  SKEP_CHECK(tree_ != nullptr);
  state_->set_tree(tree_.get());
}

void IndexServer::Retire() {
  hash_role_.reset();
  sorted_role_.reset();
  context_.reset();
  state_.reset();
  hash_.reset();
  tree_.reset();
}

bool IndexServer::Turn(int timeout_ms) {
  const auto events = endpoint_->Poll(timeout_ms);
  for (const rma::Event& event : events) {
    switch (event.kind) {
      case rma::Event::Kind::kRequest:
        HandleRequest(event);
        break;
      case rma::Event::Kind::kReply:
        if (hash_role_ != nullptr) hash_role_->HandleReply(event);
        break;
      case rma::Event::Kind::kJoined:
      case rma::Event::Kind::kLeft:
        if (hash_role_ != nullptr) hash_role_->HandlePeer(event);
        break;
      case rma::Event::Kind::kDone:
        break;
    }
  }
  bool did = !events.empty();
  if (hash_role_ != nullptr && hash_role_->Turn()) did = true;
  if (hash_ != nullptr && hash_->Maintain(clock_.MonotonicNs())) did = true;
  if (sorted_role_ != nullptr && events.empty() && sorted_role_->Turn()) did = true;
  if (tree_ != nullptr && !did && tree_->Maintain(kNoTime)) did = true;
  return did;
}

void IndexServer::HandleRequest(const rma::Event& event) {
  if (event.bytes.empty() || context_ == nullptr) {
    const char code = static_cast<char>(event.bytes.empty() ? ReplyCode::kMalformed
                                                            : ReplyCode::kNotServing);
    return endpoint_->Reply(event.peer, event.token, {&code, 1});
  }
  const auto kind = static_cast<MessageKind>(event.bytes[0]);
  const std::string_view fields = event.bytes.substr(1);
  if (hash_role_ != nullptr && hash_role_->Handle(event, kind, fields)) return;
  if (sorted_role_ != nullptr && sorted_role_->Handle(event, kind, fields)) return;
  context_->Refuse(event.peer, event.token, ReplyCode::kNotServing);
}

}  // namespace skep::pool
