#include "server/transaction.h"

#include <utility>

#include "base/check.h"
#include "server/command.h"

namespace skep {

size_t Transaction::BytesOf(std::span<const std::string_view> args) {
  size_t bytes = sizeof(Queued);
  for (const std::string_view arg : args) bytes += arg.size() + sizeof(size_t);
  return bytes;
}

namespace {

// Whether the command can be a part of a transaction on another thread than the worker's, which has
// what the server keeps for connections.
bool MayGoAside(const Command& command) {
  if (command.has(Command::kWrite) || command.has(Command::kReadOnly)) {
    return command.plan != nullptr || command.has(Command::kReadsFirst);
  }
  return command.plan == nullptr && command.alone == nullptr && !command.finish.needs_server();
}

}  // namespace

void Transaction::Add(const Command& command, std::span<const std::string_view> args) {
  if (doomed_) return;
  writes_ |= command.has(Command::kWrite);
  has_whole_ |= command.has(Command::kWhole);
  may_go_aside_ = may_go_aside_ && MayGoAside(command);
  queued_.push_back({.command = &command, .first_arg = ends_.size(), .arg_count = args.size()});
  for (const std::string_view arg : args) {
    words_ += arg;
    ends_.push_back(words_.size());
  }
}

void Transaction::Doom() {
  // Swapped, not assigned: a container that is assigned to keeps its memory.
  std::vector<Queued>().swap(queued_);
  std::string().swap(words_);
  std::vector<size_t>().swap(ends_);
  doomed_ = true;
  writes_ = false;
  has_whole_ = false;
}

size_t Transaction::bytes() const {
  return words_.capacity() + ends_.capacity() * sizeof(size_t) +
         queued_.capacity() * sizeof(Queued);
}

std::span<const std::string_view> Transaction::Args() {
  args_.clear();
  args_.reserve(ends_.size());
  size_t begin = 0;
  for (const size_t end : ends_) {
    args_.push_back(std::string_view(words_).substr(begin, end - begin));
    begin = end;
  }
  return args_;
}

namespace {

constexpr Status kTooManyWatches(Code::kTooLarge,
                                 "a connection can watch 16384 keys of 16 MiB together at most",
                                 kWatchedBytesMax);

}  // namespace

Status WatchedKeys::Add(Engine& engine, std::span<const std::string_view> keys, uint64_t now_ms) {
  SKEP_CHECK(engine_ == nullptr || engine_ == &engine);
  engine_ = &engine;
  std::map<std::string, uint64_t, std::less<>> added;
  size_t key_bytes = key_bytes_;
  for (const std::string_view key : keys) {
    if (watches_.contains(key) || added.contains(key)) continue;
    key_bytes += key.size();
    const bool is_full =
        watches_.size() + added.size() >= kWatchesMax || key_bytes > kWatchedBytesMax;
    const Result<uint64_t> watch =
        is_full ? Result<uint64_t>(Fail(kTooManyWatches)) : engine.Watch(key, now_ms);
    if (!watch) {
      for (const auto& [name, number] : added) engine.Unwatch(number);
      return watch.error();
    }
    added.emplace(key, *watch);
  }
  key_bytes_ = key_bytes;
  for (const auto& [key, number] : added) bytes_ += BytesOf(key);
  watches_.merge(added);
  return {};
}

void WatchedKeys::Require(Batch& batch) const {
  for (const auto& [key, number] : watches_) batch.RequireUnchanged(key, number);
}

void WatchedKeys::Clear() {
  for (const auto& [key, number] : watches_) engine_->Unwatch(number);
  watches_.clear();
  engine_ = nullptr;
  key_bytes_ = 0;
  bytes_ = 0;
}

void WatchedKeys::TakeOver(WatchedKeys& from) {
  std::swap(engine_, from.engine_);
  std::swap(watches_, from.watches_);
  std::swap(key_bytes_, from.key_bytes_);
  std::swap(bytes_, from.bytes_);
}

size_t WatchedKeys::BytesOf(std::string_view key) {
  constexpr size_t kNode = 112;
  return key.size() + kNode;
}

}  // namespace skep
