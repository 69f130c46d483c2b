#include "tests/simulation/numbered_keys.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace skep::simulation {

NumberedKeys::NumberedKeys(SimCluster& cluster, uint64_t keys, size_t value_bytes)
    : cluster_(cluster), keys_(keys), value_bytes_(value_bytes), writer_(cluster.NewClient(2)) {
  SimClient& loader = cluster.Connect();
  for (; writes_ < keys; ++writes_) loader.Send({"SET", Key(writes_), Value(writes_)});
  cluster.RunUntil([&] { return loader.replies() == keys; });
  EXPECT_EQ(loader.replies(), keys);
  loader.FinishSending();
}

void NumberedKeys::StartWriting() {
  writing_ = true;
  cluster_.sim().AddActor("writer", [this] { return Write(); });
}

bool NumberedKeys::Write() {
  if (writer_->Take()) waits_ = false;
  if (writing_ && !waits_) {
    writer_->Send({"SET", Key(writes_ % keys_), Value(writes_)});
    ++writes_;
    waits_ = true;
  }
  return writer_->Move();
}

std::string NumberedKeys::Key(uint64_t index) const { return fmt::format("k{:08}", index); }

std::string NumberedKeys::Value(uint64_t write) const {
  std::string value = std::to_string(write);
  value.resize(std::max(value.size(), value_bytes_), '.');
  return value;
}

std::optional<std::vector<NumberedKeys::Item>> NumberedKeys::StateOf(
    const std::vector<Item>& items) const {
  uint64_t latest = 0;
  for (const auto& [key, value] : items) {
    latest = std::max<uint64_t>(latest, std::strtoull(value.c_str(), nullptr, 10));
  }
  if (latest < keys_ - 1) return std::nullopt;
  std::vector<Item> state;
  for (uint64_t i = 0; i < keys_; ++i) {
    state.emplace_back(Key(i), Value(latest - (latest - i) % keys_));
  }
  return state;
}

std::vector<NumberedKeys::Item> ItemsOf(const RespReply& reply) {
  std::vector<NumberedKeys::Item> items;
  const auto& elements = reply.elements;
  const bool pairs = !elements.empty() && elements[0].type == RespReply::Type::kArray;
  for (size_t i = 0; i < elements.size(); i += pairs ? 1 : 2) {
    if (pairs) {
      items.emplace_back(elements[i].elements[0].text, elements[i].elements[1].text);
    } else if (i + 1 < elements.size()) {
      items.emplace_back(elements[i].text, elements[i + 1].text);
    }
  }
  return items;
}

}  // namespace skep::simulation
