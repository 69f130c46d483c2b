// packed_messages.h: the messages of the packed protocol that are not batches.
#pragma once

#include <string_view>

#include "server/session.h"
#include "wire/packed.h"

namespace skep {

class ServerHost;

// Runs the message and appends its reply to session.out. The session has logged in, or the message
// is kAuth or kPing; the keyspace exists.
void RunMessage(ServerHost& host, Session& session, const packed::Header& header,
                std::string_view payload);

}  // namespace skep
