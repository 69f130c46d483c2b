// environment.h: the clock, randomness, files and network of a server; a test injects its own.
#pragma once

#include "base/clock.h"
#include "base/file.h"
#include "base/network.h"
#include "base/random.h"

namespace skep {

struct Environment {
  Clock& clock;
  Random& random;
  FileSystem& files;
  Network& network;
};

inline Environment SystemEnvironment() {
  return {SystemClock(), SystemRandom(), PosixFileSystem(), SocketNetwork()};
}

}  // namespace skep
