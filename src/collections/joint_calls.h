// joint_calls.h: calls of functions on one large collection, made one after the other and written
// at once.
//
// Functions about members (member_calls.h), pops of sorted sets (sorted_set_calls.h) and functions
// that change lists (list_calls.h) look at a few pieces only. Several calls in a row read the
// segments of all of them once; each call sees what the calls before it have made; and what has
// become of the collection in the end is one write. So calls that arrive together, as in a pipeline
// or in a transaction, take effect at one instant, in their order.
//
//   ReadEach answers calls that only read
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

  // Whether it is a function whose calls can be made together.
  static bool Has(const Function& function);
  // For the collection under the key, whose record was read with `access`.
  static std::unique_ptr<JointCalls> Of(Access& access, std::string_view key, uint8_t kind,
                                        const types::LargeRecord& record);

  // Answers calls that only read, if all can be answered from what one read finds. False: nothing
  // was done.
  virtual bool ReadEach(std::span<const FunctionCall>, std::vector<Answer>*) { return false; }
  virtual void Expect(std::span<const FunctionCall> calls) = 0;
  // False: the collection has changed meanwhile, or a read was refused (Access::status).
  virtual bool Make(const FunctionCall& call, Answer* answer) = 0;
  // Makes the write depend on the number of members as it was read.
  virtual void RequireRecord() = 0;
  // The members there are now.
  virtual uint64_t members() const = 0;
  // Whether the calls have changed anything.
  virtual bool has_changes() = 0;
  // False as for Make. The calls must outlive the batch's execution.
  virtual bool AddTo(Batch& batch) = 0;
  virtual Answer Done(const Batch& batch) = 0;
  // Calls that change nothing: whether what they have read is the newest state.
  virtual bool IsNewest() = 0;

  // Makes as many of the calls as can be made together, at least one, and appends the answer of
  // each. False: the collection has changed meanwhile, or what several calls write together was
  // refused; nothing was done.
  bool Run(std::span<const FunctionCall> calls, std::vector<Answer>* answers);

 protected:
  explicit JointCalls(Access& access) : access_(access) {}

  Access& access_;

 private:
  std::optional<Answer> Write();
};

}  // namespace skep::collections
