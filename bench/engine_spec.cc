#include "bench/engine_spec.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "hash/tuning.h"

namespace skep::bench {
namespace {

template <typename Number>
bool ParseNumber(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Parses 4096, 256K or 1M.
bool ParseBytes(std::string_view text, uint32_t& bytes) {
  const uint32_t shift = text.ends_with('K') ? 10 : text.ends_with('M') ? 20 : 0;
  if (shift != 0) text.remove_suffix(1);
  if (!ParseNumber(text, bytes) || bytes > UINT32_MAX >> shift) return false;
  bytes <<= shift;
  return true;
}

bool ParseSwitch(std::string_view text, bool& on) {
  on = text == "on";
  return on || text == "off";
}

bool ParseLayout(std::string_view text, NodeLayout& layout) {
  layout = text == "paper" ? NodeLayout::kPaper : NodeLayout::kHeads;
  return text == "paper" || text == "heads";
}

// The pairs for which a hash table's options are to be chosen.
struct HashTarget {
  uint32_t key_bytes = 0;  // 0: none was named
  uint32_t value_bytes = 0;
  std::optional<double> utilisation;
};

bool ParsePair(std::string_view text, HashTarget& target) {
  const size_t plus = text.find('+');
  return plus != std::string_view::npos && ParseNumber(text.substr(0, plus), target.key_bytes) &&
         ParseNumber(text.substr(plus + 1), target.value_bytes) && target.key_bytes > 0;
}

bool ParseUtilisation(std::string_view text, HashTarget& target) {
  double utilisation = 0;
  if (!ParseNumber(text, utilisation) || utilisation <= 0 || utilisation >= 1) return false;
  target.utilisation = utilisation;
  return true;
}

// Returns false if there is no such option, or it cannot have that value.
bool SetOption(Options& options, HashTarget& target, std::string_view name,
               std::string_view value) {
  if (name == "layout") return ParseLayout(value, options.btree.layout);
  if (name == "node") return ParseNumber(value, options.btree.node_bytes);
  if (name == "log") return ParseNumber(value, options.btree.log_bytes);
  if (name == "mvcc") return ParseSwitch(value, options.btree.multi_version);
  if (name == "inline") return ParseNumber(value, options.hash.inline_bytes_max);
  if (name == "fill") return ParseNumber(value, options.hash.fill_slots);
  if (name == "leaf") return ParseBytes(value, options.hashleaf.leaf_bytes);
  if (name == "threads") return ParseNumber(value, options.hashleaf.threads);
  if (name == "pair") return ParsePair(value, target);
  if (name == "utilisation") return ParseUtilisation(value, target);
  return false;
}

// Returns false if the target contradicts the options, or is only half given.
bool SetTarget(Options& options, const HashTarget& target) {
  if (target.key_bytes == 0) return !target.utilisation;
  if (options.hash != HashOptions()) return false;
  const auto chosen = hash::ChooseTableOptions(target.key_bytes, target.value_bytes,
                                               target.utilisation.value_or(0.5));
  options.hash = {.inline_bytes_max = chosen.inline_bytes_max, .fill_slots = chosen.fill_slots};
  return true;
}

}  // namespace

std::expected<Options, std::string> ParseEngineSpec(std::string_view spec) {
  const size_t colon = spec.find(':');
  Options options = {.engine = std::string(spec.substr(0, colon)), .keyspaces = 1};
  if (colon == std::string_view::npos) return options;
  HashTarget target;
  std::string_view rest = spec.substr(colon + 1);
  for (bool more = true; more;) {
    const size_t comma = rest.find(',');
    const std::string_view setting = rest.substr(0, comma);
    const size_t equals = setting.find('=');
    if (equals == std::string_view::npos ||
        !SetOption(options, target, setting.substr(0, equals), setting.substr(equals + 1))) {
      return std::unexpected(
          fmt::format("{}: '{}' is none of layout=heads|paper, node=BYTES, log=BYTES, mvcc=on|off, "
                      "inline=BYTES, fill=SLOTS, pair=KEY+VALUE, utilisation=PART",
                      spec, setting));
    }
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
  }
  if (!SetTarget(options, target)) {
    return std::unexpected(
        fmt::format("{}: utilisation needs pair, and neither goes with inline and fill", spec));
  }
  return options;
}

std::vector<std::string> JoinEngineSpecs(const std::vector<std::string>& pieces) {
  std::vector<std::string> specs;
  for (const std::string& piece : pieces) {
    const bool is_option = piece.find(':') == std::string::npos && piece.contains('=');
    if (is_option && !specs.empty()) {
      specs.back().append(1, ',').append(piece);
    } else {
      specs.push_back(piece);
    }
  }
  return specs;
}

}  // namespace skep::bench
