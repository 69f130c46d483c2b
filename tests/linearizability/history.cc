#include "tests/linearizability/history.h"

#include <algorithm>
#include <ostream>

namespace skep::linearizability {
namespace {

const char* NameOf(Action action) {
  switch (action) {
    case Action::kGet:
      return "get";
    case Action::kPut:
      return "put";
    case Action::kInsert:
      return "insert";
    case Action::kUpdate:
      return "update";
    case Action::kDelete:
      return "delete";
    case Action::kCompareAndSet:
      return "compare-and-set";
    case Action::kAddDecimal:
      return "add";
    case Action::kRename:
      return "rename";
    case Action::kScan:
      return "scan";
    case Action::kCount:
      return "count";
    case Action::kDeleteRange:
      return "delete-range";
    case Action::kRequireAbsent:
      return "require-absent";
    case Action::kRequirePresent:
      return "require-present";
    case Action::kRequireValue:
      return "require-value";
  }
  return "?";
}

void PrintRange(std::ostream& out, const Step& step) {
  out << " [" << step.key << ", " << (step.unbounded ? "..." : step.other) << ")";
  if (step.reverse) out << " reverse";
  if (step.floor) out << " from-floor";
  if (step.keys_only) out << " keys-only";
  if (step.limit != kNoLimit) out << " limit " << step.limit;
}

void PrintRequest(std::ostream& out, const Step& step) {
  out << NameOf(step.action);
  if (IsRange(step.action)) return PrintRange(out, step);
  out << " " << step.key;
  switch (step.action) {
    case Action::kCompareAndSet:
      out << " " << step.other << " -> " << step.value;
      break;
    case Action::kRename:
      out << " to " << step.other;
      break;
    case Action::kRequireValue:
      out << " " << step.other;
      break;
    default:
      if (!step.value.empty()) out << " " << step.value;
  }
}

void PrintAnswer(std::ostream& out, const Step& step) {
  switch (step.action) {
    case Action::kGet:
      out << ": " << step.found.value_or("(absent)");
      break;
    case Action::kScan:
      out << ":";
      if (step.items.empty()) out << " (nothing)";
      for (const auto& [key, value] : step.items) {
        out << " " << key;
        if (!step.keys_only) out << "=" << value;
      }
      break;
    case Action::kAddDecimal:
    case Action::kCount:
    case Action::kDeleteRange:
      out << ": " << step.number;
      break;
    case Action::kInsert:
    case Action::kUpdate:
    case Action::kDelete:
    case Action::kCompareAndSet:
    case Action::kRename:
      out << (step.happened ? ": yes" : ": no");
      break;
    default:
      break;
  }
}

}  // namespace

bool Writes(const Operation& operation) {
  return operation.kind == Operation::Kind::kExecute &&
         std::ranges::any_of(operation.steps, [](const Step& s) { return IsWrite(s.action); });
}

std::ostream& operator<<(std::ostream& out, const Operation& operation) {
  out << "client " << operation.client << " [" << operation.call << ", ";
  operation.is_pending() ? out << "never" : out << operation.returned;
  out << "] ";
  switch (operation.kind) {
    case Operation::Kind::kOpenSnapshot:
      return out << "open snapshot " << operation.snapshot;
    case Operation::Kind::kCloseSnapshot:
      return out << "close snapshot " << operation.snapshot;
    case Operation::Kind::kReadSnapshot:
      out << "at snapshot " << operation.snapshot << " ";
      break;
    case Operation::Kind::kExecute:
      break;
  }
  const bool answered = !operation.is_pending() && operation.applied;
  const char* separator = "";
  for (const Step& step : operation.steps) {
    out << separator;
    PrintRequest(out, step);
    if (answered) PrintAnswer(out, step);
    separator = " | ";
  }
  if (!operation.applied) {
    out << ": refused";
    if (operation.culprit) out << " because of step " << *operation.culprit;
  }
  return out;
}

}  // namespace skep::linearizability
