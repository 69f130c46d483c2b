#include "tests/simulation/command_oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "server/range_args.h"

namespace skep::simulation {

using Type = RespReply::Type;

namespace {

constexpr const char* kNotAnInteger = "ERR value is not an integer or out of range";

RespReply Text(Type type, std::string text) { return {.type = type, .text = std::move(text)}; }
RespReply Bulk(std::string text) { return Text(Type::kBulk, std::move(text)); }
RespReply Simple(std::string text) { return Text(Type::kSimple, std::move(text)); }
RespReply Error(std::string text) { return Text(Type::kError, std::move(text)); }
RespReply Integer(int64_t number) { return {.type = Type::kInteger, .integer = number}; }
RespReply Array() { return {.type = Type::kArray}; }

std::optional<int64_t> ParseNumber(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && std::to_string(number) == text ? std::optional(number) : std::nullopt;
}

bool IsAbove(const std::string& key, const std::string& min) {
  if (min == "-") return true;
  if (min == "+") return false;
  return min[0] == '[' ? key >= min.substr(1) : key > min.substr(1);
}

bool IsBelow(const std::string& key, const std::string& max) {
  if (max == "+") return true;
  if (max == "-") return false;
  return max[0] == '[' ? key <= max.substr(1) : key < max.substr(1);
}

bool Has(std::span<const std::string> args, std::string_view word) {
  return std::ranges::find(args, word) != args.end();
}

// Returns the number behind a word; nullopt if the word is missing.
std::optional<int64_t> NumberAfter(std::span<const std::string> args, std::string_view word,
                                   size_t distance = 1) {
  const auto at = std::ranges::find(args, word);
  if (at == args.end()) return std::nullopt;
  return ParseNumber(*(at + static_cast<ptrdiff_t>(distance)));
}

}  // namespace

bool Expected::Matches(const RespReply& got) const {
  switch (kind) {
    case Kind::kExact:
      return got == reply;
    case Kind::kHello:
      return got.type == reply.type && got.elements.size() == 14;
    case Kind::kChunk:
      return got.type == Type::kArray && got.elements.size() == 2 &&
             (got.elements[0].text == "0") == (scan == 0) && got.elements[1] == reply;
    case Kind::kMember:
      if (reply.elements.empty()) return got.is_null();
      return std::ranges::find(reply.elements, got) != reply.elements.end();
  }
  return false;
}

Expected CommandOracle::Execute(Args args) {
  using Group = std::optional<Expected> (CommandOracle::*)(Args);
  for (const Group group : {&CommandOracle::ExecuteLocal, &CommandOracle::ExecutePoint,
                            &CommandOracle::ExecuteMany, &CommandOracle::ExecuteRange}) {
    if (auto expected = (this->*group)(args)) return std::move(*expected);
  }
  std::string shown;
  for (const std::string& arg : args.subspan(1)) shown += fmt::format("'{}' ", arg);
  return {.reply = Error(fmt::format("ERR unknown command '{}', with args beginning with: {}",
                                     args[0], shown))};
}

std::optional<Expected> CommandOracle::ExecuteLocal(Args args) {
  const std::string& name = args[0];
  if (name == "PING") {
    return Expected{.reply = args.size() == 1 ? Simple("PONG") : Bulk(args[1])};
  }
  if (name == "ECHO") return Expected{.reply = Bulk(args[1])};
  if (name == "CLIENT" && args[1] == "SETNAME") {
    name_ = args[2];
    return Expected{.reply = Simple("OK")};
  }
  if (name == "CLIENT") return Expected{.reply = name_.empty() ? RespReply{} : Bulk(name_)};
  if (name == "RESET") {
    protocol_ = 2;
    database_ = 0;
    name_.clear();
    return Expected{.reply = Simple("RESET")};
  }
  if (name == "HELLO") {
    protocol_ = args[1] == "3" ? 3 : 2;
    const Type type = protocol_ == 3 ? Type::kMap : Type::kArray;
    return Expected{.kind = Expected::Kind::kHello, .reply = {.type = type}};
  }
  if (name == "SELECT") {
    const int64_t index = *ParseNumber(args[1]);
    if (index < 0 || index >= kDatabases) {
      return Expected{.reply = Error("ERR DB index is out of range")};
    }
    database_ = static_cast<uint32_t>(index);
    return Expected{.reply = Simple("OK")};
  }
  return std::nullopt;
}

RespReply CommandOracle::Value(const std::string& key) {
  const auto at = keys().find(key);
  return at == keys().end() ? RespReply{} : Bulk(at->second);
}

std::optional<Expected> CommandOracle::ExecutePoint(Args args) {
  const std::string& name = args[0];
  if (name == "GET" && args.size() != 2) {
    return Expected{.reply = Error("ERR wrong number of arguments for 'get' command")};
  }
  if (name == "GET") return Expected{.reply = Value(args[1])};
  if (name == "SET") return Expected{.reply = Set(args)};
  if (name == "SETNX") {
    return Expected{.reply = Integer(keys().try_emplace(args[1], args[2]).second)};
  }
  if (name == "GETSET" || name == "GETDEL") {
    RespReply before = Value(args[1]);
    keys().erase(args[1]);
    if (name == "GETSET") keys()[args[1]] = args[2];
    return Expected{.reply = before};
  }
  if (name == "APPEND") {
    keys()[args[1]] += args[2];
    return Expected{.reply = Integer(static_cast<int64_t>(keys()[args[1]].size()))};
  }
  if (name == "STRLEN") {
    return Expected{.reply = Integer(static_cast<int64_t>(Value(args[1]).text.size()))};
  }
  if (name == "TYPE")
    return Expected{.reply = Simple(keys().contains(args[1]) ? "string" : "none")};
  if (name == "INCR") return Expected{.reply = Add(args[1], "1")};
  if (name == "DECR") return Expected{.reply = Add(args[1], "-1")};
  if (name == "INCRBY") return Expected{.reply = Add(args[1], args[2])};
  return std::nullopt;
}

RespReply CommandOracle::Set(Args args) {
  if (Has(args.subspan(3), "BOGUS")) return Error("ERR syntax error");
  const RespReply before = Value(args[1]);
  const bool nx = Has(args.subspan(3), "NX");
  const bool xx = Has(args.subspan(3), "XX");
  const bool stores = nx ? before.is_null() : !xx || !before.is_null();
  if (stores) keys()[args[1]] = args[2];
  if (Has(args.subspan(3), "GET")) return before;
  return stores ? Simple("OK") : RespReply{};
}

RespReply CommandOracle::Add(const std::string& key, const std::string& by) {
  const auto delta = ParseNumber(by);
  if (!delta) return Error(kNotAnInteger);
  const auto at = keys().find(key);
  const auto now = at == keys().end() ? 0 : ParseNumber(at->second);
  if (!now) return Error(kNotAnInteger);
  int64_t sum = 0;
  if (__builtin_add_overflow(*now, *delta, &sum)) {
    return Error("ERR increment or decrement would overflow");
  }
  keys()[key] = std::to_string(sum);
  return Integer(sum);
}

std::optional<Expected> CommandOracle::ExecuteMany(Args args) {
  const std::string& name = args[0];
  int64_t count = 0;
  if (name == "MGET") {
    RespReply all = Array();
    for (const std::string& key : args.subspan(1)) all.elements.push_back(Value(key));
    return Expected{.reply = all};
  }
  if (name == "EXISTS" || name == "DEL" || name == "UNLINK") {
    for (const std::string& key : args.subspan(1)) {
      count += name == "EXISTS" ? keys().contains(key) : keys().erase(key);
    }
    return Expected{.reply = Integer(count)};
  }
  if (name == "MSET" || name == "MSETNX") {
    if (args.size() % 2 == 0) {
      const std::string lower = name == "MSET" ? "mset" : "msetnx";
      return Expected{
          .reply = Error(fmt::format("ERR wrong number of arguments for '{}' command", lower))};
    }
    for (size_t i = 1; i < args.size(); i += 2) count += keys().contains(args[i]);
    if (name == "MSETNX" && count > 0) return Expected{.reply = Integer(0)};
    for (size_t i = 1; i < args.size(); i += 2) keys()[args[i]] = args[i + 1];
    return Expected{.reply = name == "MSET" ? Simple("OK") : Integer(1)};
  }
  if (name == "RENAME") return Expected{.reply = Rename(args[1], args[2], false)};
  if (name == "RENAMENX") return Expected{.reply = Rename(args[1], args[2], true)};
  if (name == "DBSIZE") return Expected{.reply = Integer(static_cast<int64_t>(keys().size()))};
  if (name == "FLUSHDB") {
    keys().clear();
    return Expected{.reply = Simple("OK")};
  }
  if (name == "RANDOMKEY") {
    Expected any{.kind = Expected::Kind::kMember, .reply = Array()};
    for (const auto& [key, value] : keys()) any.reply.elements.push_back(Bulk(key));
    return any;
  }
  return std::nullopt;
}

RespReply CommandOracle::Rename(const std::string& from, const std::string& to, bool keep) {
  const auto at = keys().find(from);
  if (at == keys().end()) return Error("ERR no such key");
  if (keep && keys().contains(to)) return Integer(0);
  std::string value = std::move(at->second);
  keys().erase(at);
  keys()[to] = std::move(value);
  return keep ? Integer(1) : Simple("OK");
}

std::vector<std::pair<std::string, std::string>> CommandOracle::Range(const std::string& min,
                                                                      const std::string& max) {
  std::vector<std::pair<std::string, std::string>> items;
  for (const auto& [key, value] : keys()) {
    const bool in = min == "PREFIX" ? key.starts_with(max) : IsAbove(key, min) && IsBelow(key, max);
    if (in) items.emplace_back(key, value);
  }
  return items;
}

RespReply CommandOracle::Items(std::span<const std::pair<std::string, std::string>> items,
                               bool with_values) {
  RespReply reply = Array();
  for (const auto& [key, value] : items) {
    if (with_values && protocol_ == 3) {
      RespReply pair = Array();
      pair.elements = {Bulk(key), Bulk(value)};
      reply.elements.push_back(pair);
      continue;
    }
    reply.elements.push_back(Bulk(key));
    if (with_values) reply.elements.push_back(Bulk(value));
  }
  return reply;
}

std::optional<Expected> CommandOracle::ExecuteRange(Args args) {
  const std::string& name = args[0];
  const bool has_bounds =
      (name == "KRANGE" || name == "KCOUNT" || name == "KDELRANGE") && args[1] != "PREFIX";
  if (has_bounds && args[1] == "bad") {
    return Expected{.reply = Error(fmt::format("ERR {}", kNotABound))};
  }
  if (name == "KRANGE") return Expected{.reply = Krange(args)};
  if (name == "KDELRANGE") return Expected{.reply = Kdelrange(args)};
  if (name == "KCOUNT") {
    return Expected{.reply = Integer(static_cast<int64_t>(Range(args[1], args[2]).size()))};
  }
  if (name == "KEYS") {  // the pattern has the form "literal*"
    const std::string prefix = args[1].substr(0, args[1].size() - 1);
    return Expected{.reply = Items(Range("PREFIX", prefix), false)};
  }
  if (name == "KFLOOR" || name == "KCEIL" || name == "KFIRST" || name == "KLAST") {
    return Expected{.reply = Neighbour(args)};
  }
  if (name == "KSCAN") return Kscan(args);
  if (name == "SCAN") return ScanChunk(args);
  return std::nullopt;
}

RespReply CommandOracle::Krange(Args args) {
  auto items = Range(args[1], args[2]);
  if (Has(args.subspan(3), "REV")) std::ranges::reverse(items);
  std::span<const std::pair<std::string, std::string>> shown(items);
  if (const auto offset = NumberAfter(args.subspan(3), "LIMIT")) {
    const auto count = NumberAfter(args.subspan(3), "LIMIT", 2);
    if (*offset < 0) return Array();
    shown = shown.subspan(std::min(shown.size(), static_cast<size_t>(*offset)));
    if (*count >= 0) shown = shown.first(std::min(shown.size(), static_cast<size_t>(*count)));
  }
  return Items(shown, Has(args.subspan(3), "WITHVALUES"));
}

RespReply CommandOracle::Kdelrange(Args args) {
  auto items = Range(args[1], args[2]);
  const auto limit = NumberAfter(args.subspan(3), "LIMIT");
  if (limit && *limit >= 0) items.resize(std::min(items.size(), static_cast<size_t>(*limit)));
  for (const auto& [key, value] : items) keys().erase(key);
  return Integer(static_cast<int64_t>(items.size()));
}

RespReply CommandOracle::Neighbour(Args args) {
  const std::string& name = args[0];
  const bool down = name == "KFLOOR" || name == "KLAST";
  const std::string min = name == "KCEIL" ? fmt::format("[{}", args[1]) : "-";
  const std::string max = name == "KFLOOR" ? fmt::format("[{}", args[1]) : "+";
  const auto items = Range(min, max);
  if (items.empty()) return {};
  const auto& [key, value] = down ? items.back() : items.front();
  if (!Has(args, "WITHVALUE")) return Bulk(key);
  RespReply pair = Array();
  pair.elements = {Bulk(key), Bulk(value)};
  return pair;
}

Expected CommandOracle::Kscan(Args args) {
  if (args[1] == "NEXT") {
    const auto at = learnt_.find(args[2]);
    SKEP_CHECK(at != learnt_.end());
    Scan scan = std::move(at->second);
    learnt_.erase(at);
    return KscanChunk(std::move(scan));
  }
  Scan scan{.is_kscan = true, .database = database_, .items = Range(args[1], args[2])};
  if (Has(args, "REV")) std::ranges::reverse(scan.items);
  scan.with_values = Has(args, "WITHVALUES");
  scan.count = static_cast<size_t>(NumberAfter(args, "COUNT").value_or(100));
  return KscanChunk(std::move(scan));
}

Expected CommandOracle::KscanChunk(Scan scan) {
  const size_t size = std::min(scan.count, scan.items.size());
  Expected chunk{.kind = Expected::Kind::kChunk,
                 .reply = Items(std::span(scan.items).first(size), scan.with_values)};
  scan.items.erase(scan.items.begin(), scan.items.begin() + static_cast<ptrdiff_t>(size));
  if (!scan.items.empty()) {
    chunk.scan = ++last_scan_;
    unlearnt_.emplace(last_scan_, std::move(scan));
  }
  return chunk;
}

// Answers SCAN cursor MATCH prefix* COUNT n.
Expected CommandOracle::ScanChunk(Args args) {
  std::string from;
  if (args[1] != "0") {
    const auto at = learnt_.find(args[1]);
    SKEP_CHECK(at != learnt_.end());
    from = at->second.next_key;
    learnt_.erase(at);
  }
  const std::string prefix = args[3].substr(0, args[3].size() - 1);
  auto items = Range("PREFIX", prefix);
  std::erase_if(items, [&](const auto& item) { return item.first < from; });
  const size_t size = std::min(items.size(), static_cast<size_t>(*ParseNumber(args[5])));
  Expected chunk{.kind = Expected::Kind::kChunk,
                 .reply = Items(std::span(items).first(size), false)};
  if (size < items.size()) {
    chunk.scan = ++last_scan_;
    Scan scan{.is_kscan = false, .database = database_};
    scan.next_key = items[size - 1].first + '\0';
    scan.prefix = prefix;
    unlearnt_.emplace(last_scan_, std::move(scan));
  }
  return chunk;
}

void CommandOracle::Learn(const Expected& expected, const RespReply& got) {
  const auto scan = unlearnt_.find(expected.scan);
  if (scan == unlearnt_.end()) return;
  learnt_.emplace(got.elements[0].text, std::move(scan->second));
  unlearnt_.erase(scan);
}

std::optional<CommandOracle::Token> CommandOracle::SomeToken() const {
  for (const auto& [token, scan] : learnt_) {
    if (scan.database != database_) continue;
    return Token{scan.is_kscan ? "KSCAN" : "SCAN", token};
  }
  return std::nullopt;
}

}  // namespace skep::simulation
