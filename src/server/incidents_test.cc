#include "server/incidents.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>

namespace skep {
namespace {

struct Log {
  std::ostringstream text;
  spdlog::logger logger{"test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)};

  Log() { logger.set_pattern("%v"); }
};

// Goal: the first incident is logged at once, then one line a minute has their number; kinds do not
// wait for each other.
TEST(Incidents, AreToldOnceAMinute) {
  Log log;
  Incidents incidents;
  incidents.Report(Incident::kWebPage, 5, log.logger, "a page");
  EXPECT_EQ(log.text.str(), "a page\n");
  for (uint64_t ms = 6; ms < 5 + Incidents::kPauseMs; ms += 100) {
    incidents.Report(Incident::kWebPage, ms, log.logger, "a page");
  }
  EXPECT_EQ(log.text.str(), "a page\n");
  incidents.Report(Incident::kStranger, 7, log.logger, "a stranger");
  EXPECT_EQ(log.text.str(), "a page\na stranger\n");
  incidents.Report(Incident::kWebPage, 5 + Incidents::kPauseMs, log.logger, "a page");
  EXPECT_EQ(log.text.str(), "a page\na stranger\na page (600 more like it were not logged)\n");
}

// Goal: when incidents are over, the log says so, once, with the rest of their number; then reports
// begin anew.
TEST(Incidents, TheEndIsTold) {
  Log log;
  Incidents incidents;
  incidents.ReportWhatIsOver(5, log.logger);
  incidents.Report(Incident::kWrongPassword, 10, log.logger, "wrong");
  for (int i = 0; i < 7; ++i) incidents.Report(Incident::kWrongPassword, 500, log.logger, "wrong");
  incidents.ReportWhatIsOver(499 + Incidents::kPauseMs, log.logger);
  EXPECT_EQ(log.text.str(), "wrong\n");
  incidents.ReportWhatIsOver(500 + Incidents::kPauseMs, log.logger);
  incidents.ReportWhatIsOver(501 + Incidents::kPauseMs, log.logger);
  EXPECT_EQ(log.text.str(), "wrong\nwrong passwords: none for a minute; 7 were not logged\n");
  incidents.Report(Incident::kWrongPassword, 502 + Incidents::kPauseMs, log.logger, "again");
  EXPECT_TRUE(log.text.str().ends_with("\nagain\n"));
}

// Goal: the log grows by a bounded amount, however many incidents come.
TEST(Incidents, TheLogIsBounded) {
  Log log;
  Incidents incidents;
  constexpr uint64_t kHourMs = 3'600'000;
  for (uint64_t ms = 0; ms < kHourMs; ms += 5) {
    incidents.Report(Incident::kQueryTooLong, ms, log.logger, "too long");
  }
  EXPECT_EQ(std::ranges::count(log.text.str(), '\n'), 60);
}

}  // namespace
}  // namespace skep
