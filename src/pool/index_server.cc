#include "pool/index_server.h"

#include "base/check.h"

namespace skep::pool {
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
  const Status found = server->TakeFound();
  if (!found.ok()) return Fail(found);
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
  bucket_pages_.emplace(buckets_->memory());
  return {};
}

void IndexServer::SetMap(const PoolMap& map) {
  if (is_retired_ || (context_ != nullptr && map.epoch < context_->map.epoch)) return;
  if (found_) LookAtFound(map);
  if (found_) return;
  const bool has_role = map.hash_server == options_.id || map.sorted_server == options_.id;
  if (is_candidate_ && !has_role) return ForgetState();
  is_candidate_ = false;
  // The roles of a later epoch need a state that this server has not.
  if (context_ == nullptr && (!has_role || map.epoch != 1)) return;
  if (!has_role || (context_ != nullptr && IsChangeOfRole(map))) return Retire();
  if (context_ == nullptr) BeginNew(map);
  if (is_retired_) return;
  context_->map = map;
  TakeRoles();
}

// Roles that this server cannot come to from those that it has.
bool IndexServer::IsChangeOfRole(const PoolMap& map) const {
  const bool is_hash = map.hash_server == options_.id;
  if (hash_role_ == nullptr) return is_hash && map.sorted_server != 0;
  const bool is_paired = is_hash && map.sorted_server != 0;
  const bool becomes_paired = is_paired && context_->map.sorted_server == 0;
  return !is_hash || (becomes_paired && !hash_role_->wanted_roles());
}

void IndexServer::TakeRoles() {
  const bool is_hash = context_->map.hash_server == options_.id;
  const bool has_tree = !is_hash || context_->map.sorted_server == 0;
  if (!has_tree) DropTree();
  if (has_tree && sorted_role_ == nullptr && tree_builder_ == nullptr) BecomeSorted();
  if (!is_hash) return;
  if (hash_role_ != nullptr) return hash_role_->MapChanged();
  if (state_->hash() == nullptr && sorted_role_ != nullptr && !IsNew()) {
    takes_over_ = true;
  } else {
    BecomeHash();
  }
}

// Nothing has been entered yet: there is nobody whose authority has to end.
bool IndexServer::IsNew() const { return state_->applied() == 0 && context_->map.epoch == 1; }

void IndexServer::BecomeSorted() {
  if (hash_role_ != nullptr) {
    MakeTree(false);
    tree_builder_ = std::make_unique<TreeBuilder>(*context_, *tree_);
  } else {
    if (tree_ == nullptr) MakeTree(true);
    sorted_role_ = std::make_unique<SortedRole>(*context_);
    sorted_role_->Require(base_);
  }
}

void IndexServer::BecomeHash() {
  MakeHash(true);
  hash_role_ = std::make_unique<HashRole>(*context_, header().applied);
  hash_role_->MapChanged();
}

void IndexServer::TakeOver() {
  takes_over_ = false;
  sorted_role_->ApplyAll();
  MakeHash(false);
  hash_builder_ = std::make_unique<HashBuilder>(*context_, *hash_);
  hash_role_ = std::make_unique<HashRole>(*context_, header().applied);
  hash_role_->MapChanged();
}

// A pool's first state is that of nothing.
void IndexServer::BeginNew(const PoolMap& map) {
  state_ = std::make_unique<IndexState>(map.keys);
  Begin(map);
  if (!LogState()) Retire();
}

// Takes the state of the context, which is there.
void IndexServer::Begin(const PoolMap& map) {
  context_ =
      std::make_unique<IndexContext>(IndexContext{.endpoint = *endpoint_,
                                                  .clock = clock_,
                                                  .times = options_.times,
                                                  .keys_per_piece = options_.keys_per_piece,
                                                  .keys_per_step = options_.keys_per_step,
                                                  .free_chunks_min = options_.free_chunks_min,
                                                  .replicas = options_.replicas,
                                                  .removes_lost = options_.removes_lost,
                                                  .applies_first = options_.applies_first,
                                                  .log = options_.log,
                                                  .state = *state_,
                                                  .map = map,
                                                  .reply = {}});
}

void IndexServer::MakeHash(bool is_whole) {
  auto* const table = reinterpret_cast<Bucket*>(buckets_->begin());
  auto* const overflow = reinterpret_cast<Bucket*>(overflow_->begin());
  auto made = HashIndex::Create({.bucket_count = &header().bucket_count,
                                 .table = {table, options_.buckets_max},
                                 .overflow = {overflow, options_.overflow_max}},
                                {.read_limit_ns = options_.times.read_ns_max});
  SKEP_CHECK(made.has_value());
  hash_ = std::move(*made);
  state_->set_hash(hash_.get(), is_whole);
}

void IndexServer::MakeTree(bool is_whole) {
  tree_ = options_.make_tree();
  SKEP_CHECK(tree_ != nullptr);
  state_->set_tree(tree_.get(), is_whole);
}

// The sorted server has it.
void IndexServer::DropTree() {
  sorted_role_.reset();
  state_->set_tree(nullptr, false);
  tree_.reset();
}

void IndexServer::Retire() {
  is_retired_ = true;
  takes_over_ = false;
  if (hash_role_ != nullptr) hash_role_->RefuseWaiting();
}

bool IndexServer::Turn(int timeout_ms) {
  const bool is_building = hash_builder_ != nullptr || tree_builder_ != nullptr;
  const auto events = endpoint_->Poll(is_building ? 0 : timeout_ms);
  for (const rma::Event& event : events) Handle(event);
  if (is_retired_) return !events.empty();
  return StepRoles(events.empty()) || !events.empty();
}

