#include "server/function_library.h"

#include <dlfcn.h>

#include <filesystem>

namespace skep {

std::string LoadFunctionLibrary(const std::string& path) {
  constexpr const char* kEntry = "SkepRegisterFunctions";
  // A name without a slash would be looked for in the system's folders.
  const std::string file = std::filesystem::absolute(path).string();
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  const auto entry = reinterpret_cast<bool (*)()>(dlsym(library, kEntry));
  if (entry == nullptr) return path + " has no function " + kEntry;
  if (!entry()) return path + ": " + kEntry + " says that it has failed";
  return {};
}

}  // namespace skep
