#include "sim/sim_nodes.h"

#include <fmt/format.h>

#include <utility>

namespace skep {
namespace {

using RequestKind = CoordinatorRequest::Kind;
using Outcome = CoordinatorOutcome;

std::string ParentOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

CoordinatorEvent Answer(const CoordinatorRequest& request, Outcome outcome) {
  return {.token = request.token, .outcome = outcome};
}

}  // namespace

CoordinatorEvent SimNodes::Do(const CoordinatorRequest& request, uint64_t session,
                              std::vector<Touched>& touched) {
  switch (request.kind) {
    case RequestKind::kCreate:
      return Create(request, session, touched);
    case RequestKind::kSet:
      return Set(request, touched);
    case RequestKind::kDelete:
      return Delete(request, touched);
    case RequestKind::kConfirm:
      return Answer(request, Outcome::kDone);
    default:
      return Read(request);
  }
}

CoordinatorEvent SimNodes::Create(const CoordinatorRequest& request, uint64_t session,
                                  std::vector<Touched>& touched) {
  const auto parent = nodes_.find(ParentOf(request.path));
  if (parent == nodes_.end()) return Answer(request, Outcome::kAbsent);
  if (parent->second.owner != 0) return Answer(request, Outcome::kRefused);
  CoordinatorEvent answer = Answer(request, Outcome::kDone);
  answer.path = request.path;
  if (request.node == CoordinatorNode::kEphemeralSequential) {
    answer.path += fmt::format("{:010}", ++parent->second.last_number);
  }
  const uint64_t owner = request.node == CoordinatorNode::kPersistent ? 0 : session;
  const Node node = {.bytes = request.bytes, .owner = owner};
  if (!nodes_.emplace(answer.path, node).second) return Answer(request, Outcome::kExists);
  touched.push_back({.path = answer.path, .bytes = true});
  touched.push_back({.path = parent->first, .children = true});
  return answer;
}

CoordinatorEvent SimNodes::Set(const CoordinatorRequest& request, std::vector<Touched>& touched) {
  const auto node = nodes_.find(request.path);
  if (node == nodes_.end()) return Answer(request, Outcome::kAbsent);
  if (node->second.version != request.version) return Answer(request, Outcome::kStale);
  node->second.bytes = request.bytes;
  CoordinatorEvent answer = Answer(request, Outcome::kDone);
  answer.version = ++node->second.version;
  touched.push_back({.path = request.path, .bytes = true});
  return answer;
}

CoordinatorEvent SimNodes::Delete(const CoordinatorRequest& request,
                                  std::vector<Touched>& touched) {
  const auto node = nodes_.find(request.path);
  if (node == nodes_.end()) return Answer(request, Outcome::kAbsent);
  if (node->second.version != request.version) return Answer(request, Outcome::kStale);
  if (!ChildrenOf(request.path).empty()) return Answer(request, Outcome::kNotEmpty);
  Erase(request.path, touched);
  return Answer(request, Outcome::kDone);
}

void SimNodes::Erase(const std::string& path, std::vector<Touched>& touched) {
  touched.push_back({.path = path, .bytes = true, .children = true});
  touched.push_back({.path = ParentOf(path), .children = true});
  nodes_.erase(nodes_.find(path));
}

void SimNodes::EndSession(uint64_t session, std::vector<Touched>& touched) {
  std::vector<std::string> ended;
  for (const auto& [path, node] : nodes_) {
    if (node.owner == session) ended.push_back(path);
  }
  for (const std::string& path : ended) Erase(path, touched);
}

CoordinatorEvent SimNodes::Read(const CoordinatorRequest& request) const {
  const auto node = nodes_.find(request.path);
  if (node == nodes_.end()) return Answer(request, Outcome::kAbsent);
  CoordinatorEvent answer = Answer(request, Outcome::kDone);
  if (request.kind == RequestKind::kChildren) {
    answer.children = ChildrenOf(request.path);
  } else {
    answer.bytes = node->second.bytes;
    answer.version = node->second.version;
    answer.owner = node->second.owner;
  }
  return answer;
}

std::vector<std::string> SimNodes::ChildrenOf(std::string_view path) const {
  const std::string prefix = path == "/" ? "/" : std::string(path) + "/";
  std::vector<std::string> names;
  for (auto node = nodes_.upper_bound(prefix); node != nodes_.end(); ++node) {
    if (!node->first.starts_with(prefix)) break;
    const std::string_view name = std::string_view(node->first).substr(prefix.size());
    if (!name.contains('/')) names.emplace_back(name);
  }
  return names;
}

}  // namespace skep
