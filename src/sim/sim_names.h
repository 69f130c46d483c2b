// sim_names.h: the directory tree of a simulated disk, and what a power loss leaves of it.
//
// Creations, renames and removals are seen at once and become durable by SyncDirectory. A power
// loss keeps, of each directory, the changes up to a seeded one: a file that was created, written
// and synced may be gone, a removed one may be back, a rename may not have happened. A rename is
// one change: never is neither name there, nor both.
//
// Paths are plain text: "a/b" is in "a", "a" is in "." and "/a" is in "/"; "." and "/" always
// exist.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "sim/sim_inode.h"

namespace skep {

class SimNames {
 public:
  struct Node {
    std::shared_ptr<SimInode> file;  // null: a directory
    bool is_directory() const { return file == nullptr; }
  };

  SimNames();

  // Returns null if there is nothing of that name. Valid until the next change.
  const Node* Find(const std::string& path) const;
  bool IsDirectory(const std::string& path) const;
  // Returns the names in a directory, sorted.
  std::vector<std::string> List(const std::string& path) const;
  // Returns the number of bytes of all files.
  uint64_t TotalBytes() const;

  // Adds, replaces or (nullopt) removes an entry, whose directory must exist.
  void Set(const std::string& path, std::optional<Node> node);
  // Renames a file `from`; the directory of `to` must exist.
  void Rename(const std::string& from, const std::string& to);
  void SyncDirectory(const std::string& path);
  // Keeps the changes that survive a power loss; every file that is left loses power too.
  void LosePower(Random& random);

  static std::string DirectoryOf(const std::string& path);

 private:
  using Tree = std::map<std::string, Node>;
  struct Entry {
    std::string path;
    std::optional<Node> node;
  };
  using Change = std::vector<Entry>;  // all or nothing; the first entry's directory owns it

  void Do(Change change);
  static void Apply(const Change& change, Tree& to);
  static bool Touches(const Change& change, const std::string& directory);
  void KeepSomeChanges(Random& random);
  void DropOrphans();

  Tree now_;
  Tree durable_;
  std::vector<Change> unsynced_;
};

}  // namespace skep
