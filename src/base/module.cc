#include "base/module.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>
#include <vector>

namespace skep {
namespace {

// The folders of this program, and of the library that this code is in.
std::vector<std::filesystem::path> Folders() {
  std::vector<std::filesystem::path> folders;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&LoadModule), &info) != 0) {
    folders.push_back(std::filesystem::path(info.dli_fname).parent_path());
  }
  std::error_code error;
  folders.push_back(std::filesystem::read_symlink("/proc/self/exe", error).parent_path());
  return folders;
}

// Null: *problem says why.
void* Load(const std::string& file_name, std::string* problem) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& folder : Folders()) {
    if (folder.empty()) continue;
    files.push_back(folder / file_name);
    files.push_back(folder.parent_path() / SKEP_LIBRARY_FOLDER / file_name);
  }
  std::erase_if(files, [](const std::filesystem::path& file) {
    std::error_code error;
    return !std::filesystem::exists(file, error);
  });
  files.emplace_back(file_name);
  for (const std::filesystem::path& file : files) {
    void* const module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module != nullptr) return module;
    if (problem->empty()) *problem = dlerror();
  }
  return nullptr;
}

}  // namespace

void* LoadModule(const std::string& name, const char* entry, std::string* problem) {
  problem->clear();
  const std::string file_name = "libskep-" + name + ".so." SKEP_SO_VERSION;
  void* const module = Load(file_name, problem);
  if (module == nullptr) return nullptr;
  void* const function = dlsym(module, entry);
  if (function == nullptr) *problem = file_name + " is of another version";
  return function;
}

}  // namespace skep
