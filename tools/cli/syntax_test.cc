#include "tools/cli/syntax.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace skep::cli {
namespace {

constexpr std::string_view kSet =
    "key value [NX | XX | IFEQ value] [GET] [EX seconds | PX milliseconds | KEEPTTL]";

std::string Rest(std::string_view syntax, std::vector<std::string_view> words) {
  return fmt::format("{}", fmt::join(RemainingSyntax(syntax, words), " "));
}

TEST(Syntax, WhatIsTypedIsLeftOut) {
  EXPECT_EQ(Rest("", {}), "");
  EXPECT_EQ(Rest("", {"a", "b"}), "");
  EXPECT_EQ(Rest("key", {}), "key");
  EXPECT_EQ(Rest("key", {"a"}), "");
  EXPECT_EQ(Rest("key", {"a", "b"}), "");
  EXPECT_EQ(Rest("key value", {"a"}), "value");
  EXPECT_EQ(Rest("key [key ...]", {"a"}), "[key ...]");
  EXPECT_EQ(Rest("key [key ...]", {"a", "b", "c"}), "[key ...]");
  EXPECT_EQ(Rest("key value [key value ...]", {"a", "b", "c"}), "value [key value ...]");
  EXPECT_EQ(Rest("[message]", {"a"}), "");
  EXPECT_EQ(Rest("<name> [<value> ...]", {"a", "b"}), "[<value> ...]");
}

TEST(Syntax, OptionsComeInAnyOrder) {
  EXPECT_EQ(Rest(kSet, {"k", "v"}),
            "[NX | XX | IFEQ value] [GET] [EX seconds | PX milliseconds | KEEPTTL]");
  EXPECT_EQ(Rest(kSet, {"k", "v", "px"}), "milliseconds [NX | XX | IFEQ value] [GET]");
  EXPECT_EQ(Rest(kSet, {"k", "v", "PX", "10"}), "[NX | XX | IFEQ value] [GET]");
  EXPECT_EQ(Rest(kSet, {"k", "v", "PX", "10", "ifeq"}), "value [GET]");
  EXPECT_EQ(Rest(kSet, {"k", "v", "PX", "10", "IFEQ", "x", "GET"}), "");
  // A word that does not fit changes nothing; a value that looks like a token is a value.
  EXPECT_EQ(Rest(kSet, {"k", "v", "nosuch"}), Rest(kSet, {"k", "v"}));
  EXPECT_EQ(Rest(kSet, {"NX", "GET"}), Rest(kSet, {"k", "v"}));
}

TEST(Syntax, OptionsBeforeArguments) {
  constexpr std::string_view kAdd = "key [NOMKSTREAM] <* | id> field value [field value ...]";
  EXPECT_EQ(Rest(kAdd, {"k", "nomkstream"}), "<* | id> field value [field value ...]");
  EXPECT_EQ(Rest(kAdd, {"k", "*"}), "field value [field value ...]");
  constexpr std::string_view kBatch = "[IF condition] ... DO operation [operation ...]";
  EXPECT_EQ(Rest(kBatch, {}), "[IF condition ...] DO operation [operation ...]");
  EXPECT_EQ(Rest(kBatch, {"IF"}), "condition [IF condition ...] DO operation [operation ...]");
  EXPECT_EQ(Rest(kBatch, {"if", "x", "do"}), "operation [operation ...]");
}

TEST(Syntax, RangesAreOfTwoKinds) {
  constexpr std::string_view kScan = "min max | PREFIX prefix | NEXT token [REV] [COUNT count]";
  EXPECT_EQ(Rest(kScan, {}), "<min max | PREFIX prefix | NEXT token> [REV] [COUNT count]");
  EXPECT_EQ(Rest(kScan, {"-"}), "max [REV] [COUNT count]");
  EXPECT_EQ(Rest(kScan, {"prefix"}), "prefix [REV] [COUNT count]");
  EXPECT_EQ(Rest(kScan, {"NEXT", "7", "COUNT"}), "count [REV]");
}

TEST(Syntax, Tokens) {
  using Tokens = std::vector<std::string>;
  const auto tokens = [](std::string_view syntax, std::vector<std::string_view> words) {
    return NextTokens(RemainingSyntax(syntax, words));
  };
  EXPECT_EQ(tokens(kSet, {"k"}), Tokens());
  EXPECT_EQ(tokens(kSet, {"k", "v", "NX"}), (Tokens{"GET", "EX", "PX", "KEEPTTL"}));
  EXPECT_EQ(tokens(kSet, {"k", "v", "EX"}), Tokens());
  EXPECT_EQ(tokens("min max | PREFIX prefix [REV]", {}), Tokens{"PREFIX"});
  EXPECT_EQ(tokens("<ALWAYS | NEXT> [X]", {}), (Tokens{"ALWAYS", "NEXT"}));
}

// Goal: brackets that do not match, from a server other than ours, do no harm.
TEST(Syntax, Nonsense) {
  for (const char* syntax : {"[", "]", "<", "[]", "[ | ]", "|", "a |", "| a b", "...", "[...]",
                             "[a", "a | b", "<[<>]>", "[a ...] ... ..."}) {
    for (const auto& item : RemainingSyntax(syntax, std::vector<std::string_view>{"a", "B", "c"})) {
      EXPECT_FALSE(item.empty()) << syntax;
    }
    NextTokens(RemainingSyntax(syntax, {}));
  }
}

}  // namespace
}  // namespace skep::cli
