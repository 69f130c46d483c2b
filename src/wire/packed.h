// packed.h: the packed protocol: many operations in a message, in few bytes, answered in any order
// (KV-Direct, section 4). docs/packed-protocol.md says the same with worked bytes.
//
// A connection begins with a hello of the client (16 bytes) and one of the server (40 bytes). From
// then on both send messages: a header and a payload. Numbers are little-endian; a varint is that
// of base/varint.h.
//
//   client hello                             server hello
//   offset size                              offset size
//        0    4  magic  d5 53 4b 50               0    4  magic
//        4    1  lowest version                   4    1  version; 0: refused
//        5    1  highest version                  5    1  why: kHello...
//        6    2  (zero)                           6    2  keyspaces
//        8    8  client id; 0: none               8    4  message_bytes_max
//                                                12    4  operations_max, of a message
//   header of a message                          16    8  instance: of this run of the server
//   offset size                                  24    4  features
//        0    4  payload bytes                   28    4  snapshots and watches a connection
//        4    4  id, the client's choice         32    8  first_new: from here on the client's ids
//        8    1  kind                                     are new (server/reply_memory.h)
//        9    1  flags
//       10    2  keyspace
//       12    4  count: of operations; else the kind says
//
// A datagram, which needs no connection, is a head, the same in both directions, and one message.
//
//   offset size
//        0    4  magic
//        4    1  version
//        5    1  why, from the server: kHello...; if not accepted, no message follows
//        6    2  limit of the bytes of the reply's datagram; 0: the greatest possible
//        8    8  client id; the server repeats it
//       16    8  instance: the server that the message is for, 0: any; from the server: its own
//
// Every message of a client has one reply with the same id and kind. Messages of a connection that
// are under way at the same time are independent of each other, except that operations on one key
// take effect in the order in which they were sent.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace skep::packed {

inline constexpr std::string_view kMagic = "\xd5SKP";  // no RESP command begins like this
inline constexpr uint8_t kVersion = 1;

// The kind of a message. Payloads: packed_request.h and packed_reply.h for kBatch and kAtomic;
// packed_top.h for kTop; packed_control.h for the others.
enum class Kind : uint8_t {
  kBatch = 1,  // an unordered batch
  kAtomic,     // an atomic batch
  kAuth,
  kPing,
  kKeyspace,       // the traits of the keyspace's engine
  kOpenSnapshot,   // in the keyspace
  kCloseSnapshot,  // in any keyspace
  kWatch,
  kUnwatch,
  kStatistics,
  kSave,   // write a snapshot to the server's directory, as SAVE
  kError,  // from the server only: why it closes the connection
  kTop,    // links of the leaves of the keyspace's tree (packed_top.h)
};
inline constexpr uint8_t kKinds = 13;  // from 1 on

// The most bytes of a reply's payload. Values of points take at most a third of it
// (kAnswerBytesMax); ranges that do not fit are refused (packed_reply.h).
inline constexpr uint32_t kReplyBytesMax = uint32_t{3} << 30;

enum Flag : uint8_t {
  // Flags of requests.
  kSync = 1,           // the reply waits until all it reports survives a power loss
  kWantDeadlines = 2,  // replies tell the deadlines of keys
  kWantVersions = 4,   // replies tell versions
  kRemember = 8,     // the server keeps the reply: sent again with the same id by the same client,
                     // the message is not executed again (server/reply_memory.h)
  kAtSnapshot = 16,  // the payload begins with the varint number of a snapshot: read at it
  kHasScanLimits = 32,  // then with two varints: Batch::scan_bytes_max, scan_visits_max
  // Flags of replies.
  kNotApplied = 1,  // kAtomic: nothing was changed
  kFailed = 2,      // the payload is a status: the message as a whole was refused
};
inline constexpr uint8_t kRequestFlags = 63;

