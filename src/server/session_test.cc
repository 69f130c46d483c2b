// What a session has of its own (session.h).
#include "server/session.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/memory_budget.h"
#include "server/side_thread.h"

namespace skep {
namespace {

// A job that has taken the input of a session.
class InputJob final : public SideJob {
 public:
  InputJob(Session& session, MemoryBudget& budget) : input_(session.TakeInput(budget)) {
    Hold(budget, input_.capacity());
  }

 private:
  void Run() override {}

  const std::string input_;
};

// Goal: input that a job takes is charged once, from the moment at which it is taken.
// Method: a session whose input was charged as a whole, with more that stays, and one whose input
// has grown since it was charged.
TEST(Session, InputThatAJobTakesIsChargedOnce) {
  constexpr uint64_t kInput = uint64_t{3} << 20;
  constexpr uint64_t kOther = 500;
  for (const bool has_grown : {false, true}) {
    MemoryBudget budget;
    Session session;
    session.in = std::string(kInput, 'x');
    const uint64_t taken = session.in.capacity();
    session.charged_bytes = has_grown ? kOther : taken + kOther;
    budget.Charge(session.charged_bytes);
    {
      const InputJob job(session, budget);
      EXPECT_EQ(budget.used(), session.charged_bytes + taken);
      EXPECT_EQ(session.charged_bytes, has_grown ? 0 : kOther);
      EXPECT_TRUE(session.in.empty());
    }
    EXPECT_EQ(budget.used(), session.charged_bytes);
    budget.Release(session.charged_bytes);
  }
}

}  // namespace
}  // namespace skep
