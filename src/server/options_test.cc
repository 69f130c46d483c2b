#include "server/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "server/option_values.h"

namespace skep {
namespace {

using testing::HasSubstr;

std::vector<std::string> Names(const std::vector<const OptionInfo*>& options) {
  std::vector<std::string> names;
  for (const OptionInfo* option : options) names.emplace_back(option->name);
  return names;
}

// Goal: the table is complete and coherent.
// Method: every row is found by its own name, its default is read back to the same options, and
// its texts fit on a line of --help. Names are lower case, since CONFIG GET matches them so.
TEST(Options, EveryRowReadsWhatItPrints) {
  std::set<std::string_view> names;
  for (const OptionInfo& option : AllOptions()) {
    SCOPED_TRACE(option.name);
    EXPECT_TRUE(names.insert(option.name).second);
    EXPECT_EQ(LowerCase(option.name), option.name);
    EXPECT_EQ(FindOption(option.name), &option);
    EXPECT_TRUE(option.help.ends_with('.'));
    EXPECT_LT(option.help.size(), 90u);
    EXPECT_FALSE(option.value_name.empty());
    ServerOptions options;
    const Status s = option.set(options, option.get(options));
    EXPECT_TRUE(s.ok()) << s.what();
    EXPECT_EQ(options, ServerOptions{});
  }
}

// Goal: classes of clients are set one by one or together, as in Redis; a number alone is the hard
// limit of every client here; a wrong value changes nothing.
TEST(Options, OutputLimits) {
  OutputLimits limits;
  EXPECT_EQ(TextOf(limits),
            "normal 1073741824 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60");
  EXPECT_TRUE(SetOutputLimits("normal 1mb 2kb 3", limits).ok());
  EXPECT_EQ(limits.normal, (OutputLimit{1 << 20, 2048, 3}));
  EXPECT_EQ(limits.pubsub, OutputLimits{}.pubsub);
  EXPECT_TRUE(SetOutputLimits("replica 1 2 3 PUBSUB 4 5 6", limits).ok());
  EXPECT_EQ(TextOf(limits), "normal 1048576 2048 3 slave 1 2 3 pubsub 4 5 6");
  EXPECT_TRUE(SetOutputLimits("5gb", limits).ok());
  EXPECT_EQ(limits.normal, (OutputLimit{uint64_t{5} << 30, 0, 0}));
  const OutputLimits before = limits;
  for (const std::string_view wrong :
       {"", "normal", "normal 1 2", "normal 1 2 3 pubsub", "normal 7 7 7 nosuch 1 2 3",
        "normal x 2 3", "normal 1 -2 3", "normal 1 2 3s", "x"}) {
    EXPECT_FALSE(SetOutputLimits(wrong, limits).ok()) << wrong;
    EXPECT_EQ(limits, before) << wrong;
  }
}

// Goal: the memory of clients may be a part of maxmemory, which may change later.
TEST(Options, ClientMemory) {
  ServerOptions options;
  EXPECT_EQ(ClientBytesMax(options), 0u);
  EXPECT_TRUE(SetOption(options, "maxmemory-clients", "5%").ok());
  EXPECT_EQ(ClientBytesMax(options), 0u);
  options.maxmemory = 100 << 20;
  EXPECT_EQ(ClientBytesMax(options), 5u << 20);
  options.maxmemory = 1000;
  EXPECT_EQ(ClientBytesMax(options), kClientBytesMin);
  for (const std::string_view wrong : {"101%", "%", "-1%", "5 %", "-1", "5%%", ""}) {
    EXPECT_FALSE(SetOption(options, "maxmemory-clients", wrong).ok()) << wrong;
  }
  EXPECT_EQ(FindOption("maxmemory-clients")->get(options), "5%");
  EXPECT_TRUE(SetOption(options, "maxmemory-clients", "1mb").ok());
  EXPECT_EQ(ClientBytesMax(options), 1u << 20);
  EXPECT_TRUE(SetOption(options, "maxmemory-clients", "1").ok());
  EXPECT_EQ(ClientBytesMax(options), kClientBytesMin);
  EXPECT_EQ(FindOption("maxmemory-clients")->get(options), "1");
  EXPECT_TRUE(SetOption(options, "maxmemory-clients", "0").ok());
  EXPECT_EQ(ClientBytesMax(options), 0u);
}

// Goal: each row sets its own member, and no other.
// Method: a value that is not the default for every row; afterwards only that row prints something
// new.
TEST(Options, EveryRowSetsItsOwnMember) {
  for (const OptionInfo& option : AllOptions()) {
    SCOPED_TRACE(option.name);
    const bool one_choice = option.name == "maxmemory-policy" || option.name == "save";
    ServerOptions options;
    bool set = false;
    for (const std::string_view value :
         {"no", "yes", "debug", "::1", "2097152", "7", "4096", "heads", "paper", "1=hash",
          "zk=a:1,name=b,at=c:1", "tcp:a:1", "KEA"}) {
      if (!set && option.get(options) != value) set = option.set(options, value).ok();
    }
    EXPECT_EQ(set, !one_choice);
    for (const OptionInfo& other : AllOptions()) {
      const bool changed = other.get(options) != other.get(ServerOptions{});
      EXPECT_EQ(changed, &other == &option && !one_choice) << other.name;
    }
  }
}

// Goal: save points are pairs of seconds, at least one as in Redis, and changes.
TEST(Options, SavePointsArePairs) {
  ServerOptions options;
  for (const std::string_view right : {"", "1 0", "3600 1 300 100"}) {
    EXPECT_TRUE(SetOption(options, "save", right).ok()) << right;
    EXPECT_EQ(options.save, right);
  }
  for (const std::string_view wrong : {"0 0", "0 1", "3600 1 0 100", "3600", "1 -1", "x 1"}) {
    EXPECT_FALSE(SetOption(options, "save", wrong).ok()) << wrong;
    EXPECT_EQ(options.save, "3600 1 300 100");
  }
}

// Goal: the letters of events are read and printed as Redis does; A stands for its classes.
TEST(Options, EventsHaveLetters) {
  ServerOptions options;
  const OptionInfo& events = *FindOption("notify-keyspace-events");
  for (const auto& [letters, printed] : {std::pair("KEA", "AKE"),
                                         {"mKg$lshzxetd", "AKm"},
                                         {"Ez$", "$zE"},
                                         {"nK", "nK"},
                                         {"AnE", "AE"},
                                         {"", ""}}) {
    EXPECT_TRUE(events.set(options, letters).ok()) << letters;
    EXPECT_EQ(events.get(options), printed);
  }
  for (const std::string_view wrong : {"q", "KE A", "k", "KEA\n"}) {
    EXPECT_FALSE(events.set(options, wrong).ok()) << wrong;
  }
  EXPECT_EQ(options.notify_keyspace_events, 0u);
}

TEST(Options, NamesIgnoreCaseAndMatchByPattern) {
  EXPECT_EQ(FindOption("MaxMemory"), FindOption("maxmemory"));
  EXPECT_EQ(FindOption("maxmem"), nullptr);
  EXPECT_EQ(Names(MatchOptions("MAXMEM*")),
            (std::vector<std::string>{"maxmemory", "maxmemory-policy", "maxmemory-clients"}));
  EXPECT_EQ(MatchOptions("*").size(), AllOptions().size());
  EXPECT_TRUE(MatchOptions("nosuch*").empty());
}

// Goal: a wrong value is refused with the text Redis 7.0 has for it, and changes nothing.
TEST(Options, RefusesWithRedisTexts) {
  const struct {
    std::string_view name, value;
    const char* what;
  } refusals[] = {
      {"maxmemory", "foo", "argument must be a memory value"},
      {"maxmemory", "-1", "argument must be a memory value"},
      {"maxmemory", "1t", "argument must be a memory value"},
      {"maxmemory", "", "argument must be a memory value"},
      {"port", "99999999", "argument must be between 0 and 65535 inclusive"},
      {"port", "-1", "argument must be between 0 and 65535 inclusive"},
      {"port", "abc", "argument couldn't be parsed into an integer"},
      {"maxclients", "0", "argument must be between 1 and 4294967295 inclusive"},
      {"timeout", "-1", "argument must be between 0 and 2147483647 inclusive"},
      {"proto-max-bulk-len", "1",
       "argument must be between 1048576 and 9223372036854775807 inclusive"},
      {"btree-node-bytes", "1024", "argument must be between 2048 and 32768 inclusive"},
      {"btree-log-bytes", "8193", "argument must be between 0 and 8192 inclusive"},
      {"btree-layout", "page", "argument(s) must be one of the following: heads, paper"},
      {"btree-multi-version", "1", "argument must be 'yes' or 'no'"},
      {"protected-mode", "maybe", "argument must be 'yes' or 'no'"},
      {"loglevel", "foo",
       "argument(s) must be one of the following: debug, verbose, notice, warning"},
      {"maxmemory-policy", "allkeys-lru", "argument(s) must be one of the following: noeviction"},
      {"bind", "127.0.0.1 example", "argument must be a list of numeric addresses"},
      {"keyspace", "1", "argument must be a list of number=name"},
      {"keyspace", "x=hash", "argument must be a list of number=name"},
      {"keyspace", "1=", "argument must be a list of number=name"},
      {"keyspace", "1=hash 4294967296=hash", "argument must be a list of number=name"},
      {"nosuch", "1", "unknown option"},
  };
  for (const auto& refusal : refusals) {
    ServerOptions options;
    const Status s = SetOption(options, refusal.name, refusal.value);
    EXPECT_EQ(s.code(), Code::kInvalidArgument);
    EXPECT_STREQ(s.what(), refusal.what) << refusal.name << " " << refusal.value;
    EXPECT_EQ(options, ServerOptions{}) << refusal.name << " " << refusal.value;
  }
}

TEST(Options, BytesHaveUnits) {
  EXPECT_EQ(ParseBytes("0"), 0u);
  EXPECT_EQ(ParseBytes("7B"), 7u);
  EXPECT_EQ(ParseBytes("1k"), 1000u);
  EXPECT_EQ(ParseBytes("1Kb"), 1024u);
  EXPECT_EQ(ParseBytes("3m"), 3'000'000u);
  EXPECT_EQ(ParseBytes("3mb"), 3u << 20);
  EXPECT_EQ(ParseBytes("2g"), 2'000'000'000u);
  EXPECT_EQ(ParseBytes("2GB"), uint64_t{2} << 30);
  EXPECT_EQ(ParseBytes("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(ParseBytes("17179869183gb"), uint64_t{17179869183} << 30);
  for (const char* bad :
       {"", "k", "1 k", " 1", "1kib", "1.5g", "0x10", "18446744073709551616", "17179869184gb"}) {
    EXPECT_EQ(ParseBytes(bad), std::nullopt) << bad;
  }
}

TEST(Options, ListsAreWords) {
  ServerOptions options;
  ASSERT_TRUE(SetOption(options, "bind", "  127.0.0.1   ::1 ").ok());
  EXPECT_EQ(options.bind, (std::vector<std::string>{"127.0.0.1", "::1"}));
  EXPECT_EQ(FindOption("bind")->get(options), "127.0.0.1 ::1");
  ASSERT_TRUE(SetOption(options, "bind", "").ok());
  EXPECT_TRUE(options.bind.empty());
}

// Goal: no server is reachable from other machines without a password by accident.
TEST(Options, OpenServersNeedAPassword) {
  std::string why;
  ServerOptions options;
  EXPECT_TRUE(CheckOptions(options, &why).ok());
  for (const char* open :
       {"0.0.0.0", "::", "192.168.1.7", "::ffff:127.0.0.1", "127.0.0.1 10.0.0.1"}) {
    ASSERT_TRUE(SetOption(options, "bind", open).ok());
    EXPECT_FALSE(CheckOptions(options, &why).ok()) << open;
    EXPECT_THAT(why, HasSubstr("requirepass"));
  }
  options.protected_mode = false;
  EXPECT_TRUE(CheckOptions(options, &why).ok());
  options.protected_mode = true;
  options.requirepass = "secret";
  EXPECT_TRUE(CheckOptions(options, &why).ok());
  options.requirepass.clear();
  ASSERT_TRUE(SetOption(options, "bind", "127.8.9.1 ::1").ok());
  EXPECT_TRUE(CheckOptions(options, &why).ok());
}

// Goal: a driver's hook answers only what the server itself would answer.
TEST(Options, XdpIsForDatagramsThatAnybodyMaySend) {
  std::string why;
  ServerOptions options;
  options.xdp = "/run/skep-xdp.sock";
  EXPECT_FALSE(CheckOptions(options, &why).ok());
  EXPECT_THAT(why, HasSubstr("set udp yes"));
  options.udp = true;
  EXPECT_TRUE(CheckOptions(options, &why).ok()) << why;
  options.requirepass = "secret";
  EXPECT_FALSE(CheckOptions(options, &why).ok());
  EXPECT_THAT(why, HasSubstr("unset requirepass"));
  options.requirepass.clear();
  options.ranges = "zk=a:1,name=b,at=c:1";
  EXPECT_FALSE(CheckOptions(options, &why).ok());
  EXPECT_THAT(why, HasSubstr("unset ranges"));
}

// Goal: leaves are shared only where whoever connects may read all keys, and of a tree that can be
// read.
TEST(Options, LeavesAreSharedWithEverybody) {
  std::string why;
  const auto refusal = [&](const std::function<void(ServerOptions&)>& change) {
    ServerOptions options;
    options.share_leaves = "mem:unix:/run/skep-leaves";
    change(options);
    why.clear();
    return CheckOptions(options, &why).ok() ? "" : why;
  };
  EXPECT_EQ(refusal([](ServerOptions&) {}), "");
  EXPECT_EQ(refusal([](ServerOptions& o) { o.share_leaves = "tcp:127.0.0.1:7400"; }), "");
  EXPECT_EQ(refusal([](ServerOptions& o) { o.share_leaves = "tcp:[::1]:7400"; }), "");
  EXPECT_THAT(refusal([](ServerOptions& o) { o.requirepass = "secret"; }),
              HasSubstr("unset requirepass"));
  EXPECT_THAT(refusal([](ServerOptions& o) { o.ranges = "zk=a:1,name=b,at=c:1"; }),
              HasSubstr("unset ranges"));
  EXPECT_THAT(refusal([](ServerOptions& o) { o.share_leaves = "tcp:10.0.0.1:7400"; }),
              HasSubstr("protected-mode no"));
  EXPECT_THAT(refusal([](ServerOptions& o) { o.engine = "hash"; }), HasSubstr("engine hash"));
  EXPECT_THAT(refusal([](ServerOptions& o) { o.keyspace_engines[0] = "model"; }),
              HasSubstr("engine model"));
  EXPECT_EQ(refusal([](ServerOptions& o) { o.keyspace_engines[1] = "model"; }), "");
  EXPECT_THAT(refusal([](ServerOptions& o) { o.btree_layout = NodeLayout::kPaper; }),
              HasSubstr("btree-layout heads"));
  EXPECT_THAT(refusal([](ServerOptions& o) { o.btree_multi_version = false; }),
              HasSubstr("btree-multi-version yes"));
  ServerOptions options;
  EXPECT_FALSE(SetOption(options, "share-leaves", "ofi:tcp:127.0.0.1:1").ok());
  ASSERT_TRUE(SetOption(options, "share-leaves", "tcp:127.0.0.1:0").ok());
  EXPECT_TRUE(StoreOptions(options).btree.shared);
}

TEST(Options, ChecksTheRest) {
  std::string why;
  ServerOptions options;
  options.engine = "nosuch";
  EXPECT_FALSE(CheckOptions(options, &why).ok());
  EXPECT_THAT(why, HasSubstr("'nosuch'"));
  EXPECT_THAT(why, HasSubstr("model"));
  options.engine = "hash,foo=1";
  EXPECT_FALSE(CheckOptions(options, &why).ok());
  EXPECT_THAT(why, HasSubstr("the engine hash has no option 'foo'"));
  options.engine = "hash";
  options.keyspace_engines[3] = "btree,foo=1";
  EXPECT_FALSE(CheckOptions(options, &why).ok());
  EXPECT_THAT(why, HasSubstr("keyspace 3: the engine btree has no option 'foo'"));

  options = {};
  options.bind.clear();
  EXPECT_FALSE(CheckOptions(options, &why).ok());
  options.unixsocket = "/run/skep.sock";
  EXPECT_TRUE(CheckOptions(options, &why).ok()) << why;
  options.unixsocket.assign(108, 'x');
  EXPECT_FALSE(CheckOptions(options, &why).ok());

  options = {};
  options.requirepass.assign(1024, 'x');
  EXPECT_TRUE(CheckOptions(options, &why).ok()) << why;
  options.requirepass += 'x';
  EXPECT_FALSE(CheckOptions(options, &why).ok());
  EXPECT_THAT(why, HasSubstr("requirepass"));
}

// Goal: wrong combinations of the engine's options stop the server; right ones reach the store.
TEST(Options, ReachTheStore) {
  std::string why;
  ServerOptions options;
  ASSERT_TRUE(SetOption(options, "btree-node-bytes", "6000").ok());
  EXPECT_FALSE(CheckOptions(options, &why).ok());
  EXPECT_THAT(why, HasSubstr("node bytes"));
  ASSERT_TRUE(SetOption(options, "btree-node-bytes", "4kb").ok());
  EXPECT_TRUE(CheckOptions(options, &why).ok());
  ASSERT_TRUE(SetOption(options, "btree-log-bytes", "1kb").ok());
  ASSERT_TRUE(SetOption(options, "btree-multi-version", "no").ok());
  EXPECT_TRUE(CheckOptions(options, &why).ok());

  ASSERT_TRUE(SetOption(options, "databases", "7").ok());
  ASSERT_TRUE(SetOption(options, "maxmemory", "1gb").ok());
  ASSERT_TRUE(SetOption(options, "snapshot-age-ms", "9").ok());
  for (const auto& [name, layout] :
       {std::pair("paper", NodeLayout::kPaper), std::pair("Heads", NodeLayout::kHeads)}) {
    ASSERT_TRUE(SetOption(options, "btree-layout", name).ok());
    EXPECT_EQ(StoreOptions(options).btree.layout, layout);
  }
  const Options store = StoreOptions(options);
  EXPECT_EQ(store.engine, options.engine);
  EXPECT_EQ(store.keyspaces, 7u);
  EXPECT_EQ(store.memory_bytes_max, uint64_t{1} << 30);
  EXPECT_EQ(store.snapshot_age_ms_max, 9u);
  EXPECT_EQ(store.btree, (BtreeOptions{.node_bytes = 4096,
                                       .log_bytes = 1024,
                                       .layout = NodeLayout::kHeads,
                                       .multi_version = false}));
}

// Goal: a server and a library with default options run the same.
TEST(Options, DefaultsAreTheLibrarys) {
  const Options server = StoreOptions(ServerOptions{});
  const Options library;
  EXPECT_EQ(server.engine, library.engine);
  EXPECT_EQ(server.keyspaces, library.keyspaces);
  EXPECT_EQ(server.memory_bytes_max, library.memory_bytes_max);
  EXPECT_EQ(server.snapshot_age_ms_max, library.snapshot_age_ms_max);
  EXPECT_EQ(server.btree, library.btree);
}

}  // namespace
}  // namespace skep
