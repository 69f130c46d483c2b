#include "netindex/bpf/bpf_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace skep::netindex {
namespace {

bool Configure(bpf_object* object, std::span<const std::byte> config) {
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) {
    if (std::strstr(bpf_map__name(map), ".rodata") == nullptr) continue;
    return bpf_map__set_initial_value(map, config.data(), config.size()) == 0;
  }
  return false;
}

}  // namespace

void BpfProgram::Closer::operator()(bpf_object* object) const { bpf_object__close(object); }

Result<BpfProgram> BpfProgram::Load(std::string_view object_file, std::span<const std::byte> config,
                                    std::string* problem) {
  libbpf_set_print(nullptr);
  BpfProgram program(bpf_object__open_mem(object_file.data(), object_file.size(), nullptr));
  bpf_object* const object = program.object_.get();
  if (object == nullptr || !Configure(object, config) || bpf_object__load(object) != 0) {
    const int error = errno;
    *problem = fmt::format("the system does not load the program: {}", std::strerror(error));
    return Fail(Code::kIo, "the program cannot be loaded", static_cast<uint64_t>(error));
  }
  return program;
}

int BpfProgram::MapNamed(const char* name) const {
  return bpf_map__fd(bpf_object__find_map_by_name(object_.get(), name));
}

int BpfProgram::ProgramNamed(const char* name) const {
  return bpf_program__fd(bpf_object__find_program_by_name(object_.get(), name));
}

}  // namespace skep::netindex
