#include "bench/engine_spec.h"

#include <fmt/format.h>

#include <charconv>

namespace skep::bench {
namespace {

bool ParseBytes(std::string_view text, uint32_t& bytes) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseSwitch(std::string_view text, bool& on) {
  on = text == "on";
  return on || text == "off";
}

bool ParseLayout(std::string_view text, NodeLayout& layout) {
  layout = text == "paper" ? NodeLayout::kPaper : NodeLayout::kHeads;
  return text == "paper" || text == "heads";
}

// False if there is no such option, or not with that value.
bool SetOption(BtreeOptions& options, std::string_view name, std::string_view value) {
  if (name == "layout") return ParseLayout(value, options.layout);
  if (name == "node") return ParseBytes(value, options.node_bytes);
  if (name == "log") return ParseBytes(value, options.log_bytes);
  if (name == "mvcc") return ParseSwitch(value, options.multi_version);
  return false;
}

}  // namespace

std::expected<Options, std::string> ParseEngineSpec(std::string_view spec) {
  const size_t colon = spec.find(':');
  Options options = {.engine = std::string(spec.substr(0, colon)), .keyspaces = 1};
  if (colon == std::string_view::npos) return options;
  std::string_view rest = spec.substr(colon + 1);
  for (bool more = true; more;) {
    const size_t comma = rest.find(',');
    const std::string_view setting = rest.substr(0, comma);
    const size_t equals = setting.find('=');
    if (equals == std::string_view::npos ||
        !SetOption(options.btree, setting.substr(0, equals), setting.substr(equals + 1))) {
      return std::unexpected(
          fmt::format("{}: '{}' is none of layout=heads|paper, node=BYTES, log=BYTES, mvcc=on|off",
                      spec, setting));
    }
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
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
