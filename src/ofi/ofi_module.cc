// The one function that libskep-ofi.so shows; rma::MakeFabric calls it.
#include <algorithm>
#include <string>

#include "ofi/ofi_fabric.h"
#include "rma/fabrics.h"

extern "C" __attribute__((visibility("default"))) skep::rma::Fabric* SkepMakeOfiFabric1(
    const char* provider, char* problem, size_t problem_bytes) {
  auto fabric = skep::rma::OfiFabric::Make(provider);
  if (fabric) return fabric->release();
  const std::string why = fabric.error().ToString();
  problem[std::min(why.copy(problem, problem_bytes - 1), problem_bytes - 1)] = '\0';
  return nullptr;
}
