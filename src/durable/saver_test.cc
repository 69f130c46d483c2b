// Snapshots that were asked for: what is told of them from the asking on.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/temporary_directory_test.h"
#include "durable/persistence.h"

namespace skep::durable {
namespace {

// Goal: who has asked for a snapshot and looks whether it is being written sees it until it is
// written, also before the thread that writes it has begun. Method: that thread's steps by hand.
TEST(Saver, IsSavingFromTheAskingOn) {
  const TemporaryDirectory directory;
  const Options options{.directory = directory.path(), .log_segment_bytes = uint64_t{1} << 20};
  std::string problem;
  const auto persistence =
      std::move(*Persistence::Open(PosixFileSystem(), SystemClock(), options, &problem));
  const auto keyspaces = std::move(*Keyspaces::Make(options, nullptr, persistence.get()));
  RecoveryReport report;
  ASSERT_TRUE(persistence->Recover(*keyspaces, &report, &problem).ok()) << problem;

  EXPECT_FALSE(persistence->snapshots().is_saving);
  EXPECT_TRUE(persistence->RequestSave());
  EXPECT_TRUE(persistence->snapshots().is_saving);
  EXPECT_FALSE(persistence->RequestSave());
  EXPECT_TRUE(persistence->StepSaver());
  EXPECT_FALSE(persistence->snapshots().is_saving);
  EXPECT_EQ(persistence->snapshots().finished, 1u);
  EXPECT_TRUE(persistence->snapshots().last_status.ok());
  EXPECT_TRUE(persistence->RequestSave());
  EXPECT_TRUE(persistence->StepSaver());
  EXPECT_TRUE(persistence->Close().ok());
}

}  // namespace
}  // namespace skep::durable
