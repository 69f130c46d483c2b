// engine_target.h: runs benchmarks on a store in this process, through skep/store.h alone.
#pragma once

#include <memory>

#include "bench/record_format.h"
#include "bench/ycsb_target.h"
#include "skep/store.h"

namespace skep::bench {

class EngineTarget final : public YcsbTarget {
 public:
  // `values` must outlive the target.
  //   kInvalidArgument  no such engine, or not with these options
  static Result<std::unique_ptr<EngineTarget>> Open(const Options& options,
                                                    const ValuePool& values);

  Result<std::unique_ptr<YcsbSession>> Connect() override;
  Result<Footprint> Measure() override;

 private:
  EngineTarget(std::unique_ptr<Store> store, const ValuePool& values)
      : store_(std::move(store)), values_(values) {}

  std::unique_ptr<Store> store_;
  const ValuePool& values_;
};

}  // namespace skep::bench
