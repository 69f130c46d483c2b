// command_oracle.h: the answers that a connection must get, if its commands run one after another
// and no other client touches its keys.
//
// It has a std::map for each database, and the connection's own state. It knows the commands that
// PipelineMaker (pipeline_maker.h) makes, and no more.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/resp_reply.h"

namespace skep::simulation {

struct Expected {
  enum class Kind : uint8_t {
    kExact,   // `reply`
    kHello,   // any answer of HELLO in this protocol
    kChunk,   // a token or cursor, "0" unless `scan`; then `reply`
    kMember,  // one of the elements of `reply`; null if there are none
  };
  Kind kind = Kind::kExact;
  RespReply reply = {};
  uint64_t scan = 0;  // the scan that the token goes on with; 0: none

  bool Matches(const RespReply& got) const;
};

// Thread safety: one owner.
class CommandOracle {
 public:
  static constexpr uint32_t kDatabases = 16;

  explicit CommandOracle(int protocol) : protocol_(protocol) {}

  Expected Execute(std::span<const std::string> args);

  // Learns the token of a scan that goes on. Tokens can be used once.
  void Learn(const Expected& expected, const RespReply& got);
  // Returns a known token or cursor of the current database, and the command that takes it ("KSCAN"
  // or "SCAN"); nullopt if there is none.
  struct Token {
    std::string command;
    std::string text;
  };
  std::optional<Token> SomeToken() const;

  uint32_t database() const { return database_; }

 private:
  using Map = std::map<std::string, std::string>;
  using Args = std::span<const std::string>;
  struct Scan {
    bool is_kscan;
    uint32_t database;
    std::vector<std::pair<std::string, std::string>> items;  // items to come; keys only for SCAN
    std::string next_key;                                    // SCAN goes on here
    std::string prefix;                                      // of SCAN's pattern
    bool with_values;
    size_t count;
  };

  Map& keys() { return databases_[database_]; }

  std::optional<Expected> ExecuteLocal(Args args);
  std::optional<Expected> ExecutePoint(Args args);
  std::optional<Expected> ExecuteMany(Args args);
  std::optional<Expected> ExecuteRange(Args args);
  RespReply Set(Args args);
  RespReply Add(const std::string& key, const std::string& by);
  RespReply Rename(const std::string& from, const std::string& to, bool keep);
  RespReply Krange(Args args);
  RespReply Kdelrange(Args args);
  RespReply Neighbour(Args args);
  Expected Kscan(Args args);
  Expected KscanChunk(Scan scan);
  Expected ScanChunk(Args args);
  RespReply Value(const std::string& key);
  RespReply Items(std::span<const std::pair<std::string, std::string>> items, bool with_values);
  std::vector<std::pair<std::string, std::string>> Range(const std::string& min,
                                                         const std::string& max);

  int protocol_;
  uint32_t database_ = 0;
  std::string name_;
  std::array<Map, kDatabases> databases_;
  uint64_t last_scan_ = 0;
  std::map<uint64_t, Scan> unlearnt_;
  std::map<std::string, Scan> learnt_;  // by token
};

}  // namespace skep::simulation
