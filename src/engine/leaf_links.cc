#include "engine/leaf_links.h"

#include "engine/forwarding_engine.h"

namespace skep {

const HasLeafLinks* LeafLinksOf(const Engine& engine) {
  const Engine* at = &engine;
  while (true) {
    if (const auto* const links = dynamic_cast<const HasLeafLinks*>(at)) return links;
    const auto* const outer = dynamic_cast<const ForwardingEngine*>(at);
    if (outer == nullptr) return nullptr;
    at = &outer->inner();
  }
}

}  // namespace skep
