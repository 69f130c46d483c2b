// Question: what does a GET cost that reads its leaf out of another process's memory, so many
//           together?
// Sketch:   three steps, each of which brings some lines of every leaf: the head (front, header,
//           search line, some four lines of heads), the item, and row and version once more; these
//           two are in the cache by then. Six to eight lines of each leaf from DRAM, of which a
//           core has ten and more under way: 60 to 100 ns, and some 100 ns of instructions. Alone,
//           a leaf waits for each step's misses: 1 us.
// Compare:  `call` is the same batch executed by the engine in this process, with hints: what a
//           server does for it, without its sockets.
// Smoke:    CTest runs --benchmark_filter=keys:10000/ so the file cannot rot.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/temporary_directory_test.h"
#include "netindex/leaves/leaf_session.h"
#include "netindex/leaves/leaf_share.h"
#include "netindex/leaves/share_place.h"
#include "netindex/leaves/shared_tree_test.h"
#include "rma/fabrics.h"

namespace skep::leaves {
namespace {

constexpr size_t kQuestions = size_t{1} << 20;  // drawn before the clock starts

std::string KeyOf(uint64_t number) { return fmt::format("{:016}", number * 7); }

// A tree that is full of keys and values of 16 bytes, shared, and a session with it.
class World {
 public:
  explicit World(uint64_t keys) {
    auto load = tree_.engine().OpenBulkLoad();
    auto part = load->Open({}, std::nullopt);
    for (uint64_t i = 0; i < keys; ++i)
      SKEP_CHECK(part->Add(KeyOf(i), KeyOf(i), 0, kPlainType).ok());
    SKEP_CHECK(part->Finish().ok());
    part.reset();
    SKEP_CHECK(load->Finish().ok());
    std::string problem;
    share_ =
        *LeafShare::Open("mem:unix:" + directory_.path() + "/leaves", tree_.engine(), 1, &problem);
    fabric_ = *rma::MakeFabric("mem", &problem);
    session_ = *LeafSession::Make(*fabric_, ParseSharePlace(share_->place())->address, 1000,
                                  SystemClock());
    SKEP_CHECK(session_->Connect().ok());
    DrawQuestions(keys);
  }

  LeafSession& session() { return *session_; }
  Engine& engine() { return tree_.engine(); }
  const std::string& key(size_t i) const { return keys_[i % kQuestions]; }
  uint64_t link(size_t i) const { return links_[i % kQuestions]; }

 private:
  void DrawQuestions(uint64_t keys) {
    std::map<std::string, uint64_t> leaves;
    for (std::string from;;) {
      const LeafLinks some = LeafLinksOf(tree_.engine())->LinksFrom(from, 1000, 1 << 20);
      for (const LeafLink& link : some.links) leaves[std::string(link.lower)] = link.hint.bits;
      if (some.next.empty()) break;
      from = some.next;
    }
    std::mt19937_64 random(1);
    for (size_t i = 0; i < kQuestions; ++i) {
      keys_.push_back(KeyOf(random() % keys));
      links_.push_back(std::prev(leaves.upper_bound(keys_.back()))->second);
    }
  }

  TemporaryDirectory directory_;
  SharedTree tree_{BtreeOptions{.shared = true}};
  std::unique_ptr<LeafShare> share_;
  std::unique_ptr<rma::Fabric> fabric_;
  std::unique_ptr<LeafSession> session_;
  std::vector<std::string> keys_;
  std::vector<uint64_t> links_;
};

World& WorldOf(uint64_t keys) {
  static std::map<uint64_t, World> worlds;
  return worlds.try_emplace(keys, keys).first->second;
}

void BM_Read(benchmark::State& state) {
  World& world = WorldOf(static_cast<uint64_t>(state.range(0)));
  const auto depth = static_cast<size_t>(state.range(1));
  std::vector<LeafQuestion> questions(depth);
  size_t next = 0;
  uint64_t values = 0;
  for (auto _ : state) {
    for (LeafQuestion& question : questions) {
      question.key = world.key(next);
      question.link = world.link(next++);
    }
    world.session().Read(questions, 1);
    for (const LeafQuestion& question : questions) values += question.value.size();
  }
  state.SetItemsProcessed(state.iterations() * state.range(1));
  state.counters["value_bytes"] = static_cast<double>(values) / static_cast<double>(next);
}

void BM_Call(benchmark::State& state) {
  World& world = WorldOf(static_cast<uint64_t>(state.range(0)));
  const auto depth = static_cast<size_t>(state.range(1));
  Batch batch;
  size_t next = 0;
  uint64_t values = 0;
  for (auto _ : state) {
    batch.Clear();
    for (size_t i = 0; i < depth; ++i, ++next) {
      batch.Add({.op = Op::kGet, .key = world.key(next), .hint = {world.link(next)}});
    }
    world.engine().Execute(batch);
    for (uint32_t slot = 0; slot < depth; ++slot) values += batch.outcome(slot).value.size();
  }
  state.SetItemsProcessed(state.iterations() * state.range(1));
  state.counters["value_bytes"] = static_cast<double>(values) / static_cast<double>(next);
}

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"keys", "depth"});
  for (const int64_t keys : {10'000, 1'000'000, 8'000'000}) {
    for (const int64_t depth : {1, 16, 64, 128}) bench->Args({keys, depth});
  }
}
BENCHMARK(BM_Read)->Apply(Sizes);
BENCHMARK(BM_Call)->Apply(Sizes);

}  // namespace
}  // namespace skep::leaves