void IndexServer::Handle(const rma::Event& event) {
  switch (event.kind) {
    case rma::Event::Kind::kRequest:
      HandleRequest(event);
      break;
    case rma::Event::Kind::kReply:
      if (hash_role_ != nullptr) hash_role_->HandleReply(event);
      break;
    case rma::Event::Kind::kJoined:
    case rma::Event::Kind::kLeft:
      HandlePeer(event);
      break;
    case rma::Event::Kind::kDone:
      if (tree_builder_ != nullptr) tree_builder_->HandleDone(event);
      break;
  }
}

void IndexServer::HandlePeer(const rma::Event& event) {
  if (hash_role_ != nullptr) hash_role_->HandlePeer(event);
  if (tree_builder_ != nullptr) tree_builder_->HandlePeer(event);
  if (event.kind == rma::Event::Kind::kLeft) receiver_.HandleLeft(event.peer);
}

void IndexServer::JoinBuckets() {
  const uint64_t count = header().bucket_count.load(std::memory_order_relaxed);
  if (count <= joined_buckets_) return;
  bucket_pages_->Written(buckets_->memory(), joined_buckets_ * sizeof(Bucket),
                         count * sizeof(Bucket));
  joined_buckets_ = count;
}

bool IndexServer::StepRoles(bool is_idle) {
  if (takes_over_ && clock_.MonotonicNs() >= sorted_role_->authority_ends_ns() &&
      sorted_role_->IsLogged()) {
    TakeOver();
  }
  bool did = sorted_role_ != nullptr && sorted_role_->AcknowledgeLogged();
  if (hash_role_ != nullptr && hash_role_->Turn()) did = true;
  if (hash_ != nullptr && hash_->Maintain(clock_.MonotonicNs())) did = true;
  if (StepBuilders()) did = true;
  if (hash_ != nullptr) JoinBuckets();
  if (sorted_role_ != nullptr && sorted_role_->Turn(is_idle)) did = true;
  // The tree has no deadlines, so its time stands still.
  if (tree_ != nullptr && is_idle && !did && tree_->Maintain(0)) did = true;
  return did;
}

// Returns whether an index is being built.
bool IndexServer::StepBuilders() {
  bool is_built = false;
  // An index that has no room for all keys is given up: clients go on asking by calls.
  if (hash_builder_ != nullptr && !hash_builder_->Step(&is_built)) hash_builder_.reset();
  if (hash_builder_ != nullptr && is_built) {
    state_->set_hash(hash_.get(), true);
    hash_builder_.reset();
    hash_role_->MapChanged();
  }
  if (tree_builder_ != nullptr && tree_builder_->Step()) {
    state_->set_tree(tree_.get(), true);
    tree_builder_.reset();
    sorted_role_ = std::make_unique<SortedRole>(*context_);
  }
  return hash_builder_ != nullptr || tree_builder_ != nullptr;
}

void IndexServer::HandleRequest(const rma::Event& event) {
  const auto refuse = [&](ReplyCode code) {
    const char byte = static_cast<char>(code);
    endpoint_->Reply(event.peer, event.token, {&byte, 1});
  };
  if (event.bytes.empty()) return refuse(ReplyCode::kMalformed);
  const auto kind = static_cast<MessageKind>(event.bytes[0]);
  const std::string_view fields = event.bytes.substr(1);
  const bool has_role = context_ != nullptr && !is_candidate_;
  if (kind == MessageKind::kState && !has_role) return ReceiveState(event, fields);
  if (context_ == nullptr || is_retired_) return refuse(ReplyCode::kNotServing);
  if (hash_role_ != nullptr && hash_role_->Handle(event, kind, fields)) return;
  // T3 in state_transfer.h.
  const bool may_answer = hash_role_ == nullptr || hash_role_->HasAuthority();
  if (may_answer && sorted_role_ != nullptr && sorted_role_->Handle(event, kind, fields)) return;
  refuse(ReplyCode::kNotServing);
}

void IndexServer::ReceiveState(const rma::Event& event, std::string_view fields) {
  // What the log has counts no more only when a map says so.
  const StateReceiver::Result result =
      found_ ? StateReceiver::Result::kRefused : receiver_.Take(event.peer, fields);
  if (result == StateReceiver::Result::kBegun) ForgetState();
  const bool is_taken =
      result != StateReceiver::Result::kRefused && AppendPiece(result, event.peer, fields);
  if (is_taken && result == StateReceiver::Result::kWhole) BecomeCandidate();
  const char code = static_cast<char>(is_taken ? ReplyCode::kOk : ReplyCode::kNotServing);
  endpoint_->Reply(event.peer, event.token, {&code, 1});
}

// Its map is the one that the hash server will want.
void IndexServer::BecomeCandidate() {
  ReceivedState received = receiver_.TakeState();
  PoolMap map = {.epoch = received.epoch,
                 .hash_server = received.hash_server,
                 .sorted_server = options_.id,
                 .index_servers = {},
                 .memory_servers = {},
                 .keys = received.keys};
  state_ = std::make_unique<IndexState>(received.keys);
  state_->Resume(std::move(received.sessions), std::move(received.chunks), received.applied,
                 received.next_client);
  tree_ = std::move(received.tree);
  state_->set_tree(tree_.get(), true);
  Begin(map);
  BecomeSorted();
  is_candidate_ = true;
}

// Of a candidate.
void IndexServer::ForgetState() {
  is_candidate_ = false;
  sorted_role_.reset();
  context_.reset();
  state_.reset();
  tree_.reset();
}

std::optional<PoolRoles> IndexServer::wanted_roles() const {
  if (claim_) return base_.IsReached(options_.log) ? claim_ : std::nullopt;
  if (is_retired_ || hash_role_ == nullptr) return std::nullopt;
  return hash_role_->wanted_roles();
}

}  // namespace skep::pool
