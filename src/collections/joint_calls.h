// joint_calls.h: calls of functions on one large collection, made one after the other and written
// at once.
//
// Functions about members (member_calls.h), pops of sets (set_calls.h), pops and cuts of sorted
// sets (sorted_set_calls.h) and functions that change lists (list_calls.h) look at a few pieces
// only. Several calls in a row read the segments of all of them once; each call sees what the calls
// before it have made; and what has become of the collection in the end is one write. So calls that
// arrive together, as in a pipeline or in a transaction, take effect at one instant, in their
// order.
//
//   ReadEach answers calls that only read
//   PutEach  makes calls that only put members (puts_in_place.h)
//   Expect   reads ahead what calls will look at; not needed
//   Make     makes a call
//   AddTo    adds the write, and what it depends on as conditions, to an atomic batch
//   Done     the answer of the write, of a batch that was applied
//   Run      all of it, in a batch of its own
//
// A collection that has lost all members has ended: a call that gives it new ones makes another
// collection, which the caller has to do.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collections/access.h"
#include "collections/change.h"
#include "skep/batch.h"

namespace skep::collections {

// One call of a function of collections.
struct FunctionCall {
  const Function* function;
  std::string_view operand;
};

class JointCalls {
 public:
  virtual ~JointCalls() = default;
  JointCalls(const JointCalls&) = delete;
  JointCalls& operator=(const JointCalls&) = delete;

  // The bytes that calls read, beside what is read ahead for all of them, before the rest is left
  // to another write: cuts of long ranges would be one write without a bound.
  static constexpr size_t kWorkBytesMax = size_t{256} << 10;

  // Whether it is a function whose calls can be made together.
  static bool Has(const Function& function);
  // For the collection under the key, whose record was read with `access`.
  static std::unique_ptr<JointCalls> Of(Access& access, std::string_view key, uint8_t kind,
                                        const types::LargeRecord& record);

  // Whether the call would copy more than Batch::portion_bytes_max(), as its operand tells: the
  // segments of the members that it changes, or the elements that it looks at. A cut by score or by
  // member finds that when it is made.
  static bool IsLong(const Access& access, uint8_t kind, const types::LargeRecord& record,
                     const FunctionCall& call);

  // Answers calls that only read, if all can be answered from what one read finds. False: nothing
  // was done.
  virtual bool ReadEach(std::span<const FunctionCall>, std::vector<Answer>*) { return false; }
  // Makes calls that write without having read, if all can be made so. False: nothing was done.
  virtual bool PutEach(std::span<const FunctionCall>, std::vector<Answer>*) { return false; }
  virtual void Expect(std::span<const FunctionCall> calls) = 0;
  // Whether Make can make the call after those before it; the first one it always can.
  virtual bool CanMake(const FunctionCall& call) { return Has(*call.function); }
  // False: the collection has changed meanwhile, or a read was refused (Access::status). A call
  // that is found to be long is not made, and its answer says so.
  virtual bool Make(const FunctionCall& call, Answer* answer) = 0;
  // Makes the write depend on the number of members as it was read.
  virtual void RequireRecord() = 0;
  // The members there are now.
  virtual uint64_t members() const = 0;
  // Whether the calls write the collection, also if they leave it as it is.
  virtual bool has_changes() = 0;
  // False as for Make. The calls must outlive the batch's execution.
  virtual bool AddTo(Batch& batch) = 0;
  virtual Answer Done(const Batch& batch) = 0;
  // Corrects the hints by which a batch was made that was refused. Returns whether one was wrong.
  virtual bool CorrectHints(const Batch&) { return false; }
  // Calls that change nothing: whether what they have read is the newest state.
  virtual bool IsNewest() = 0;
  // Likewise, if the batch also requires the record as it was read: adds the conditions that say
  // so. False: there are none, and IsNewest is to be asked.
  virtual bool RequireRead(Batch&) { return false; }

  // Makes as many of the calls as can be made together, at least one, and appends the answer of
  // each; if the first one is found to be long, its answer only, and nothing was done. False: the
  // collection has changed meanwhile, or what several calls write together was refused; nothing
  // was done.
  bool Run(std::span<const FunctionCall> calls, std::vector<Answer>* answers);

 protected:
  explicit JointCalls(Access& access) : access_(access) {}

  // A call writes what may be there already. The record gets another version then, so that those
  // who watch the key see a change, as they do in Redis (HSET of the same value, LTRIM of nothing).
  void Touch() { is_touched_ = true; }
  bool is_touched() const { return is_touched_; }

  // Whether the record of the key, and what RequireRead requires, are of one version, which is no
  // older than the record. Waits until that version is released, as View::Open does.
  bool IsOfOneVersion(std::string_view key, uint8_t kind, const types::LargeRecord& record);

  Access& access_;

 private:
  std::optional<Answer> Write();

  bool is_touched_ = false;
};

}  // namespace skep::collections
