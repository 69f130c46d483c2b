// Tests what an observer of writes is promised (watches.h): it is told before a write can be seen.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "btree/testing/tree_test_tree.h"

namespace skep::btree {
namespace {

// Reads a key whenever it is told that the key, or a range, will be written.
class Peeker final : public WriteObserver {
 public:
  Peeker(TestTree& tree, std::string key) : tree_(tree), key_(std::move(key)) {}

  void WillWrite(std::string_view key) noexcept override {
    if (key == key_) seen_.push_back(tree_.Get(key_));
  }
  void WillWriteRange() noexcept override { seen_.push_back(tree_.Get(key_)); }

  // The values since the last call.
  std::vector<std::optional<std::string>> Take() { return std::exchange(seen_, {}); }

 private:
  TestTree& tree_;
  const std::string key_;
  std::vector<std::optional<std::string>> seen_;
};

class Observers : public OnEachLayout {
 protected:
  static constexpr int kKeys = 400;

  static std::string Key(int number) { return "key" + std::to_string(1000 + number); }

  Observers() : peeker_(tree_, key_) {
    for (int i = 0; i < kKeys; ++i) tree_.Put(Key(i), std::string(40, 'v'));
    EXPECT_TRUE(tree_.engine().Observe(&peeker_));
  }

  // Executes the batch, which changes the key. Until then readers see the value before.
  void ExpectToldBefore(Batch& batch, const char* what) {
    SCOPED_TRACE(what);
    const std::optional<std::string> before = tree_.Get(key_);
    peeker_.Take();
    tree_.Execute(batch);
    const auto seen = peeker_.Take();
    EXPECT_FALSE(seen.empty());
    for (const auto& value : seen) EXPECT_EQ(value, before);
    EXPECT_NE(tree_.Get(key_), before);
  }
  void ExpectToldBefore(const Request& request, const char* what) {
    Batch batch;
    batch.Add(request);
    ExpectToldBefore(batch, what);
  }

  const std::string key_ = Key(kKeys / 2);
  TestTree tree_;
  Peeker peeker_;
};

// Goal: a reader that the observer has kept from an old value cannot have seen the new one, nor can
// one that it has not kept from the old value have missed it.
// Method: inside the observer's call the key is read: it must have the value from before.
// Writes until leaves were merged and split; deletes; an atomic batch; ranges in a leaf, over
// subtrees, and of everything.
TEST_P(Observers, AreToldBeforeAWriteIsSeen) {
  for (int i = 0; i < 50; ++i) {
    const std::string value = std::to_string(i) + std::string(static_cast<size_t>(i) * 40, 'w');
    ExpectToldBefore({.op = Op::kPut, .key = key_, .value = value}, "put");
    tree_.Put(key_ + "." + std::to_string(i), value);
  }
  ExpectToldBefore({.op = Op::kExpire, .key = key_, .deadline_ms = 1}, "expire");
  ExpectToldBefore({.op = Op::kInsert, .key = key_, .value = "inserted"}, "insert");
  ExpectToldBefore({.op = Op::kDelete, .key = key_}, "delete");
  const std::string first = Key(1), low = Key(20), high = Key(kKeys - 20), next = key_ + "!";
  Batch atomic(Batch::Kind::kAtomic);
  atomic.Put(key_, "atomic");
  atomic.Put(first, "atomic");
  ExpectToldBefore(atomic, "atomic batch");
  Batch move(Batch::Kind::kAtomic);
  move.Move(key_, first);
  ExpectToldBefore(move, "move");
  tree_.Put(key_, "again");
  Batch range;
  range.DeleteRange(Range::Between(key_, next));
  ExpectToldBefore(range, "range in a leaf");
  tree_.Put(key_, "again");
  Batch wide;
  wide.DeleteRange(Range::Between(low, high));
  ExpectToldBefore(wide, "range over leaves");
  tree_.Put(key_, "again");
  Batch all;
  all.DeleteAll();
  ExpectToldBefore(all, "everything");
}

INSTANTIATE_TEST_SUITE_P(Layouts, Observers, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