// Why a server refuses a connection, or a datagram.
inline constexpr uint8_t kHelloAccepted = 0;
inline constexpr uint8_t kHelloVersion = 1;   // the server speaks none of the client's versions
inline constexpr uint8_t kHelloInstance = 2;  // the datagram is for another run of the server

enum Feature : uint32_t {
  kNeedsAuth = 1,       // a kAuth message must come first
  kIsDurable = 2,       // there is a log, so that kSync has an effect
  kTakesDatagrams = 4,  // UDP, on the address and port of the connection
  kHasTop = 8,          // the kind kTop, and Outcome::hint of requests whose hint was stale
  kGivesParts = 16,     // a get of a part of a value (Request::kByteRange)
};

struct ClientHello {
  char magic[4] = {kMagic[0], kMagic[1], kMagic[2], kMagic[3]};
  uint8_t version_min = kVersion;
  uint8_t version_max = kVersion;
  uint16_t zero = 0;
  uint64_t client = 0;
};
static_assert(sizeof(ClientHello) == 16 && offsetof(ClientHello, client) == 8);

struct ServerHello {
  char magic[4] = {kMagic[0], kMagic[1], kMagic[2], kMagic[3]};
  uint8_t version = kVersion;
  uint8_t why = kHelloAccepted;
  uint16_t keyspaces = 0;
  uint32_t message_bytes_max = 0;
  uint32_t operations_max = 0;
  uint64_t instance = 0;
  uint32_t features = 0;
  uint32_t handles_max = 0;
  uint64_t first_new = 0;
};
static_assert(sizeof(ServerHello) == 40 && offsetof(ServerHello, instance) == 16 &&
              offsetof(ServerHello, first_new) == 32);

struct DatagramHead {
  char magic[4] = {kMagic[0], kMagic[1], kMagic[2], kMagic[3]};
  uint8_t version = kVersion;
  uint8_t why = kHelloAccepted;
  uint16_t reply_bytes_max = 0;
  uint64_t client = 0;
  uint64_t instance = 0;
};
static_assert(sizeof(DatagramHead) == 24 && offsetof(DatagramHead, instance) == 16);

struct Header {
  uint32_t payload_bytes = 0;
  uint32_t id = 0;
  Kind kind = Kind::kBatch;
  uint8_t flags = 0;
  uint16_t keyspace = 0;
  uint32_t count = 0;

  bool has(Flag flag) const { return (flags & flag) != 0; }
};
static_assert(sizeof(Header) == 16 && offsetof(Header, count) == 12);

// Appends the bytes of `fixed` as they lie in memory.
template <class T>
void Append(std::string& to, const T& fixed) {
  static_assert(std::is_trivially_copyable_v<T> && std::endian::native == std::endian::little);
  to.append(reinterpret_cast<const char*>(&fixed), sizeof(T));
}
// `from` must have enough bytes.
template <class T>
T Read(std::string_view from) {
  static_assert(std::is_trivially_copyable_v<T> && std::endian::native == std::endian::little);
  T fixed;
  std::memcpy(&fixed, from.data(), sizeof(T));
  return fixed;
}

inline bool IsHello(std::string_view bytes) { return bytes.starts_with(kMagic); }
inline bool IsBatch(Kind kind) { return kind == Kind::kBatch || kind == Kind::kAtomic; }
inline bool IsKind(Kind kind) { return static_cast<uint8_t>(kind) - 1u < kKinds; }

// Begins a message in `to` with its header; the caller appends the payload. Returns where the
// message begins.
inline size_t BeginMessage(std::string& to, const Header& header) {
  const size_t begin = to.size();
  Append(to, header);
  return begin;
}
// Fills in the length of the payload, of which `apart_bytes` are sent from elsewhere.
inline void EndMessage(std::string& to, size_t begin, size_t apart_bytes = 0) {
  const auto bytes = static_cast<uint32_t>(to.size() - begin - sizeof(Header) + apart_bytes);
  std::memcpy(to.data() + begin, &bytes, sizeof(bytes));
}

}  // namespace skep::packed
