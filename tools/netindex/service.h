// service.h: what commands have in common that run until they are told to end.
#pragma once

#include <string_view>

#include "base/file_descriptor.h"

namespace skep {

// From here on SIGTERM and SIGINT make the descriptor readable, and do nothing else.
FileDescriptor TakeEndSignals();

// Prints a line for a person, at once.
void SayLine(std::string_view line);

// Prints why the command fails; returns its exit status.
int FailWith(std::string_view problem);

}  // namespace skep
