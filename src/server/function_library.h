// function_library.h: functions of users, from shared objects that are loaded before the server
// serves (the option function-library).
//
//   // g++ -std=c++23 -shared -fPIC functions.cc -o functions.so $(pkg-config --cflags skep)
//   #include <skep/function.h>
//   extern "C" bool SkepRegisterFunctions() {
//     return skep::RegisterUpdate<float>("relu", [](float x, float) { return x < 0 ? 0 : x; })
//         .has_value();
//   }
//
// The library is not linked with anything of Skep: the function that it calls is the server's own.
// It must be compiled with the headers of this very version. It runs inside the server, and is
// trusted like it. It is never unloaded.
#pragma once

#include <string>

namespace skep {

// Loads the shared object and calls its SkepRegisterFunctions(). Returns an error text, or an empty
// one. Errors: it cannot be loaded, has no such function, or that returned false.
std::string LoadFunctionLibrary(const std::string& path);

}  // namespace skep
