#include "tools/cli/watch.h"

#include <gtest/gtest.h>

namespace skep::cli {
namespace {

TEST(Watch, FiguresOfInfo) {
  const InfoFigures figures = InfoFigures::Of(
      "# Clients\r\nconnected_clients:3\r\n# Memory\r\nused_memory:1048576\r\n"
      "used_memory_peak:9999999\r\n# Stats\r\ntotal_commands_processed:17\r\n"
      "total_connections_received:4\r\n# Keyspace\r\ndb0:keys=5,expires=1\r\n"
      "db15:keys=20,expires=0\r\ndb0_nodes:7\r\nno number:x\r\nnothing");
  EXPECT_EQ(figures.clients, 3u);
  EXPECT_EQ(figures.memory_bytes, 1048576u);
  EXPECT_EQ(figures.commands, 17u);
  EXPECT_EQ(figures.connections, 4u);
  EXPECT_EQ(figures.keys, 25u);
  EXPECT_EQ(InfoFigures::Of("").keys, 0u);
}

}  // namespace
}  // namespace skep::cli
