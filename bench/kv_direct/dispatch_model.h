// dispatch_model.h: computes how much of a large slow memory a small fast one should cache
// (KV-Direct, sections 3.3.4 and 6.3.1).
//
// The slow memory is the host's, behind PCIe, the fast one the DRAM of the NIC. A part of host
// memory is cached in the DRAM, lines chosen by a hash of their address: accesses to that part take
// the DRAM's time, and PCIe's too if they miss; the others take PCIe's.
//
//   l     the part that may be cached, 0 to 1
//   k     bytes of the DRAM / bytes of host memory
//   r     accesses a second of the DRAM / of PCIe
//   h(l)  rate of hits; uniform: k / l; Zipf of n keys: log(k n) / log(l n)
//
//   time of the DRAM an access: l / r        of PCIe: (1 - l) + l (1 - h(l))      PCIe's alone = 1
//
// The best l makes both times equal. It is 1 if the DRAM's is the shorter one even then.
//
// kPaper reproduces the paper's printed numbers. Its tables come from formulas with two errors:
//   - h is not limited to 1, though l < k where k = 1 (a cache larger than what it caches);
//   - the gain is that of the DRAM, r / l, where l = 1 as well, though PCIe is the limit there.
// The text says 10^9 keys, but the tables are those of 10^10.
// kExact has neither error: h <= 1, and the gain is that of the slower memory.
//
// Neither mode models the traffic of fills and write-backs.
#pragma once

#include <cstdint>

namespace skep::bench {

enum class DispatchMode : uint8_t { kPaper, kExact };
enum class Popularity : uint8_t { kUniform, kZipf };

struct DispatchModel {
  static constexpr double kKeys = 1e10;

  double k;
  double r;
  Popularity popularity = Popularity::kZipf;
  DispatchMode mode = DispatchMode::kExact;
  double keys = kKeys;  // k * keys > 1

  double HitRate(double l) const;
  double DramTime(double l) const { return l / r; }
  double PcieTime(double l) const { return 1 - l * HitRate(l); }

  // Returns the best l (table 5).
  double BestRatio() const;
  // Returns the accesses a second at the best ratio, in units of PCIe alone.
  double Throughput() const;
  // Returns the throughput over that of two separate memories, each with its part of the keys
  // (table 6): in the DRAM as many as fit, or as balance both if that is less.
  double GainOverPartition() const;
};

}  // namespace skep::bench
