#include "tools/command_pipeline.h"

#include <utility>

namespace skep {
namespace {

constexpr size_t kPendingMax = 8192;
constexpr size_t kPendingBytesMax = size_t{4} << 20;

}  // namespace

std::string RespPipeline::Select(uint64_t db) {
  if (!Finish()) return status_.ToString();
  const auto reply = client_.Call({"SELECT", std::to_string(db)});
  if (!reply) status_ = reply.error();
  return reply ? (reply->is_error() ? reply->text : "") : status_.ToString();
}

bool RespPipeline::Set(const DumpItem& item, std::string name) {
  const std::string deadline = std::to_string(item.deadline_ms);
  const std::string_view args[] = {"SET", item.key, item.value, "PXAT", deadline};
  return Send(std::span(args).first(item.deadline_ms == 0 ? 3 : 5), std::move(name));
}

bool RespPipeline::Send(std::span<const std::string_view> args, std::string name) {
  client_.Send(args);
  size_t bytes = 0;
  for (const std::string_view arg : args) bytes += arg.size();
  pending_.push_back({.name = std::move(name), .bytes = bytes});
  pending_bytes_ += bytes;
  if (pending_.size() < kPendingMax && pending_bytes_ < kPendingBytesMax) return true;
  return Drain(kPendingMax / 2, kPendingBytesMax / 2);
}

// Waits until no more than this is under way.
bool RespPipeline::Drain(size_t commands_max, size_t bytes_max) {
  while (pending_.size() > commands_max || pending_bytes_ > bytes_max) {
    const auto reply = client_.Receive();
    if (!reply) {
      status_ = reply.error();
      return false;
    }
    const Pending pending = std::move(pending_.front());
    pending_.pop_front();
    pending_bytes_ -= pending.bytes;
    on_reply_(pending.name, *reply);
  }
  return true;
}

}  // namespace skep
