// questions.h: random commands on few keys, and their meaning to the linearizability checker.
//
// A question is a command and the operation it stands for. When the reply comes, its reader fills
// in the answers. Some commands answer less than the checker's nearest operation, or only for all
// their keys together, and so become other operations:
//
//   DEL a b, EXISTS a b     keys are neighbours: a delete or a count of the range [a, c)
//   SET k v NX GET          two steps: get, insert
//   RENAMENX                the condition that its reply says held or failed
//   KSCAN, SCAN, KEYS       one chunk holds everything: a scan
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/linearizability/history.h"
#include "wire/resp_reply.h"

namespace skep::simulation {

struct Question {
  // Returns false if no correct server could send that reply to that command.
  using Reader = std::function<bool(const RespReply&, linearizability::Operation&)>;

  std::vector<std::string> args;
  linearizability::Operation operation;
  Reader read;
};

// Makes the questions of one client. Every value it stores is a decimal that no other client
// stores.
// Thread safety: one owner.
class QuestionMaker {
 public:
  // The keys are the first `keys` letters.
  QuestionMaker(uint32_t client, Random& random, uint32_t keys)
      : client_(client), random_(random), keys_(keys) {}

  Question Next();

 private:
  struct Bounds {
    std::vector<std::string> args;  // min max, or PREFIX p
    linearizability::Step step;     // with the range filled in
  };

  Question Get();
  Question Set();
  Question GetDel();
  Question IncrBy();
  Question Del();
  Question Exists();
  Question Mset();
  Question MsetNx();
  Question Mget();
  Question Rename();
  Question RenameNx();
  Question Krange();
  Question Kcount();
  Question Kdelrange();
  Question Neighbour();
  Question OneChunk();
  Question Neighbours(const char* command, linearizability::Action action);

  Bounds SomeBounds();
  std::string KeyOf(uint64_t index) const { return std::string(1, static_cast<char>('a' + index)); }
  std::string Key() { return KeyOf(random_.Below(keys_)); }
  std::string Value();

  const uint32_t client_;
  Random& random_;
  const uint32_t keys_;
  uint64_t values_ = 0;  // number made so far
};

}  // namespace skep::simulation
