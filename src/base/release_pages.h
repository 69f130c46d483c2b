// release_pages.h: gives memory back to the system that its owner keeps allocated.
#pragma once

#include <cstddef>
#include <span>

namespace skep {

// Gives the whole pages among the bytes back, which are private memory and become unspecified.
// Returns the number of bytes of those pages. Thread-safe, as the bytes are the caller's.
// Cost: of each page that was in use.
size_t ReleasePages(std::span<char> bytes);

}  // namespace skep
