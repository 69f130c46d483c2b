// Calls on large lists that look at segments and leave them as they are.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "collections/testing/collection_world_test.h"
#include "collections/testing/half_published_test.h"

namespace skep::collections {
namespace {

// Enough that the ends of the list are in different leaves.
constexpr int kElements = 300;
// Longer than a segment: each element has one of its own.
constexpr size_t kElementBytes = 9000;

std::string Element(int number) {
  std::string element = std::to_string(number) + ":";
  element.resize(kElementBytes, 'x');
  return element;
}

const std::string kLeft = TextsOperand({"left", "left"});
const std::string kRight = TextsOperand({"right", "right"});

void Add(Batch& batch, const char* function, const Words& words) {
  batch.Apply("l", Named(function), batch.scratch().Copy(TextsOperand(words)));
}

void Fill(Engine& engine) {
  Batch batch;
  for (int i = 0; i < kElements; ++i) Add(batch, "list-push-right", {Element(0)});
  engine.Execute(batch);
}

// A large list whose first and last element each write makes the same.
HalfPublished::Scene List(std::function<std::string(Engine&)> read) {
  return {.fill = Fill,
          .write =
              [](Engine& engine, int number) {
                Batch batch;
                Add(batch, "list-pop-left", {"1"});
                Add(batch, "list-push-left", {Element(number)});
                Add(batch, "list-pop-right", {"1"});
                Add(batch, "list-push-right", {Element(number)});
                engine.Execute(batch);
              },
          .write_near =
              [](Engine& engine, int number) {
                const bool is_left = number % 3 == 0;
                Batch push;
                Add(push, is_left ? "list-push-left" : "list-push-right", {Element(-number)});
                engine.Execute(push);
                Batch pop;
                Add(pop, is_left ? "list-pop-left" : "list-pop-right", {"1"});
                engine.Execute(pop);
              },
          .read = std::move(read)};
}

// What two slots have returned, as texts.
std::string Both(const Batch& batch, uint32_t first, uint32_t second) {
  return TextsOperand(
      {std::string(batch.outcome(first).value), std::string(batch.outcome(second).value)});
}

// Goal: calls that look at both ends of a list, and change nothing, see one state of it.
TEST(HalfPublishedLists, AreNotSeenByCalls) {
  HalfPublished(List([](Engine& engine) {
    Batch batch;
    batch.Apply("l", Named("list-rotate"), kLeft);
    batch.Apply("l", Named("list-rotate"), kRight);
    engine.Execute(batch);
    return Both(batch, 0, 1);
  })).Run();
}

// Goal: the same in an atomic batch that writes another key.
TEST(HalfPublishedLists, AreNotSeenByAtomicBatches) {
  HalfPublished(List([](Engine& engine) {
    Batch batch(Batch::Kind::kAtomic);
    batch.Apply("l", Named("list-rotate"), kLeft);
    batch.Apply("l", Named("list-rotate"), kRight);
    batch.Put("third", "value");
    engine.Execute(batch);
    return Both(batch, 0, 1);
  })).Run();
}

// Goal: a call that looks at one end sees the state that calls change at the other one.
TEST(HalfPublishedLists, AreNotSeenByCallsBesideChanges) {
  HalfPublished(List([](Engine& engine) {
    Batch batch;
    batch.Apply("l", Named("list-rotate"), kLeft);
    batch.Apply("l", Named("list-rotate"), kRight);
    Add(batch, "list-push-left", {"more"});
    Add(batch, "list-pop-left", {"1"});
    engine.Execute(batch);
    return Both(batch, 0, 1);
  })).Run();
}

// Goal: pops that empty segments, which are deleted, take elements of one state.
TEST(HalfPublishedLists, AreNotTakenByPops) {
  HalfPublished(List([](Engine& engine) {
    Batch batch;
    Add(batch, "list-pop-left", {"1"});
    Add(batch, "list-pop-right", {"1"});
    engine.Execute(batch);
    return Both(batch, 0, 1);
  })).Run();
}

// Goal: pops of all elements, behind which the list is deleted, take elements of one state.
TEST(HalfPublishedLists, AreNotTakenByPopsOfAll) {
  HalfPublished(List([](Engine& engine) {
    Batch batch;
    Add(batch, "list-pop-left", {"1"});
    Add(batch, "list-pop-right", {"1"});
    Add(batch, "list-pop-left", {std::to_string(kElements)});
    engine.Execute(batch);
    Fill(engine);
    return Both(batch, 0, 1);
  })).Run();
}

}  // namespace
}  // namespace skep::collections
