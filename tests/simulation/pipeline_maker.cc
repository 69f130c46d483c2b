#include "tests/simulation/pipeline_maker.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace skep::simulation {
namespace {

constexpr uint64_t kKeys = 12;

// Returns the inline form of a command, with every byte quoted that needs it.
std::string Inline(const std::vector<std::string>& args) {
  std::string line;
  for (const std::string& arg : args) {
    line += line.empty() ? "\"" : " \"";
    for (const char c : arg) {
      if (c == '"' || c == '\\') {
        line += fmt::format("\\{}", c);
      } else if (c >= ' ' && c <= '~') {
        line += c;
      } else {
        line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
    line += '"';
  }
  return line + "\r\n";
}

size_t BytesOf(const std::vector<std::string>& args) {
  size_t bytes = 0;
  for (const std::string& arg : args) bytes += arg.size();
  return bytes;
}

}  // namespace

Pipeline PipelineMaker::First() {
  Pipeline pipeline;
  for (const char* database : {"1", "0"}) {
    Add(pipeline, {"SELECT", database});
    Add(pipeline, {"MSET", prefix_ + "!", "first", prefix_ + "~", "last"});
  }
  return pipeline;
}

Pipeline PipelineMaker::Next(size_t commands) {
  Pipeline pipeline;
  for (size_t i = 0; i < commands; ++i) Add(pipeline, Command());
  return pipeline;
}

void PipelineMaker::Add(Pipeline& pipeline, Args args) {
  constexpr size_t kInlineBytesMax = 10'000;
  pipeline.expected.push_back(oracle_.Execute(args));
  if (random_.Chance(1, 20) && BytesOf(args) < kInlineBytesMax) {
    pipeline.bytes += Inline(args);
  } else {
    const std::vector<std::string_view> views(args.begin(), args.end());
    AppendCommand(pipeline.bytes, views);
  }
  pipeline.commands.push_back(std::move(args));
}

PipelineMaker::Args PipelineMaker::Command() {
  switch (random_.Below(20)) {
    case 0:
      return Local();
    case 1:
      return Wrong();
    case 2:
      return Scan();
    case 3:
    case 4:
      return Many();
    case 5:
    case 6:
    case 7:
      return Range();
    case 8:
      if (is_own_database()) return OwnDatabase();
      [[fallthrough]];
    default:
      return Point();
  }
}

std::string PipelineMaker::Key() {
  const uint64_t index = random_.Below(kKeys);
  std::string key = fmt::format("{}k{}", prefix_, index);
  if (index == 3) key += std::string("\0\r\n\xff", 4);
  return key;
}

std::string PipelineMaker::Value() {
  switch (random_.Below(12)) {
    case 0:
      return "";
    case 1:
      return std::string("a\r\nb\0c\xfe", 7);
    case 2:
      return std::string(1 + random_.Below(300), 'v');
    case 3:
      if (random_.Chance(1, 10)) return std::string(random_.Below(90'000), 'w');
      [[fallthrough]];
    default:
      return std::to_string(random_.Below(1000));
  }
}

PipelineMaker::Args PipelineMaker::Point() {
  switch (random_.Below(16)) {
    case 0:
      return {"SET", Key(), Value(), "NX"};
    case 1:
      return {"SET", Key(), Value(), "XX"};
    case 2:
      return {"SET", Key(), Value(), "GET"};
    case 3:
      return {"SET", Key(), Value(), "NX", "GET"};
    case 4:
      return {"SETNX", Key(), Value()};
    case 5:
      return {"GETSET", Key(), Value()};
    case 6:
      return {"GETDEL", Key()};
    case 7:
      return {"APPEND", Key(), random_.Chance(1, 2) ? "7" : "x"};
    case 8:
      return {"STRLEN", Key()};
    case 9:
      return {"TYPE", Key()};
    case 10:
      return {random_.Chance(1, 2) ? "INCR" : "DECR", Key()};
    case 11:
      return {"INCRBY", Key(), std::to_string(random_.Below(100))};
    case 12:
      return {"DEL", Key()};
    case 13:
      return {"GET", Key()};
    default:
      return {"SET", Key(), Value()};
  }
}

PipelineMaker::Args PipelineMaker::Many() {
  constexpr std::array kNames = {"MGET", "EXISTS", "DEL", "UNLINK", "MSET", "MSETNX"};
  if (random_.Chance(1, 4)) return {random_.Chance(1, 2) ? "RENAME" : "RENAMENX", Key(), Key()};
  Args args = {kNames[random_.Below(kNames.size())]};
  const bool pairs = args[0].starts_with("MSET");
  for (uint64_t i = 1 + random_.Below(3); i > 0; --i) {
    args.push_back(Key());
    if (pairs) args.push_back(Value());
  }
  return args;
}

PipelineMaker::Args PipelineMaker::RangeOf(const char* name) {
  if (random_.Chance(1, 4)) return {name, "PREFIX", prefix_ + "k"};
  if (random_.Chance(1, 6)) return {name, "PREFIX", prefix_ + "k1"};
  if (is_own_database() && random_.Chance(1, 3)) return {name, "-", "+"};
  return {name, fmt::format("{}{}", random_.Chance(1, 2) ? '[' : '(', Key()),
          fmt::format("{}{}", random_.Chance(1, 2) ? '[' : '(', Key())};
}

PipelineMaker::Args PipelineMaker::Range() {
  switch (random_.Below(10)) {
    case 0:
      return RangeOf("KCOUNT");
    case 1: {
      Args args = RangeOf("KDELRANGE");
      if (random_.Chance(2, 3))
        args.insert(args.end(), {"LIMIT", std::to_string(random_.Below(4))});
      return args;
    }
    case 2:
      return {"KEYS", prefix_ + (random_.Chance(1, 2) ? "k1*" : "*")};
    case 3:
      return {"KFLOOR", Key()};
    case 4:
      return {"KFLOOR", Key(), "WITHVALUE"};
    case 5:
      return {"KCEIL", Key()};
    case 6:
      return {"KCEIL", Key(), "WITHVALUE"};
    default: {
      Args args = RangeOf("KRANGE");
      if (random_.Chance(1, 3)) args.push_back("REV");
      if (random_.Chance(1, 3)) {
        const int64_t count = static_cast<int64_t>(random_.Below(6)) - 1;
        const int64_t offset = static_cast<int64_t>(random_.Below(5)) - 1;
        args.insert(args.end(), {"LIMIT", std::to_string(offset), std::to_string(count)});
      }
      if (random_.Chance(1, 2)) args.push_back("WITHVALUES");
      return args;
    }
  }
}

PipelineMaker::Args PipelineMaker::Scan() {
  const std::string count = std::to_string(1 + random_.Below(5));
  const auto token = oracle_.SomeToken();
  if (token && token->command == "KSCAN") return {"KSCAN", "NEXT", token->text};
  if (token) return {"SCAN", token->text, "MATCH", prefix_ + "*", "COUNT", count};
  if (random_.Chance(1, 2)) return {"SCAN", "0", "MATCH", prefix_ + "*", "COUNT", count};
  Args args = RangeOf("KSCAN");
  args.insert(args.end(), {"COUNT", count});
  if (random_.Chance(1, 2)) args.push_back("WITHVALUES");
  if (random_.Chance(1, 3)) args.push_back("REV");
  return args;
}

PipelineMaker::Args PipelineMaker::Local() {
  switch (random_.Below(9)) {
    case 0:
      return {"PING"};
    case 1:
      return {"PING", Value()};
    case 2:
      return {"ECHO", Value()};
    case 3:
      return {"CLIENT", "SETNAME", fmt::format("name{}", random_.Below(10))};
    case 4:
      return {"CLIENT", "GETNAME"};
    case 5:
      return {"HELLO", random_.Chance(1, 2) ? "2" : "3"};
    case 6:
      return {"RESET"};
    default:
      return {"SELECT", std::to_string(std::array{0u, 1u, 8u + id_}[random_.Below(3)])};
  }
}

PipelineMaker::Args PipelineMaker::Wrong() {
  switch (random_.Below(7)) {
    case 0:
      return {"NOSUCH", "a", "b"};
    case 1:
      return {"GET"};
    case 2:
      return {"SET", Key(), Value(), "BOGUS"};
    case 3:
      return {"INCRBY", Key(), "1.5"};
    case 4:
      return {"KRANGE", "bad", "+"};
    case 5:
      return {"MSET", Key(), Value(), Key()};
    default:
      return {"SELECT", "99"};
  }
}

PipelineMaker::Args PipelineMaker::OwnDatabase() {
  constexpr std::array kNames = {"DBSIZE", "DBSIZE", "RANDOMKEY", "KFIRST", "KLAST", "FLUSHDB"};
  return {kNames[random_.Below(kNames.size())]};
}

}  // namespace skep::simulation
