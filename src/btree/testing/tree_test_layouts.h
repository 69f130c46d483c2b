// tree_test_layouts.h: runs tests of the tree on each layout of its nodes.
//
//   class Expiry : public OnEachLayout {};
//   TEST_P(Expiry, IsSoAndSo) { TestTree tree; ... }  // a tree of the layout
//   INSTANTIATE_TEST_SUITE_P(Layouts, Expiry, EachLayout(), LayoutName);
//
// OnEachLayoutWith<Case> is for suites with a parameter of their own.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "btree/heads/head_layout.h"
#include "btree/paper/paper_layout.h"
#include "skep/options.h"

namespace skep::btree {

// While an object lives, trees for tests have its layout. Owner: a fixture, of which one exists at
// a time.
class LayoutOfTest {
 public:
  explicit LayoutOfTest(NodeLayout layout) { current_ = layout; }
  ~LayoutOfTest() { current_ = BtreeOptions{}.layout; }
  LayoutOfTest(const LayoutOfTest&) = delete;
  LayoutOfTest& operator=(const LayoutOfTest&) = delete;

  static NodeLayout current() { return current_; }

 private:
  static inline NodeLayout current_ = BtreeOptions{}.layout;
};

// Calls visit<Layout>() with the class of the current layout.
template <class Visit>
auto VisitLayoutOfTest(Visit visit) {
  return LayoutOfTest::current() == NodeLayout::kHeads ? visit.template operator()<HeadLayout>()
                                                       : visit.template operator()<PaperLayout>();
}

inline const char* NameOf(NodeLayout layout) {
  return layout == NodeLayout::kHeads ? "Heads" : "Paper";
}
inline auto EachLayout() { return testing::Values(NodeLayout::kHeads, NodeLayout::kPaper); }
inline std::string LayoutName(const testing::TestParamInfo<NodeLayout>& info) {
  return NameOf(info.param);
}

class OnEachLayout : public testing::TestWithParam<NodeLayout> {
 private:
  LayoutOfTest layout_{GetParam()};
};

template <typename Case>
using LayoutAndCase = std::tuple<NodeLayout, Case>;

template <typename Case>
class OnEachLayoutWith : public testing::TestWithParam<LayoutAndCase<Case>> {
 protected:
  static const Case& GetCase() {
    return std::get<1>(testing::TestWithParam<LayoutAndCase<Case>>::GetParam());
  }

 private:
  LayoutOfTest layout_{std::get<0>(testing::TestWithParam<LayoutAndCase<Case>>::GetParam())};
};

// Each layout with each of the cases, which have names.
template <typename Cases>
auto EachLayoutWith(const Cases& cases) {
  return testing::Combine(EachLayout(), testing::ValuesIn(cases));
}
template <typename Case>
std::string LayoutAndCaseName(const testing::TestParamInfo<LayoutAndCase<Case>>& info) {
  return std::get<1>(info.param).name + std::string("_") + NameOf(std::get<0>(info.param));
}

}  // namespace skep::btree
