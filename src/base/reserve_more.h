// reserve_more.h: room in a vector before a point of no return.
#pragma once

#include <algorithm>
#include <cstddef>

namespace skep {

// So many more elements can be added without an allocation, which is the only thing that may throw.
// Grows as push_back does, so that many calls cost as much together as one.
template <class Vector>
void ReserveMore(Vector& vector, size_t more) {
  const size_t wanted = vector.size() + more;
  if (wanted > vector.capacity()) vector.reserve(std::max(wanted, 2 * vector.capacity()));
}

}  // namespace skep
