#include "sim/sim_names.h"

#include <algorithm>
#include <utility>

namespace skep {

SimNames::SimNames() {
  for (const char* root : {".", "/"}) now_[root] = durable_[root] = Node();
}

const SimNames::Node* SimNames::Find(const std::string& path) const {
  const auto found = now_.find(path);
  return found == now_.end() ? nullptr : &found->second;
}

bool SimNames::IsDirectory(const std::string& path) const {
  const Node* const node = Find(path);
  return node != nullptr && node->is_directory();
}

std::string SimNames::DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::vector<std::string> SimNames::List(const std::string& path) const {
  std::vector<std::string> names;
  for (const auto& [other, node] : now_) {
    if (other == "." || other == "/" || DirectoryOf(other) != path) continue;
    names.push_back(other.substr(other.rfind('/') + 1));  // npos + 1 is 0
  }
  return names;  // siblings differ after an equal prefix, so the tree's order is theirs
}

uint64_t SimNames::TotalBytes() const {
  uint64_t bytes = 0;
  for (const auto& [path, node] : now_) {
    if (!node.is_directory()) bytes += node.file->size();
  }
  return bytes;
}

void SimNames::Set(const std::string& path, std::optional<Node> node) {
  Do({{.path = path, .node = std::move(node)}});
}

void SimNames::Rename(const std::string& from, const std::string& to) {
  if (from == to) return;
  Do({{.path = to, .node = now_.at(from)}, {.path = from, .node = std::nullopt}});
}

void SimNames::Do(Change change) {
  Apply(change, now_);
  unsynced_.push_back(std::move(change));
}

// Applies a change. A file has one name: its older name may still be durable if the change that
// removed it was lost.
void SimNames::Apply(const Change& change, Tree& to) {
  for (const Entry& entry : change) {
    to.erase(entry.path);
    if (!entry.node) continue;
    if (!entry.node->is_directory()) {
      std::erase_if(to, [&](const auto& other) { return other.second.file == entry.node->file; });
    }
    to[entry.path] = *entry.node;
  }
}

bool SimNames::Touches(const Change& change, const std::string& directory) {
  return std::ranges::any_of(
      change, [&](const Entry& entry) { return DirectoryOf(entry.path) == directory; });
}

void SimNames::SyncDirectory(const std::string& path) {
  for (const Change& change : unsynced_) {
    if (Touches(change, path)) Apply(change, durable_);
  }
  std::erase_if(unsynced_, [&](const Change& change) { return Touches(change, path); });
}

void SimNames::LosePower(Random& random) {
  KeepSomeChanges(random);
  DropOrphans();
  now_ = durable_;
  for (const auto& [path, node] : now_) {
    if (!node.is_directory()) node.file->LosePower(random);
  }
}

void SimNames::KeepSomeChanges(Random& random) {
  std::map<std::string, size_t> kept;  // of each directory: how many of its changes survive
  for (const Change& change : unsynced_) ++kept[DirectoryOf(change.front().path)];
  for (auto& [directory, count] : kept) count = random.Below(count + 1);
  for (const Change& change : unsynced_) {
    size_t& left = kept[DirectoryOf(change.front().path)];
    if (left == 0) continue;
    --left;
    Apply(change, durable_);
  }
  unsynced_.clear();
}

// Drops files whose directory was lost, which cannot be reached. Parents sort before their entries.
void SimNames::DropOrphans() {
  for (auto entry = durable_.begin(); entry != durable_.end();) {
    const auto parent = durable_.find(DirectoryOf(entry->first));
    const bool reachable = parent != durable_.end() && parent->second.is_directory();
    entry = reachable || entry->first == "." ? std::next(entry) : durable_.erase(entry);
  }
}

}  // namespace skep
