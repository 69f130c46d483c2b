// siphash.h: SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012).
//
// A short tag of some bytes that cannot be made without the key. Cost: about a nanosecond for each
// byte; no allocation.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace skep {

using SipKey = std::array<uint64_t, 2>;

// Thread-safe.
uint64_t SipHash(const SipKey& key, std::string_view bytes);

}  // namespace skep
