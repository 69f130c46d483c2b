// padded_client.h: makes keys and values long for the store and short for the history.
//
//   history   c                               1000000100~85
//   store     stem ... stem c pad ... pad     1000000100~QXDK...      85 bytes in all
//
// The pairs in the store are long enough to spread a dozen keys over many leaves, with keys and
// values inside nodes and outside; the pairs that the checker compares, and people read, stay
// short. Keys keep their order. A value that comes back with one byte changed is shown as
// "damaged".
//
// Neighbours. Other keys may lie around the history's letters, or between them: a letter and
// digits, "c0017". Their writers are not recorded (noise.h). So that the history is right without
// them
//   - around: a range without a bound gets one, at the end of the letters;
//   - between: neighbours are left out of the answers of scans, and a limited scan, or one from the
//     floor, is recorded as the plain scan of the part that it covered. How many keys a range
//     delete met is not recorded. Counts, limited deletes and whether a range is empty are not
//     asked for.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tests/linearizability/kv_client.h"

namespace skep::linearizability {

enum class Neighbours : uint8_t { kNone, kAround, kBetween };

// The padding of the keys of one round. Thread safety: constant.
class Padding {
 public:
  // The length is from none to more than a node can hold.
  explicit Padding(uint64_t seed);
  // Returns a padding that leaves keys as they are.
  static Padding None() { return Padding(); }

  std::string Key(std::string_view name) const;
  // Returns the name of which Key() made this; the bytes themselves if it did not make them.
  std::string NameOf(std::string_view key) const;

  static std::string Value(std::string_view name);
  static std::string NameOfValue(std::string_view value);

 private:
  Padding() = default;
  std::string_view PadOf(char letter) const;

  std::string stem_;
  std::array<std::string, 4> pads_;  // for the letters, in turn
};

// Thread safety: one owner.
class PaddedClient final : public KvClient {
 public:
  PaddedClient(std::unique_ptr<KvClient> inner, const Padding& padding, Neighbours neighbours)
      : inner_(std::move(inner)), padding_(padding), neighbours_(neighbours) {}

  bool Supports(const Operation& operation) const override;
  Reply Perform(Operation& operation) override;

 private:
  Step Padded(const Step& step) const;
  void TakeAnswer(const Step& answered, Step& step) const;
  void ConfineScan(Step& step) const;

  std::unique_ptr<KvClient> inner_;
  const Padding padding_;
  const Neighbours neighbours_;
};

// Returns whether the name is a neighbour's, not a key of the history.
constexpr bool IsNeighbour(std::string_view name) {
  return name.size() > 1 || (!name.empty() && (name[0] < 'a' || name[0] > 'z'));
}

}  // namespace skep::linearizability
