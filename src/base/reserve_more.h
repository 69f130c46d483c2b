// reserve_more.h: room in a vector before a point of no return.
#pragma once

#include <algorithm>
#include <cstddef>

namespace skep {

// Makes room for `more` elements, so that adding them does not allocate, which is the only thing
// that may throw. The capacity grows as push_back's does, so that many calls together cost as much
// as one.
template <class Vector>
void ReserveMore(Vector& vector, size_t more) {
  const size_t wanted = vector.size() + more;
  if (wanted > vector.capacity()) vector.reserve(std::max(wanted, 2 * vector.capacity()));
}

}  // namespace skep
