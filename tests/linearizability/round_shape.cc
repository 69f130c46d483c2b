#include "tests/linearizability/round_shape.h"

#include <array>

namespace skep::linearizability {

std::span<const Variant> AllVariants() {
  constexpr NodeLayout kPaper = NodeLayout::kPaper;
  static constexpr std::array<Variant, 8> kVariants = {{
      {.name = "model", .engine = "model", .is_time_one = true},
      {.name = "hash", .engine = "hash", .is_time_one = true},
      {"btree", "btree"},
      {"btree_paper", "btree", {.layout = kPaper}},
      {"btree_2048_no_log", "btree", {.node_bytes = 2048, .log_bytes = 0}},
      {"btree_2048_log_128", "btree", {.node_bytes = 2048, .log_bytes = 128}},
      {"btree_2048_log_320_paper",
       "btree",
       {.node_bytes = 2048, .log_bytes = 320, .layout = kPaper}},
      {"btree_one_version",
       "btree",
       {.node_bytes = 2048, .log_bytes = 128, .multi_version = false}},
  }};
  return kVariants;
}

RoundShape ShapeOf(uint64_t round) {
  RoundShape shape;
  shape.clients = 2 + static_cast<uint32_t>(round % 3);
  shape.hold_up_one_in = round % 2 == 0 ? 0 : 16;
  Mix& mix = shape.mix;
  mix.keys = 2 + static_cast<uint32_t>(round % 4);
  switch (round % 5) {
    case 0:
      break;
    case 1:
    case 2:
      mix.keys = 12 + static_cast<uint32_t>(round % 13);
      mix.ranges = 5;
      shape.filled = true;
      if (round % 5 == 2) shape.neighbours = Neighbours::kAround;
      break;
    case 3:
      shape.neighbours = Neighbours::kBetween;
      shape.filled = true;
      break;
    default:
      mix = {.keys = 2, .ranges = 0, .batches = 0, .snapshots = 0};
      shape.neighbours = Neighbours::kBetween;
  }
  // The values lie inside nodes of 2 KiB (up to 85 bytes) and of 8 KiB (up to 469), and outside.
  constexpr std::array kSmall = {0u, 40u, 0u, 85u};
  constexpr std::array kLarge = {0u, 86u, 400u, 0u, 70u, 470u, 3000u};
  if (round % 4 < 2) {
    mix.value_bytes.assign(kSmall.begin(), kSmall.end());
  } else {
    mix.value_bytes.assign(kLarge.begin(), kLarge.end());
  }
  return shape;
}

std::vector<Pair> Fill(KvClient& client, const Mix& mix) {
  constexpr uint32_t kNobody = 100;  // no client of a history has this number
  std::vector<Pair> pairs;
  for (uint32_t i = 0; i < mix.keys; ++i) {
    Step put{.action = Action::kPut,
             .key = std::string(1, static_cast<char>('a' + i)),
             .value = ValueOf(mix, kNobody, i + 1)};
    pairs.emplace_back(put.key, put.value);
    // A server elsewhere may be about to get its lease. No one else writes yet, so a write that was
    // done and is repeated changes nothing.
    Operation operation;
    do {
      operation = {.steps = {put}};
    } while (client.Perform(operation) != KvClient::Reply::kAnswered);
  }
  return pairs;
}

}  // namespace skep::linearizability
