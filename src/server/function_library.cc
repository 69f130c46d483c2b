#include "server/function_library.h"

#include <dlfcn.h>

namespace skep {

std::string LoadFunctionLibrary(const std::string& path) {
  constexpr const char* kEntry = "SkepRegisterFunctions";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  const auto entry = reinterpret_cast<bool (*)()>(dlsym(library, kEntry));
  if (entry == nullptr) return path + " has no function " + kEntry;
  if (!entry()) return path + ": " + kEntry + " says that it has failed";
  return {};
}

}  // namespace skep
