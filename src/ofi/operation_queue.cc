#include "ofi/operation_queue.h"

#include <rdma/fi_rma.h>

#include <algorithm>

namespace skep::rma {

void OperationQueue::Add(uint64_t token, std::span<const Operation> operations) {
  auto post = std::make_unique<Post>();
  post->token = token;
  post->works.resize(operations.size());
  for (size_t i = 0; i < operations.size(); ++i) {
    Work& work = post->works[i];
    work.context.completer = this;
    work.context.what = &work;
    work.operation = operations[i];
    work.post = post.get();
  }
  posts_.push_back(std::move(post));
}

void OperationQueue::MoveOn() {
  while (begun_ < posts_.size() && error_ == 0) {
    Post& post = *posts_[begun_];
    while (post.begun < post.works.size()) {
      const ssize_t code = Begin(post.works[post.begun]);
      if (code != 0 && code != -FI_EAGAIN) error_ = static_cast<int>(-code);
      if (code != 0) return;
      ++post.begun;
    }
    ++begun_;
  }
}

ssize_t OperationQueue::Begin(Work& work) {
  const Operation& operation = work.operation;
  if (work.local == nullptr) {
    auto local = domain_.RegisterLocal(operation.local, operation.bytes, ep_);
    if (!local) return -FI_ENOMEM;
    work.local = std::move(*local);
  }
  void* descriptor = work.local == nullptr ? nullptr : fi_mr_desc(work.local.get());
  const RemoteRegion& region = regions_[operation.region];
  const uint64_t at = region.base + operation.offset;
  if (operation.kind == Operation::Kind::kRead) {
    return fi_read(ep_, operation.local, operation.bytes, descriptor, peer_, at, region.key,
                   &work.context);
  }
  const iovec from = {.iov_base = operation.local, .iov_len = operation.bytes};
  const fi_rma_iov to = {.addr = at, .len = operation.bytes, .key = region.key};
  const fi_msg_rma message = {.msg_iov = &from,
                              .desc = &descriptor,
                              .iov_count = 1,
                              .addr = peer_,
                              .rma_iov = &to,
                              .rma_iov_count = 1,
                              .context = &work.context,
                              .data = 0};
  return fi_writemsg(ep_, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

void OperationQueue::Complete(OfiContext& context, int error) {
  Work& work = *static_cast<Work*>(context.what);
  work.local.reset();
  if (error != 0) {
    if (error_ == 0) error_ = error;
    return;
  }
  Post& post = *work.post;
  if (++post.ended < post.works.size()) return;
  done_.push_back(post.token);
  const auto at = std::ranges::find(posts_, &post, [](const auto& p) { return p.get(); });
  if (at - posts_.begin() < static_cast<ptrdiff_t>(begun_)) --begun_;
  posts_.erase(at);
}

std::vector<uint64_t> OperationQueue::TakeUndone() {
  std::vector<uint64_t> tokens;
  for (const auto& post : posts_) tokens.push_back(post->token);
  posts_.clear();
  begun_ = 0;
  return tokens;
}

}  // namespace skep::rma
