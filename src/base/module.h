// module.h: a part of Skep in a shared library of its own, loaded when it is asked for.
//
// libskep, skep-server and the tools are linked without the libraries that few want, so that they
// run where these are not installed. What needs one is a shared library, made with the rest and of
// the same version: it is looked for beside the library or program that asks, in the folder of
// libraries beside that one, and where the system's loader looks. It shows one function, whose name
// changes whenever an interface that the two sides share does.
#pragma once

#include <string>

namespace skep {

// The function `entry` of the module `name` ("zookeeper": libskep-zookeeper.so). Null: *problem is
// why, for a person. A module stays loaded. Thread-safe.
void* LoadModule(const std::string& name, const char* entry, std::string* problem);

}  // namespace skep
