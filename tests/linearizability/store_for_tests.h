// store_for_tests.h: what only tests may reach of a store.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "keyspace/keyspaces.h"
#include "skep/store.h"

namespace skep {

// A friend of Store.
class StoreForTests {
 public:
  // The engine of keyspace 0.
  static Engine& EngineOf(Store& store) { return store.keyspaces_->at(0); }
  // A store of one keyspace, which has this engine.
  static std::unique_ptr<Store> Of(std::unique_ptr<Engine> engine) {
    std::vector<std::unique_ptr<Engine>> engines;
    engines.push_back(std::move(engine));
    auto store = std::unique_ptr<Store>(new Store());
    store->keyspaces_ = std::make_unique<Keyspaces>(std::move(engines));
    return store;
  }
};

}  // namespace skep
