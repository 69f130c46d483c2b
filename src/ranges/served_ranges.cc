#include "ranges/served_ranges.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/coordinator_module.h"
#include "base/decimal.h"

namespace skep::ranges {
namespace {

constexpr std::chrono::milliseconds kPause(5);

Status ReadOption(std::string_view name, std::string_view value, ServedRangesOptions& options) {
  if (name == "zk" && !value.empty()) {
    if (!options.zookeeper.empty()) options.zookeeper += ',';
    options.zookeeper += value;
  } else if (name == "name" && IsMapName(value)) {
    options.owner.name = value;
  } else if (name == "at" && value.find(':') != std::string_view::npos) {
    options.owner.self = value;
  } else if (name == "session") {
    const auto ms = ParseDecimal<uint32_t>(value);
    if (!ms || *ms < ServedRanges::kSessionMsMin || *ms > ServedRanges::kSessionMsMax) {
      return {Code::kInvalidArgument, "ranges: a session is 1000 to 3600000 milliseconds"};
    }
    options.owner.session_ms = *ms;
  } else {
    return {Code::kInvalidArgument, "ranges are zk=HOST:PORT,name=NAME,at=HOST:PORT[,session=MS]"};
  }
  return {};
}

}  // namespace

Result<ServedRangesOptions> ReadServedRanges(std::string_view text) {
  ServedRangesOptions options;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const size_t equals = word.find('=');
    const bool has_value = equals != std::string_view::npos;
    const Status status =
        ReadOption(word.substr(0, equals), has_value ? word.substr(equals + 1) : "", options);
    if (!status.ok()) return Fail(status);
  }
  if (options.zookeeper.empty() || options.owner.name.empty() || options.owner.self.empty()) {
    return Fail(Code::kInvalidArgument, "ranges need zk=HOST:PORT, name=NAME and at=HOST:PORT");
  }
  return options;
}

Result<std::unique_ptr<ServedRanges>> ServedRanges::Open(const ServedRangesOptions& options,
                                                         Engine& engine, RangeCopyOptions copying,
                                                         std::string* problem) {
  const EngineTraits& traits = engine.traits();
  if (!traits.ordered || !traits.range_writes || !traits.counts_itself) {
    *problem = "ranges: the engine of keyspace 0 must be ordered, and of this process";
    return Fail(Code::kNotSupported, "ranges need an ordered engine");
  }
  auto coordinator = OpenZooKeeper(options.zookeeper, problem);
  if (!coordinator) return Fail(coordinator.error());
  return std::unique_ptr<ServedRanges>(
      new ServedRanges(options, std::move(*coordinator), engine, std::move(copying)));
}

ServedRanges::ServedRanges(const ServedRangesOptions& options,
                           std::unique_ptr<Coordinator> coordinator, Engine& engine,
                           RangeCopyOptions copying)
    : coordinator_(std::move(coordinator)),
      owner_(options.owner, *coordinator_, SystemClock(), engine,
             [&engine, copying = std::move(copying)](const RangeToCopy& range) {
               return CopyRemoteRange(range, engine, copying);
             }),
      thread_(kPause, [this] {
        owner_.Turn();
        return false;
      }) {}

}  // namespace skep::ranges
