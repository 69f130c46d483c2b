// fabrics.h: the fabrics over the machine's network, by their names.
//
//   mem           mem_fabric.h
//   tcp           tcp_fabric.h
//   ofi:PROVIDER  ofi/ofi_fabric.h over a provider of libfabric: in libskep-ofi.so, which is loaded
//                 when it is asked for (base/module.h)
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rma/fabric.h"

namespace skep::rma {

// What a person is told who named another one.
inline constexpr const char* kFabricNames = "the fabrics are mem, tcp and ofi:PROVIDER";

// Whether there may be a fabric of this name somewhere.
bool IsFabricName(std::string_view name);
// Whether its endpoints listen at paths, "unix:PATH", and not at HOST:PORT.
bool ListensAtPaths(std::string_view name);

// On an error *problem is a line for a person.
//   kInvalidArgument  there is no fabric of this name
//   kNotSupported     this machine cannot have it: no libskep-ofi, no libfabric, no such provider
Result<std::unique_ptr<Fabric>> MakeFabric(std::string_view name, std::string* problem);

// The function that the module `ofi` shows under the name kOfiEntry makes a fabric, which the
// caller owns; or null, and then `problem`, of so many bytes, is why. The name changes whenever an
// interface of fabric.h does.
using OfiEntry = Fabric* (*)(const char* provider, char* problem, size_t problem_bytes);
inline constexpr const char* kOfiEntry = "SkepMakeOfiFabric1";

}  // namespace skep::rma
