#include "base/epochs.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace skep {
namespace {

// Goal: an object that is retired while a reader runs stays until the reader has ended, and no
// longer.
TEST(Epochs, FreesWhenReadersHaveEnded) {
  Epochs epochs;
  int freed = 0;
  EXPECT_FALSE(epochs.Reclaim());
  auto before = std::make_unique<Epochs::Guard>(epochs);
  epochs.Retire([&] { ++freed; });
  EXPECT_TRUE(epochs.Reclaim());
  EXPECT_EQ(freed, 0);
  auto after = std::make_unique<Epochs::Guard>(epochs);
  before.reset();
  // Reclaim() may once take the later reader for one that could have the object.
  epochs.Reclaim();
  after.reset();
  EXPECT_FALSE(epochs.Reclaim());
  EXPECT_EQ(freed, 1);
  epochs.Retire([&] { ++freed; });
  EXPECT_FALSE(epochs.Reclaim());
  EXPECT_EQ(freed, 2);
}

// Goal: readers that come and go without a pause do not keep retired objects.
TEST(Epochs, OverlappingReadersKeepNothing) {
  Epochs epochs;
  int freed = 0;
  auto reader = std::make_unique<Epochs::Guard>(epochs);
  epochs.Retire([&] { ++freed; });
  for (int i = 0; i < 4; ++i) {
    auto next = std::make_unique<Epochs::Guard>(epochs);
    reader = std::move(next);
    epochs.Reclaim();
  }
  EXPECT_EQ(freed, 1);
}

TEST(Epochs, FreesTheRestInTheEnd) {
  int freed = 0;
  {
    Epochs epochs;
    epochs.Retire([&] { ++freed; });
  }
  EXPECT_EQ(freed, 1);
}

// Goal: no thread reads an object that is freed.
// Method: threads read through a pointer that others replace; a freed object says so.
TEST(Epochs, NobodyReadsWhatIsFreed) {
  struct Object {
    std::atomic<bool> is_alive{true};
  };
  Epochs epochs;
  std::atomic<Object*> current{new Object};
  std::atomic<bool> stop{false};
  std::vector<std::jthread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const Epochs::Guard guard(epochs);
        const Object* const object = current.load();
        for (int looks = 0; looks < 10; ++looks) ASSERT_TRUE(object->is_alive.load());
      }
    });
  }
  std::vector<std::unique_ptr<Object>> dead;
  for (int i = 0; i < 3000; ++i) {
    Object* const old = current.exchange(new Object);
    epochs.Retire([&, old] {
      old->is_alive = false;
      dead.emplace_back(old);
    });
    if (i % 3 == 0) epochs.Reclaim();
  }
  stop = true;
  readers.clear();
  while (epochs.Reclaim()) {
  }
  EXPECT_EQ(dead.size(), 3000u);
  delete current.load();
}

}  // namespace
}  // namespace skep
