// resp_steps.h: translates steps that are performed together to one command of the protocol.
//
//   one step          GET, SET, SETNX, SET XX, DEL, INCRBY, RENAME, RENAMENX, WATCH
//                     compare-and-set: KCAS or SET IFEQ; compare-and-delete: DELEX; put-if-differs:
//                     SET IFNE; by digest: IFDEQ, IFDNE
//                     KRANGE, KCOUNT, KDELRANGE
//   gets, puts        MGET, MSET
//   puts of keys that must all be absent, or present
//                     MSETNX or MSETEX NX, MSETEX XX
//   a get and a put of one key
//                     SET GET
//   conditions, gets, puts, deletes, additions, range deletes
//                     KBATCH; the steps above too
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/linearizability/history.h"
#include "tests/linearizability/kv_client.h"
#include "wire/resp_reply.h"

namespace skep::linearizability {

class RespSteps {
 public:
  // What stopped the steps: `culprit` is an index in them, if it is known.
  struct Ending {
    KvClient::Reply reply = KvClient::Reply::kAnswered;
    bool applied = true;
    std::optional<uint32_t> culprit = {};
  };

  static bool HasCommand(std::span<const Step> steps);

  // Requires HasCommand(steps); the steps must outlive this. Where two commands are possible,
  // `other` chooses the less usual one.
  RespSteps(std::span<Step> steps, bool other);

  std::vector<std::string> Command() const;
  // Fills in the steps' answers. An error is a refusal that changed nothing; any other unexpected
  // reply passes, for the checker to find.
  Ending Read(const RespReply& reply) const;
  // Fills in the answers of a part of a transaction: Step::stops tells what stopped it. Returns
  // false if the reply does not say that.
  bool ReadPart(const RespReply& reply) const;

 private:
  enum class Form : uint8_t { kOne, kGets, kPuts, kPutIfAll, kSetAndGet, kBatch };

  static std::optional<Form> FormOf(std::span<const Step> steps, bool other);
  std::vector<std::string> PutIfAll() const;
  std::vector<std::string> Batch() const;
  Ending ReadBatch(const RespReply& reply) const;
  Ending ReadFailed(const RespReply& failed, std::span<const uint32_t> conditions) const;

  const std::span<Step> steps_;
  const bool other_;
  const Form form_;
};

// Return "-" or "[key", "+" or "(other".
std::string MinOf(const Step& step);
std::string MaxOf(const Step& step);
// Appends the items of a range's reply, which is flat, as in RESP2.
void AppendItems(std::span<const RespReply> flat, Step& step);

}  // namespace skep::linearizability
