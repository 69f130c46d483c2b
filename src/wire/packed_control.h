// packed_control.h: the payloads of messages that are not batches. Payloads not listed are empty.
//
//   kind            from the client                    from the server
//   kAuth           the password
//   kPing           any bytes                          the same bytes
//   kKeyspace                                          varints: traits, longest key, longest
//                                                      value, shortest key, shortest value;
//                                                      the engine's name
//   kOpenSnapshot                                      varint number, varint version, varint now_ms
//   kCloseSnapshot  varint number
//   kWatch          the key                            varint number
//   kUnwatch        varint number
//   kStatistics                                        nine varints: EngineStatistics, the released
//                                                      version; then until the end: name as varint
//                                                      length and bytes, varint number
//   kSave           varint: 0, or the one of a reply   varint to ask again with; 0: it is done
//   kError                                             a status, after which the server hangs up
//
// Any of them may be answered by a failure instead (kFailed, packed_reply.h). Snapshots and watches
// live as long as their connection.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace skep::packed {

void AppendTraits(std::string& to, const EngineTraits& traits);
// False: `payload` is malformed. The name in *traits is a view into the payload.
bool ReadTraits(std::string_view payload, EngineTraits* traits);

struct KeyspaceStatistics {
  EngineStatistics engine;
  Version released = 0;
  std::vector<std::pair<std::string, uint64_t>> details;  // Engine::Describe
};

void AppendStatistics(std::string& to, const KeyspaceStatistics& statistics);
bool ReadStatistics(std::string_view payload, KeyspaceStatistics* statistics);

}  // namespace skep::packed
