#include "pool/pool_map.h"

#include "pool/fields.h"

namespace skep::pool {

std::string PoolRoles::Encode() const {
  std::string bytes;
  AppendVarint(bytes, epoch);
  AppendVarint(bytes, hash_server);
  AppendVarint(bytes, sorted_server);
  return bytes;
}

bool PoolRoles::Decode(std::string_view bytes, PoolRoles* roles) {
  return TakeVarint(bytes, &roles->epoch) && TakeNumber(bytes, &roles->hash_server) &&
         TakeNumber(bytes, &roles->sorted_server) && bytes.empty() && roles->epoch != 0 &&
         roles->hash_server != 0;
}

}  // namespace skep::pool
