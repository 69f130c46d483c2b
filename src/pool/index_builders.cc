#include "pool/index_builders.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "pool/item.h"

namespace skep::pool {
namespace {

constexpr uint64_t kBucketsAtOnce = 256;
constexpr size_t kPostsMax = 8;
constexpr uint64_t kPauseNs = 50'000'000;
constexpr uint64_t kPostNsMax = 1'000'000'000;

// As many bytes of an item as surely have its key.
uint32_t BytesWithKey(Slot slot) {
  constexpr uint32_t kUnits = (sizeof(ItemHeader) + kKeyBytesMax + kUnitBytes - 1) / kUnitBytes;
  return std::min(slot.units(), kUnits) * kUnitBytes;
}

}  // namespace

bool HashBuilder::Step(bool* is_whole) {
  *is_whole = false;
  if (!context_.state.keeps_hash()) return false;
  if (!hash_.Grow(items_, kBucketsPerStep)) return true;
  batch_.Clear();
  batch_.Scan(Range::From(next_), {.limit = context_.keys_per_step});
  Engine& tree = *context_.state.tree();
  tree.AwaitRelease(tree.Execute(batch_));
  if (!AddKeys()) {
    context_.state.set_hash(nullptr, false);
    return false;
  }
  const Outcome& outcome = batch_.outcome(0);
  if (outcome.more) next_ = outcome.value;
  *is_whole = !outcome.more;
  return true;
}

// The cache misses of all keys overlap.
bool HashBuilder::AddKeys() {
  digests_.clear();
  for (const Item& item : batch_.items(0)) {
    digests_.push_back(DigestOf(context_.state.keys(), item.key));
    hash_.Prefetch(digests_.back());
  }
  size_t i = 0;
  for (const Item& item : batch_.items(0)) {
    if (!hash_.Set(digests_[i++], SlotOf(item.value))) return false;
  }
  return true;
}

TreeBuilder::TreeBuilder(IndexContext& context, Engine& tree)
    : context_(context), tree_(tree), servers_(context.endpoint) {}

bool TreeBuilder::Step() {
  const HashIndex& hash = *context_.state.hash();
  if (!done_.empty()) {
    Add(done_.front());
    done_.pop_front();
  }
  if (waiting_.empty() && next_bucket_ < hash.buckets()) Enumerate();
  if (posts_.size() + done_.size() < kPostsMax) SendNext();
  EndOldPosts();
  return waiting_.empty() && posts_.empty() && done_.empty() && next_bucket_ == hash.buckets();
}

// Those whose server is left alone come around once.
void TreeBuilder::SendNext() {
  for (size_t left = waiting_.size(); left > 0; --left) {
    std::vector<Wanted> wanted = std::move(waiting_.front());
    waiting_.pop_front();
    if (!IsLeftAlone(wanted.front())) {
      if (!Send(wanted)) TryElsewhere(std::move(wanted));
      return;
    }
    waiting_.push_back(std::move(wanted));
  }
}

bool TreeBuilder::IsLeftAlone(const Wanted& wanted) const {
  const auto place = PlaceOf(wanted);
  const auto pause = place ? paused_until_ns_.find(place->server) : paused_until_ns_.end();
  return pause != paused_until_ns_.end() && context_.now_ns() < pause->second;
}

// Posts to a server that stands still end with the connection.
void TreeBuilder::EndOldPosts() {
  if (posts_.empty() || context_.now_ns() < posts_.front().sent_ns + kPostNsMax) return;
  servers_.HangUp(posts_.front().server);
}

// Of the index word there is what tells the bucket, and the slot's signature.
KeyDigest TreeBuilder::DigestOf(const Wanted& wanted) {
  return {.index = uint64_t{wanted.slot.signature()} << 56 | wanted.index, .tag = wanted.tag};
}

// The frame that an item is read in: at each attempt the chunk's next one. Nothing: it is lost.
std::optional<FramePlace> TreeBuilder::PlaceOf(const Wanted& wanted) const {
  const Chunks& chunks = context_.state.chunks();
  const ChunkFrames& frames = chunks.all()[wanted.slot.chunk()].frames;
  const auto count = static_cast<size_t>(std::ranges::find(frames, kNoFrame) - frames.begin());
  if (count == 0) return std::nullopt;
  return chunks.ranges().PlaceOf(frames[wanted.attempt % count]);
}

// The next buckets' slots.
void TreeBuilder::Enumerate() {
  const HashIndex& hash = *context_.state.hash();
  const uint64_t end = std::min(next_bucket_ + kBucketsAtOnce, hash.buckets());
  std::vector<Wanted> found;
  hash.ForEach(next_bucket_, end, [&](uint32_t index, uint64_t tag, Slot slot) {
    found.push_back({.slot = slot, .index = index, .tag = tag});
  });
  next_bucket_ = end;
  Enqueue(std::move(found));
}

void TreeBuilder::Enqueue(std::vector<Wanted> found) {
  std::map<uint32_t, std::vector<Wanted>> by_server;
  for (const Wanted& one : found) {
    const auto place = PlaceOf(one);
    if (!place) {
      context_.state.RemoveUnknowable(DigestOf(one), one.slot);
      continue;
    }
    std::vector<Wanted>& wanted = by_server[place->server];
    wanted.push_back(one);
    if (wanted.size() == context_.keys_per_step) waiting_.push_back(std::exchange(wanted, {}));
  }
  for (auto& [server, wanted] : by_server) {
    if (!wanted.empty()) waiting_.push_back(std::move(wanted));
  }
}

void TreeBuilder::TryElsewhere(std::vector<Wanted> wanted) {
  const auto place = PlaceOf(wanted.front());
  if (place) paused_until_ns_[place->server] = context_.now_ns() + kPauseNs;
  for (Wanted& one : wanted) ++one.attempt;
  Enqueue(std::move(wanted));
}

// False: there is no connection now. The items are of one server, or were: a frame may have gone.
bool TreeBuilder::Send(std::vector<Wanted>& wanted) {
  const auto first = PlaceOf(wanted.front());
  const auto address = context_.map.memory_servers.find(first ? first->server : 0);
  if (address == context_.map.memory_servers.end()) return false;
  const rma::PeerId peer = servers_.Find(address->first, address->second, context_.now_ns());
  if (peer == 0) return false;
  size_t bytes = 0;
  for (const Wanted& item : wanted) bytes += BytesWithKey(item.slot);
  Post post = {.token = next_token_++,
               .server = first->server,
               .sent_ns = context_.now_ns(),
               .wanted = {},
               .bytes = std::make_unique_for_overwrite<std::byte[]>(bytes)};
  std::vector<rma::Operation> operations;
  std::vector<Wanted> elsewhere;
  std::byte* at = post.bytes.get();
  for (Wanted& item : wanted) {
    const auto place = PlaceOf(item);
    if (!place || place->server != first->server) {
      elsewhere.push_back(item);
      continue;
    }
    item.bytes = at;
    item.size = BytesWithKey(item.slot);
    at += item.size;
    operations.push_back({.kind = rma::Operation::Kind::kRead,
                          .region = 0,
                          .offset = place->offset + item.slot.offset(),
                          .bytes = item.size,
                          .local = item.bytes});
    post.wanted.push_back(item);
  }
  context_.endpoint.Post(peer, post.token, operations);
  posts_.push_back(std::move(post));
  if (!elsewhere.empty()) Enqueue(std::move(elsewhere));
  return true;
}

bool TreeBuilder::HandleDone(const rma::Event& event) {
  const auto post = std::ranges::find(posts_, event.token, &Post::token);
  if (post == posts_.end()) return false;
  if (event.status.ok()) {
    done_.push_back(std::move(*post));
  } else {
    TryElsewhere(std::move(post->wanted));
  }
  posts_.erase(post);
  return true;
}

void TreeBuilder::Add(const Post& post) {
  const HashIndex& hash = *context_.state.hash();
  digests_.clear();
  for (const Wanted& wanted : post.wanted) {
    const std::string_view key = KeyToldBy({wanted.bytes, wanted.size});
    digests_.push_back(pool::DigestOf(context_.state.keys(), key));
    hash.Prefetch(digests_.back());
  }
  batch_.Clear();
  std::vector<Wanted> elsewhere;
  for (size_t i = 0; i < post.wanted.size(); ++i) {
    const Wanted& wanted = post.wanted[i];
    // If the slot is the key's still, its chunk was not recycled, and the bytes are the item's.
    if (hash.Find(digests_[i]) == wanted.slot) {
      batch_.Put(KeyToldBy({wanted.bytes, wanted.size}), BytesOf(wanted.slot));
    } else if (hash.Find(DigestOf(wanted)) == wanted.slot) {
      // Another server is at the address.
      elsewhere.push_back(wanted);
    }
  }
  tree_.Execute(batch_);
  batch_.Clear();
  if (!elsewhere.empty()) TryElsewhere(std::move(elsewhere));
}

}  // namespace skep::pool
