// Property: whatever a server sends, and however it stalls and breaks, each call of a client ends
// in time with a valid answer, and the client goes on with a server that behaves.
//
// Input: a program of lying_server.h.
#include <cstddef>
#include <cstdint>

#include "lying_server.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kBytesMax = 4096;
  if (size > kBytesMax) return -1;
  skep::PlayLies({reinterpret_cast<const char*>(data), size});
  return 0;
}
