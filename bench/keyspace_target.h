// keyspace_target.h: runs benchmarks on an engine itself, without a store or a server around it.
#pragma once

#include <memory>

#include "bench/record_format.h"
#include "bench/ycsb_target.h"
#include "keyspace/keyspaces.h"

namespace skep::bench {

// Does with a batch what a server's worker does, and nothing else: executes it, waits until it is
// released, and lets the engine tidy up now and then.
class KeyspaceTarget final : public YcsbTarget {
 public:
  // `values` must outlive the target.
  //   kInvalidArgument  no such engine, or not with these options
  static Result<std::unique_ptr<KeyspaceTarget>> Open(const Options& options,
                                                      const ValuePool& values);

  Result<std::unique_ptr<YcsbSession>> Connect() override;
  Result<std::unique_ptr<HeldSnapshot>> Hold() override;
  // Lets the engine finish its background work first.
  Result<Footprint> Measure() override;

 private:
  KeyspaceTarget(std::unique_ptr<Keyspaces> keyspaces, const ValuePool& values)
      : keyspaces_(std::move(keyspaces)), values_(values) {}

  std::unique_ptr<Keyspaces> keyspaces_;
  const ValuePool& values_;
};

}  // namespace skep::bench
