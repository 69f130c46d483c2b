#include "base/coordinator_module.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

namespace skep {
namespace {

constexpr const char* kName = "libskep-zookeeper.so." SKEP_SO_VERSION;

// The folders of this program, and of the library that this code is in.
std::vector<std::filesystem::path> Folders() {
  std::vector<std::filesystem::path> folders;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&OpenZooKeeper), &info) != 0) {
    folders.push_back(std::filesystem::path(info.dli_fname).parent_path());
  }
  std::error_code error;
  folders.push_back(std::filesystem::read_symlink("/proc/self/exe", error).parent_path());
  return folders;
}

// Null: *problem says why.
void* Load(std::string* problem) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& folder : Folders()) {
    if (folder.empty()) continue;
    files.push_back(folder / kName);
    files.push_back(folder.parent_path() / SKEP_LIBRARY_FOLDER / kName);
  }
  std::erase_if(files, [](const std::filesystem::path& file) {
    std::error_code error;
    return !std::filesystem::exists(file, error);
  });
  files.emplace_back(kName);
  for (const std::filesystem::path& file : files) {
    void* const module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module != nullptr) return module;
    if (problem->empty()) *problem = dlerror();
  }
  return nullptr;
}

// "a,b:1" as "a:2181,b:1".
std::string WithPorts(std::string_view servers) {
  std::string all;
  while (!servers.empty()) {
    const std::string_view server = servers.substr(0, servers.find(','));
    servers.remove_prefix(std::min(server.size() + 1, servers.size()));
    all.append(all.empty() ? "" : ",").append(server);
    if (server.find(':') == std::string_view::npos) all += ":2181";
  }
  return all;
}

}  // namespace

Result<std::unique_ptr<Coordinator>> OpenZooKeeper(const std::string& servers,
                                                   std::string* problem) {
  std::string why;
  void* const module = Load(&why);
  if (module == nullptr) {
    if (problem != nullptr) {
      *problem = "the client of ZooKeeper cannot be loaded: " + why +
                 " (the package libzookeeper-mt2; to build it, libzookeeper-mt-dev)";
    }
    return Fail(
        Code::kNotSupported,
        "libskep-zookeeper, the client of ZooKeeper, cannot be loaded: make pool builds it");
  }
  const auto make = reinterpret_cast<ZooKeeperEntry>(dlsym(module, kZooKeeperEntry));
  if (make == nullptr) {
    if (problem != nullptr) *problem = std::string(kName) + " is of another version";
    return Fail(Code::kNotSupported, "the client of ZooKeeper is of another version");
  }
  return std::unique_ptr<Coordinator>(make(WithPorts(servers).c_str()));
}

}  // namespace skep
