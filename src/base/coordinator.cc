#include "base/coordinator.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace skep {
namespace {

using Kind = CoordinatorRequest::Kind;

bool IsName(std::string_view name) {
  constexpr auto is_printable = [](char c) { return c > ' ' && c <= '~'; };
  return !name.empty() && name != "." && name != ".." && std::ranges::all_of(name, is_printable);
}

}  // namespace

bool IsCoordinatorPath(std::string_view path) {
  if (path == "/") return true;
  if (path.size() > kCoordinatorPathBytesMax || !path.starts_with('/')) return false;
  while (!path.empty()) {
    path.remove_prefix(1);
    const size_t end = std::min(path.find('/'), path.size());
    if (!IsName(path.substr(0, end))) return false;
    path.remove_prefix(end);
  }
  return true;
}

std::string_view NameOf(CoordinatorOutcome outcome) {
  switch (outcome) {
    case CoordinatorOutcome::kDone:
      return "done";
    case CoordinatorOutcome::kAbsent:
      return "absent";
    case CoordinatorOutcome::kExists:
      return "exists";
    case CoordinatorOutcome::kStale:
      return "stale";
    case CoordinatorOutcome::kNotEmpty:
      return "not empty";
    case CoordinatorOutcome::kRefused:
      return "refused";
    case CoordinatorOutcome::kNotSent:
      return "not sent";
    case CoordinatorOutcome::kUnknown:
      return "unknown";
  }
  return "";
}

void CoordinatorSession::Create(uint64_t token, std::string_view path, std::string_view bytes,
                                CoordinatorNode node) {
  SendChecked({.kind = Kind::kCreate,
               .token = token,
               .path = std::string(path),
               .bytes = std::string(bytes),
               .node = node});
}

void CoordinatorSession::Get(uint64_t token, std::string_view path, CoordinatorWatch watch) {
  SendChecked({.kind = Kind::kGet,
               .token = token,
               .path = std::string(path),
               .watch = watch == CoordinatorWatch::kWatch});
}

void CoordinatorSession::Set(uint64_t token, std::string_view path, std::string_view bytes,
                             int32_t version) {
  SendChecked({.kind = Kind::kSet,
               .token = token,
               .path = std::string(path),
               .bytes = std::string(bytes),
               .version = version});
}

void CoordinatorSession::Delete(uint64_t token, std::string_view path, int32_t version) {
  SendChecked(
      {.kind = Kind::kDelete, .token = token, .path = std::string(path), .version = version});
}

void CoordinatorSession::Children(uint64_t token, std::string_view path, CoordinatorWatch watch) {
  SendChecked({.kind = Kind::kChildren,
               .token = token,
               .path = std::string(path),
               .watch = watch == CoordinatorWatch::kWatch});
}

void CoordinatorSession::Confirm(uint64_t token) {
  SendChecked({.kind = Kind::kConfirm, .token = token, .path = "/"});
}

// A negative version would mean "any" to ZooKeeper. The root is neither made nor deleted.
void CoordinatorSession::SendChecked(CoordinatorRequest request) {
  const bool is_of_root =
      request.path == "/" && (request.kind == Kind::kCreate || request.kind == Kind::kDelete);
  if (IsCoordinatorPath(request.path) && !is_of_root && request.version >= 0 &&
      request.bytes.size() <= kCoordinatorBytesMax) {
    return Send(std::move(request));
  }
  AnswerUnsent(request.token, CoordinatorOutcome::kRefused);
}

void CoordinatorSession::AnswerUnsent(uint64_t token, CoordinatorOutcome outcome) {
  unsent_.push_back({.token = token, .outcome = outcome});
  Wake();
}

std::vector<CoordinatorEvent> CoordinatorSession::TakeEvents() {
  std::vector<CoordinatorEvent> events = Receive();
  for (const CoordinatorEvent& event : events) FollowState(event);
  std::ranges::move(unsent_, std::back_inserter(events));
  unsent_.clear();
  return events;
}

void CoordinatorSession::FollowState(const CoordinatorEvent& event) {
  switch (event.kind) {
    case CoordinatorEvent::Kind::kConnected:
      state_ = State::kConnected;
      break;
    case CoordinatorEvent::Kind::kDisconnected:
      state_ = State::kDisconnected;
      break;
    case CoordinatorEvent::Kind::kExpired:
      state_ = State::kExpired;
      break;
    default:
      return;
  }
  state_since_ns_ = event.at_ns;
}

}  // namespace skep
