// bpf_program.h: programs that clang has compiled for BPF, loaded into the kernel. Needs the
// privilege to do so (CAP_BPF).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "skep/status.h"

struct bpf_object;

// Puts the file at `path` into the program, as the bytes between `name` and `name`_end.
#define SKEP_EMBED(name, path)                                                             \
  asm(".section .rodata\n.balign 8\n"                                                      \
      ".global " #name "\n.global " #name "_end\n" #name ":\n.incbin \"" path "\"\n" #name \
      "_end:\n.previous\n");                                                               \
  extern "C" const char name[];                                                            \
  extern "C" const char name##_end[]

namespace skep::netindex {

// Thread safety: one owner.
class BpfProgram {
 public:
  // Loads the programs and maps of an object file, whose constant `config` gets these bytes. On an
  // error *problem is a line for a person.
  //   kIo  the errno of the system, which refuses it
  static Result<BpfProgram> Load(std::string_view object_file, std::span<const std::byte> config,
                                 std::string* problem);

  // The descriptors of the map and of the program with this name; negative: there is none.
  int MapNamed(const char* name) const;
  int ProgramNamed(const char* name) const;

 private:
  struct Closer {
    void operator()(bpf_object* object) const;
  };
  explicit BpfProgram(bpf_object* object) : object_(object) {}

  std::unique_ptr<bpf_object, Closer> object_;
};

}  // namespace skep::netindex
