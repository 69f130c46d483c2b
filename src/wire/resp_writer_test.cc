#include "wire/resp_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace skep {
namespace {

using namespace std::string_literals;

std::string Write(int protocol, const std::function<void(RespWriter&)>& write) {
  std::string out = "before";
  RespWriter writer(out, protocol);
  write(writer);
  EXPECT_TRUE(out.starts_with("before"));
  return out.substr(6);
}

// Goal: each call appends exactly the protocol's bytes, in both versions.
// Method: a table, written from the protocol's documents and not with the writer's own functions.
TEST(RespWriter, WritesTheBytesOfBothProtocols) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const struct {
    std::function<void(RespWriter&)> write;
    std::string resp2;
    std::string resp3;
  } kCases[] = {
      {[](auto& w) { w.SimpleString("OK"); }, "+OK\r\n", "+OK\r\n"},
      {[](auto& w) { w.SimpleString(""); }, "+\r\n", "+\r\n"},
      {[](auto& w) { w.Error("ERR no"); }, "-ERR no\r\n", "-ERR no\r\n"},
      {[](auto& w) { w.Error("ERR a\r\nb\n"); }, "-ERR a  b \r\n", "-ERR a  b \r\n"},
      {[](auto& w) { w.Integer(0); }, ":0\r\n", ":0\r\n"},
      {[](auto& w) { w.Integer(9); }, ":9\r\n", ":9\r\n"},
      {[](auto& w) { w.Integer(10); }, ":10\r\n", ":10\r\n"},
      {[](auto& w) { w.Integer(-1); }, ":-1\r\n", ":-1\r\n"},
      {[](auto& w) { w.Integer(kMin); }, ":-9223372036854775808\r\n", ":-9223372036854775808\r\n"},
      {[](auto& w) { w.Bulk(""); }, "$0\r\n\r\n", "$0\r\n\r\n"},
      {[](auto& w) { w.Bulk("a\r\nb\0"s); }, "$5\r\na\r\nb\0\r\n"s, "$5\r\na\r\nb\0\r\n"s},
      {[](auto& w) { w.Null(); }, "$-1\r\n", "_\r\n"},
      {[](auto& w) { w.NullArray(); }, "*-1\r\n", "_\r\n"},
      {[](auto& w) { w.Array(0); }, "*0\r\n", "*0\r\n"},
      {[](auto& w) { w.Array(1234567); }, "*1234567\r\n", "*1234567\r\n"},
      {[](auto& w) { w.Map(6); }, "*12\r\n", "%6\r\n"},
      {[](auto& w) { w.Set(3); }, "*3\r\n", "~3\r\n"},
      {[](auto& w) { w.Push(2); }, "*2\r\n", ">2\r\n"},
      {[](auto& w) { w.Boolean(true); }, ":1\r\n", "#t\r\n"},
      {[](auto& w) { w.Boolean(false); }, ":0\r\n", "#f\r\n"},
      {[](auto& w) { w.Double(3); }, "$1\r\n3\r\n", ",3\r\n"},
      {[](auto& w) { w.Double(0.1); }, "$3\r\n0.1\r\n", ",0.1\r\n"},
      {[](auto& w) { w.Double(-kInfinity); }, "$4\r\n-inf\r\n", ",-inf\r\n"},
      {[](auto& w) { w.Double(kInfinity); }, "$3\r\ninf\r\n", ",inf\r\n"},
      {[](auto& w) { w.Double(std::nan("")); }, "$3\r\nnan\r\n", ",nan\r\n"},
      {[](auto& w) { w.Double(-std::nan("")); }, "$3\r\nnan\r\n", ",nan\r\n"},
      {[](auto& w) { w.Double(-2.2250738585072014e-308); }, "$24\r\n-2.2250738585072014e-308\r\n",
       ",-2.2250738585072014e-308\r\n"},
      {[](auto& w) { w.Verbatim("txt", "a b"); }, "$3\r\na b\r\n", "=7\r\ntxt:a b\r\n"},
      {[](auto& w) { w.BigNumber("-12"); }, "$3\r\n-12\r\n", "(-12\r\n"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Write(2, c.write), c.resp2);
    EXPECT_EQ(Write(3, c.write), c.resp3);
  }
}

// Goal: many small replies cost a logarithm of reallocations, not one each.
TEST(RespWriter, GrowthIsGeometric) {
  std::string out;
  RespWriter writer(out, 2);
  size_t capacity = out.capacity();
  int growths = 0;
  for (int i = 0; i < 100'000; ++i) {
    writer.Bulk("value");
    growths += out.capacity() != capacity;
    capacity = out.capacity();
  }
  EXPECT_LT(growths, 32);
}

}  // namespace
}  // namespace skep
