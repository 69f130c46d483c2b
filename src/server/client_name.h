// client_name.h: the names of clients, for CLIENT SETNAME and HELLO.
#pragma once

#include <string_view>

#include "server/client_registry.h"
#include "server/server_call.h"

namespace skep {

inline constexpr std::string_view kClientNameTooLong =
    "ERR Client names cannot be longer than 256 bytes.";
static_assert(ClientRegistry::kNameBytesMax == 256);

// Whether the name has printable characters only, and no spaces.
bool IsClientName(std::string_view name);

// Names the client of the call. Returns false, with the error sent, if that is no name.
bool SetClientName(const ServerCall& call, std::string_view name);

}  // namespace skep
