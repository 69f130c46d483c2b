#include "tools/cli/reply_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/ascii.h"
#include "base/hex.h"
#include "tools/escape.h"

namespace skep::cli {
namespace {

using Json = nlohmann::ordered_json;
using Type = RespReply::Type;

bool IsBytes(const RespReply& reply) {
  return reply.type == Type::kBulk || reply.type == Type::kVerbatim;
}

// ---- Readable ----

std::string Readable(const RespReply& reply, bool hex, const std::string& indent);

std::string_view EmptyName(Type type) {
  switch (type) {
    case Type::kMap:
      return "(empty hash)\n";
    case Type::kSet:
      return "(empty set)\n";
    case Type::kPush:
      return "(empty push)\n";
    default:
      return "(empty array)\n";
  }
}

// Returns the number of elements, or of pairs of a map.
size_t CountOf(const RespReply& reply) {
  return reply.elements.size() / (reply.type == Type::kMap ? 2 : 1);
}

// Returns whether a reply has elements on lines below one another. As a value in a map, such a
// reply begins on a line of its own.
bool TakesLines(const RespReply& reply) {
  const size_t count = CountOf(reply);
  return count > 1 || (count == 1 && TakesLines(reply.elements.back()));
}

std::string ReadableElements(const RespReply& reply, bool hex, const std::string& indent) {
  if (reply.elements.empty()) return std::string(EmptyName(reply.type));
  const bool is_map = reply.type == Type::kMap;
  const size_t count = CountOf(reply);
  const size_t width = fmt::formatted_size("{}", count);
  const char mark = is_map ? '#' : reply.type == Type::kSet ? '~' : ')';
  const std::string inner = indent + std::string(width + 2, ' ');
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    // The first element stands behind the text that the caller has written.
    text += fmt::format("{}{:>{}}{} ", i == 0 ? "" : indent, i + 1, width, mark);
    text += Readable(reply.elements[is_map ? 2 * i : i], hex, inner);
    if (!is_map) continue;
    text.pop_back();
    const RespReply& value = reply.elements[2 * i + 1];
    text += " => " + (TakesLines(value) ? "\n" + inner : "") + Readable(value, hex, inner);
  }
  return text;
}

std::string Readable(const RespReply& reply, bool hex, const std::string& indent) {
  if (hex && IsBytes(reply)) return ToHex(reply.text) + "\n";
  switch (reply.type) {
    case Type::kNull:
      return "(nil)\n";
    case Type::kError:
      return "(error) " + reply.text + "\n";
    case Type::kInteger:
      return fmt::format("(integer) {}\n", reply.integer);
    case Type::kDouble:
      return fmt::format("(double) {}\n", reply.number);
    case Type::kBoolean:
      return reply.integer != 0 ? "(true)\n" : "(false)\n";
    case Type::kBigNumber:
      return "(big number) " + reply.text + "\n";
    case Type::kBulk:
      return Quoted(reply.text) + "\n";
    case Type::kSimple:
    case Type::kVerbatim:
      return reply.text + "\n";
    default:
      return ReadableElements(reply, hex, indent);
  }
}

// ---- Raw ----

std::string Raw(const RespReply& reply, bool hex) {
  if (hex && IsBytes(reply)) return ToHex(reply.text);
  switch (reply.type) {
    case Type::kNull:
      return "";
    case Type::kError:
      return reply.text + "\n";
    case Type::kInteger:
      return std::to_string(reply.integer);
    case Type::kDouble:
      return fmt::format("{}", reply.number);
    case Type::kBoolean:
      return reply.integer != 0 ? "(true)" : "(false)";
    default:
      break;
  }
  std::string text = reply.text;
  for (size_t i = 0; i < reply.elements.size(); ++i) {
    if (i > 0) text += reply.type == Type::kMap && i % 2 == 1 ? ' ' : '\n';
    text += Raw(reply.elements[i], hex);
  }
  return text;
}

// ---- JSON ----

Json ToJson(const RespReply& reply, bool hex);

// Returns the keys of a map as names; nothing if they cannot be names.
std::vector<std::string> NamesOf(const RespReply& map, bool hex) {
  std::vector<std::string> names;
  for (size_t i = 0; i < map.elements.size(); i += 2) {
    const RespReply& key = map.elements[i];
    if (key.type == Type::kInteger) {
      names.push_back(std::to_string(key.integer));
    } else if (IsBytes(key) && hex) {
      names.push_back(ToHex(key.text));
    } else if ((IsBytes(key) || key.type == Type::kSimple) && IsUtf8(key.text)) {
      names.push_back(key.text);
    } else {
      return {};
    }
  }
  std::vector<std::string> sorted = names;
  std::ranges::sort(sorted);
  return std::ranges::adjacent_find(sorted) == sorted.end() ? names : std::vector<std::string>();
}

Json MapToJson(const RespReply& map, bool hex) {
  const std::vector<std::string> names = NamesOf(map, hex);
  Json json = names.empty() && !map.elements.empty() ? Json::array() : Json::object();
  for (size_t i = 0; i < map.elements.size(); i += 2) {
    Json value = ToJson(map.elements[i + 1], hex);
    if (json.is_object()) {
      json[names[i / 2]] = std::move(value);
    } else {
      json.push_back(Json::array({ToJson(map.elements[i], hex), std::move(value)}));
    }
  }
  return json;
}

Json TextToJson(std::string_view text) {
  return IsUtf8(text) ? Json(text) : Json{{"base64", ToBase64(text)}};
}

Json ToJson(const RespReply& reply, bool hex) {
  if (hex && IsBytes(reply)) return ToHex(reply.text);
  switch (reply.type) {
    case Type::kNull:
      return nullptr;
    case Type::kError:
      return Json{{"error", TextToJson(reply.text)}};
    case Type::kInteger:
      return reply.integer;
    case Type::kBoolean:
      return reply.integer != 0;
    case Type::kDouble:
      return std::isfinite(reply.number) ? Json(reply.number)
                                         : Json(fmt::format("{}", reply.number));
    case Type::kSimple:
    case Type::kBulk:
    case Type::kVerbatim:
    case Type::kBigNumber:
      return TextToJson(reply.text);
    case Type::kMap:
      return MapToJson(reply, hex);
    default:
      break;
  }
  Json json = Json::array();
  for (const RespReply& element : reply.elements) json.push_back(ToJson(element, hex));
  return json;
}

// Commands whose replies are texts, by name and second word; empty: any second word.
constexpr std::pair<std::string_view, std::string_view> kTexts[] = {
    {"INFO", ""},          {"LOLWUT", ""},
    {"CLIENT", "LIST"},    {"CLIENT", "INFO"},
    {"CLUSTER", "NODES"},  {"CLUSTER", "INFO"},
    {"LATENCY", "DOCTOR"}, {"LATENCY", "GRAPH"},
    {"MEMORY", "DOCTOR"},  {"MEMORY", "MALLOC-STATS"},
};

}  // namespace

std::string FormatReply(const RespReply& reply, const ReplyFormat& format) {
  switch (format.style) {
    case ReplyStyle::kReadable:
      return Readable(reply, format.hex, "");
    case ReplyStyle::kRaw:
      return Raw(reply, format.hex) + "\n";
    case ReplyStyle::kJson:
      break;
  }
  return ToJson(reply, format.hex).dump() + "\n";
}

bool RepliesText(std::span<const std::string_view> args) {
  return std::ranges::any_of(kTexts, [&](const auto& text) {
    return EqualsIgnoringCase(args[0], text.first) &&
           (text.second.empty() || (args.size() > 1 && EqualsIgnoringCase(args[1], text.second)));
  });
}

}  // namespace skep::cli
