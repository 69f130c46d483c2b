// brute_force.h: linearizability by its definition: try every order.
//
// The oracle of the checker on histories of a few operations: n! orders, each replayed on a
// Reference, nothing remembered between them.
#pragma once

#include "tests/linearizability/history.h"

namespace skep::linearizability {

// At most 10 operations.
bool IsLinearizableByBruteForce(const History& history);

}  // namespace skep::linearizability
