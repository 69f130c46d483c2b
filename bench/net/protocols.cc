#include "bench/net/protocols.h"

#include <algorithm>
#include <iterator>

#include "bench/net/memcached_meta.h"
#include "bench/net/memcached_text.h"
#include "bench/net/packed_protocol.h"
#include "bench/net/resp_protocol.h"

namespace skep::bench {
namespace {

template <typename Protocol>
std::unique_ptr<NetProtocol> Make(const NetFormat& format) {
  return std::make_unique<Protocol>(format);
}

struct Entry {
  std::string_view name;
  std::unique_ptr<NetProtocol> (*make)(const NetFormat& format);
};

constexpr Entry kProtocols[] = {
    {"resp", Make<RespProtocol>},
    {"packed", Make<PackedProtocol>},
    {"memcached-text", Make<MemcachedText>},
    {"memcached-meta", Make<MemcachedMeta>},
};

}  // namespace

std::unique_ptr<NetProtocol> MakeNetProtocol(std::string_view name, const NetFormat& format) {
  const auto* found = std::ranges::find(kProtocols, name, &Entry::name);
  return found == std::end(kProtocols) ? nullptr : found->make(format);
}

std::vector<std::string> NetProtocolNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kProtocols) names.emplace_back(entry.name);
  return names;
}

}  // namespace skep::bench
