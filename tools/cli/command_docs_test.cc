#include "tools/cli/command_docs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skep::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RespReply Text(const std::string& text) { return {.type = RespReply::Type::kBulk, .text = text}; }
RespReply List(std::vector<RespReply> elements, RespReply::Type type = RespReply::Type::kArray) {
  return {.type = type, .elements = std::move(elements)};
}
// Returns a map in the form of RESP2.
RespReply Map(std::vector<std::pair<std::string, RespReply>> fields) {
  RespReply map = List({});
  for (auto& [name, value] : fields) {
    map.elements.push_back(Text(name));
    map.elements.push_back(std::move(value));
  }
  return map;
}
RespReply Argument(const std::string& name, const std::string& type, const std::string& token = "",
                   std::vector<RespReply> flags = {}, std::vector<RespReply> arguments = {}) {
  RespReply argument = Map({{"name", Text(name)}, {"type", Text(type)}});
  if (!token.empty()) {
    argument.elements.push_back(Text("token"));
    argument.elements.push_back(Text(token));
  }
  argument.elements.insert(argument.elements.end(), {Text("flags"), List(std::move(flags))});
  argument.elements.insert(argument.elements.end(),
                           {Text("arguments"), List(std::move(arguments))});
  return argument;
}
RespReply Doc(const std::string& group, std::vector<RespReply> arguments) {
  return Map({{"summary", Text("Does it.")},
              {"since", Text("1.0.0")},
              {"group", Text(group)},
              {"arguments", List(std::move(arguments))}});
}

// Returns a description in Skep's own form: all arguments in one text.
RespReply SkepDoc(const std::string& group, const std::string& syntax) {
  return Doc(
      group,
      {Map({{"name", Text(syntax)}, {"type", Text("string")}, {"display_text", Text(syntax)}})});
}

CommandDocs SomeDocs() {
  RespReply config = Doc("server", {});
  config.elements.push_back(Text("subcommands"));
  config.elements.push_back(Map({{"config|get", SkepDoc("server", "<pattern> [<pattern> ...]")},
                                 {"config|set", SkepDoc("server", "<option> <value>")}}));
  return CommandDocs(Map({{"krange", SkepDoc("ordered", "min max | PREFIX prefix [REV]")},
                          {"kcount", SkepDoc("ordered", "min max | PREFIX prefix")},
                          {"get", SkepDoc("string", "key")},
                          {"config", config}}));
}

TEST(CommandDocs, CompletesCommands) {
  const CommandDocs docs = SomeDocs();
  EXPECT_THAT(docs.Complete("KR"), ElementsAre("KRANGE"));
  EXPECT_THAT(docs.Complete("k"), ElementsAre("kcount", "krange"));
  EXPECT_THAT(docs.Complete("X"), IsEmpty());
  EXPECT_THAT(docs.Complete(""), ElementsAre("CONFIG", "GET", "KCOUNT", "KRANGE", "HELP"));
  EXPECT_THAT(docs.Complete("help k"), ElementsAre("kcount", "krange"));
  EXPECT_THAT(docs.Complete("GET \"open"), IsEmpty());
  EXPECT_THAT(CommandDocs().Complete(""), IsEmpty());
}

TEST(CommandDocs, CompletesWhatFollows) {
  const CommandDocs docs = SomeDocs();
  EXPECT_THAT(docs.Complete("config "), ElementsAre("GET", "SET"));
  EXPECT_THAT(docs.Complete("CONFIG g"), ElementsAre("get"));
  EXPECT_THAT(docs.Complete("CONFIG GET x"), IsEmpty());
  EXPECT_THAT(docs.Complete("KRANGE P"), ElementsAre("PREFIX"));
  EXPECT_THAT(docs.Complete("KRANGE - + R"), ElementsAre("REV"));
  EXPECT_THAT(docs.Complete("help config s"), ElementsAre("set"));
}

