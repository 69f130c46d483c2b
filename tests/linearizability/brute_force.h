// brute_force.h: decides linearizability by its definition: tries every order.
//
// The oracle of the checker on histories of a few operations: n! orders, each replayed on a
// Reference, with nothing remembered between them.
#pragma once

#include "tests/linearizability/history.h"

namespace skep::linearizability {

// The history may have at most 10 operations.
bool IsLinearizableByBruteForce(const History& history);

}  // namespace skep::linearizability
