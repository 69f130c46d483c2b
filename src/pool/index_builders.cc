#include "pool/index_builders.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "pool/item.h"

namespace skep::pool {
namespace {

constexpr uint32_t kKeysAtOnce = 4096;
constexpr uint64_t kBucketsAtOnce = 256;
constexpr size_t kPostsMax = 8;
constexpr size_t kItemsAtOnce = 256;  // two MiB at most
constexpr uint64_t kPauseNs = 50'000'000;

// As many bytes of an item as surely have its key.
uint32_t BytesWithKey(Slot slot) {
  constexpr uint32_t kUnits = (sizeof(ItemHeader) + kKeyBytesMax + kUnitBytes - 1) / kUnitBytes;
  return std::min(slot.units(), kUnits) * kUnitBytes;
}

}  // namespace

bool HashBuilder::Step(bool* is_whole) {
  if (!context_.state.keeps_hash()) return false;
  batch_.Clear();
  batch_.Scan(Range::From(next_), {.limit = kKeysAtOnce});
  Engine& tree = *context_.state.tree();
  tree.AwaitRelease(tree.Execute(batch_));
  for (const Item& item : batch_.items(0)) {
    const KeyDigest digest = DigestOf(context_.state.keys(), item.key);
    if (hash_.Set(digest, SlotOf(item.value))) continue;
    context_.state.set_hash(nullptr, false);
    return false;
  }
  const Outcome& outcome = batch_.outcome(0);
  if (outcome.more) next_ = outcome.value;
  *is_whole = !outcome.more;
  return true;
}

TreeBuilder::TreeBuilder(IndexContext& context, Engine& tree)
    : context_(context), tree_(tree), servers_(context.endpoint) {}

bool TreeBuilder::Step() {
  const HashIndex& hash = *context_.state.hash();
  if (waiting_.empty() && next_bucket_ < hash.buckets()) Enumerate();
  while (!waiting_.empty() && posts_.size() < kPostsMax) {
    if (!Send(waiting_.front())) break;
    waiting_.pop_front();
  }
  return waiting_.empty() && posts_.empty() && next_bucket_ == hash.buckets();
}

// The next buckets' slots, by server.
void TreeBuilder::Enumerate() {
  const HashIndex& hash = *context_.state.hash();
  const uint64_t end = std::min(next_bucket_ + kBucketsAtOnce, hash.buckets());
  std::map<uint32_t, std::vector<Wanted>> by_server;
  hash.ForEach(next_bucket_, end, [&](uint32_t index, uint64_t tag, Slot slot) {
    const auto place = context_.state.chunks().ranges().PlaceOf(slot.chunk());
    SKEP_CHECK(place.has_value());
    std::vector<Wanted>& wanted = by_server[place->server];
    wanted.push_back({.slot = slot, .index = index, .tag = tag});
    if (wanted.size() == kItemsAtOnce) waiting_.push_back(std::exchange(wanted, {}));
  });
  next_bucket_ = end;
  for (auto& [server, wanted] : by_server) {
    if (!wanted.empty()) waiting_.push_back(std::move(wanted));
  }
}

// False: there is no connection now.
bool TreeBuilder::Send(std::vector<Wanted>& wanted) {
  if (context_.now_ns() < retry_ns_) return false;
  const ChunkRanges& ranges = context_.state.chunks().ranges();
  const uint32_t server = ranges.PlaceOf(wanted.front().slot.chunk())->server;
  const auto address = context_.map.memory_servers.find(server);
  if (address == context_.map.memory_servers.end()) return false;
  const rma::PeerId peer = servers_.Find(server, address->second, context_.now_ns());
  if (peer == 0) return false;
  size_t bytes = 0;
  for (const Wanted& item : wanted) bytes += BytesWithKey(item.slot);
  Post post = {.token = next_token_++,
               .wanted = std::move(wanted),
               .bytes = std::make_unique_for_overwrite<std::byte[]>(bytes)};
  std::vector<rma::Operation> operations;
  std::byte* at = post.bytes.get();
  for (Wanted& item : post.wanted) {
    item.bytes = at;
    item.size = BytesWithKey(item.slot);
    at += item.size;
    operations.push_back({.kind = rma::Operation::Kind::kRead,
                          .region = 0,
                          .offset = ranges.PlaceOf(item.slot.chunk())->offset + item.slot.offset(),
                          .bytes = item.size,
                          .local = item.bytes});
  }
  context_.endpoint.Post(peer, post.token, operations);
  posts_.push_back(std::move(post));
  return true;
}

bool TreeBuilder::HandleDone(const rma::Event& event) {
  const auto post = std::ranges::find(posts_, event.token, &Post::token);
  if (post == posts_.end()) return false;
  if (event.status.ok()) {
    Add(*post);
  } else {
    waiting_.push_back(std::move(post->wanted));
    retry_ns_ = context_.now_ns() + kPauseNs;
  }
  posts_.erase(post);
  return true;
}

void TreeBuilder::Add(const Post& post) {
  const HashIndex& hash = *context_.state.hash();
  batch_.Clear();
  for (const Wanted& wanted : post.wanted) {
    const std::string_view key = KeyToldBy({wanted.bytes, wanted.size});
    const KeyDigest digest = DigestOf(context_.state.keys(), key);
    // If the slot is the key's still, its chunk was not recycled, and the bytes are the item's.
    if (hash.Find(digest) != wanted.slot) continue;
    batch_.Put(batch_.scratch().Copy(key), BytesOf(wanted.slot));
  }
  tree_.Execute(batch_);
  batch_.Clear();
}

}  // namespace skep::pool