TEST(CommandDocs, Hints) {
  const CommandDocs docs = SomeDocs();
  EXPECT_EQ(docs.Hint("GET"), " key");
  EXPECT_EQ(docs.Hint("get "), "key");
  EXPECT_EQ(docs.Hint("GET a"), "");
  EXPECT_EQ(docs.Hint("KRANGE prefix u"), " [REV]");
  EXPECT_EQ(docs.Hint("config set "), "<option> <value>");
  EXPECT_EQ(docs.Hint("config set a"), " <value>");
  EXPECT_EQ(docs.Hint("nosuch "), "");
  EXPECT_EQ(docs.Hint(""), "");
  EXPECT_EQ(docs.Hint("GET \"a"), "");
}

TEST(CommandDocs, Help) {
  const CommandDocs docs = SomeDocs();
  const auto help = [&](std::vector<std::string_view> words) { return docs.Help(words); };
  EXPECT_EQ(help({"krange"}),
            "  KRANGE min max | PREFIX prefix [REV]\n  Does it.\n  since 1.0.0, group ordered\n");
  EXPECT_THAT(help({"CONFIG"}),
              HasSubstr("\n  CONFIG GET <pattern> [<pattern> ...]\n    Does it.\n"));
  EXPECT_THAT(help({"config", "set"}), HasSubstr("  CONFIG SET <option> <value>\n"));
  EXPECT_THAT(help({"@ordered"}), HasSubstr("  KCOUNT           Does it.\n"));
  EXPECT_THAT(help({}), HasSubstr("@ordered @server @string\n"));
  EXPECT_EQ(help({"nosuch"}), "The server has no command NOSUCH.\n");
  EXPECT_EQ(help({"get", "nosuch"}), "The server has no command GET NOSUCH.\n");
  EXPECT_EQ(help({"@nosuch"}), "There is no group nosuch.\n");
  EXPECT_THAT(CommandDocs().Help({}), HasSubstr("COMMAND DOCS"));
}

// Goal: every kind of argument that Redis 7 describes becomes its syntax.
TEST(CommandDocs, ArgumentsOfRedis) {
  const RespReply optional = Text("optional");
  const RespReply multiple = Text("multiple");
  const RespReply repeats_token = Text("multiple_token");
  const auto syntax = [](std::vector<RespReply> arguments) {
    return CommandDocs(Map({{"c", Doc("g", std::move(arguments))}})).Hint("c ");
  };
  EXPECT_EQ(syntax({Argument("key", "key"), Argument("value", "string")}), "key value");
  EXPECT_EQ(syntax({Argument("key", "key", "", {multiple})}), "key [key ...]");
  EXPECT_EQ(syntax({Argument("key", "key", "", {optional, multiple})}), "[key ...]");
  EXPECT_EQ(syntax({Argument("x", "integer", "COUNT", {optional})}), "[COUNT x]");
  EXPECT_EQ(syntax({Argument("x", "pattern", "GET", {optional, multiple, repeats_token})}),
            "[GET x [GET x ...]]");
  EXPECT_EQ(
      syntax({Argument("nx", "oneof", "", {optional},
                       {Argument("nx", "pure-token", "NX"), Argument("xx", "pure-token", "XX")})}),
      "[NX | XX]");
  EXPECT_EQ(syntax({Argument(
                "by", "oneof", "", {},
                {Argument("member", "string", "FROM"), Argument("all", "pure-token", "ALL")})}),
            "<FROM member | ALL>");
  EXPECT_EQ(syntax({Argument("data", "block", "", {multiple},
                             {Argument("field", "string"), Argument("value", "string")})}),
            "field value [field value ...]");
}

TEST(CommandDocs, MapsOfResp3) {
  RespReply reply = List({Text("get"), SkepDoc("string", "key")}, RespReply::Type::kMap);
  reply.elements[1].type = RespReply::Type::kMap;
  EXPECT_EQ(CommandDocs(reply).Hint("GET"), " key");
}

TEST(CommandDocs, Nonsense) {
  EXPECT_TRUE(CommandDocs(Text("x")).empty());
  const CommandDocs docs(List({Text("a"), Text("b"), Text("c")}));
  EXPECT_EQ(docs.Hint("a"), "");
  EXPECT_THAT(docs.Complete("A"), ElementsAre("A"));
}

}  // namespace
}  // namespace skep::cli
