// Names in order, and the separators of a part in blocks of them.
#include "collections/ordered_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace skep::collections {
namespace {

// Goal: the floor of a place is right, whatever names come and go, also where many names have the
// same head, have no byte behind what all begin with, or have zeros there.
// Method: names of few letters, a zero among them, behind a beginning that most have; beside a
// sorted vector. The beginning is longer or shorter than a head.
TEST(OrderedNames, FindTheFloor) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (const std::string beginning : {"", "key:", "a beginning that is longer than a head:"}) {
    const auto text = [&] {
      std::string bytes = rng() % 32 == 0 ? "" : beginning;
      for (size_t left = rng() % 12; left > 0; --left)
        bytes += std::string_view("\0ab\xff", 4)[rng() % 4];
      return bytes;
    };
    std::deque<std::string> kept;  // the bytes of names
    std::vector<std::string> model;
    OrderedNames names;
    for (int step = 0; step < 2000; ++step) {
      const std::string name = text();
      const auto at = std::ranges::lower_bound(model, name);
      const auto index = static_cast<size_t>(at - model.begin());
      const bool is_there = at != model.end() && *at == name;
      if (is_there && rng() % 2 == 0) {
        model.erase(at);
        names.Erase(index);
      } else if (!is_there) {
        model.insert(at, name);
        names.Insert(index, kept.emplace_back(name));
      }
      if (model.size() > 60) {
        const size_t middle = 1 + rng() % (model.size() - 1);
        OrderedNames tail;
        names.MoveTail(middle, tail);
        if (rng() % 2 == 0) {
          names = tail;
          model.erase(model.begin(), model.begin() + static_cast<ptrdiff_t>(middle));
        } else {
          model.resize(middle);
        }
      }
      ASSERT_EQ(names.size(), model.size());
      for (int i = 0; i < 4 && !model.empty(); ++i) {
        const std::string place = rng() % 2 == 0 ? text() : model[rng() % model.size()];
        const auto above = std::ranges::upper_bound(model, place) - model.begin();
        const auto floor = static_cast<size_t>(std::max<ptrdiff_t>(above - 1, 0));
        ASSERT_EQ(names.FindFloor(place), floor);
        ASSERT_EQ(names[floor], model[floor]);
      }
    }
  }
}

}  // namespace
}  // namespace skep::collections
