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
    case Action::kCompareAndDelete:
      return "compare-and-delete";
    case Action::kPutIfDiffers:
      return "put-if-differs";
    case Action::kExpire:
      return "expire";
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
    case Action::kExpireRange:
      return "expire-range";
    case Action::kWatch:
      return "watch";
    case Action::kTick:
      return "tick";
    case Action::kRequireAbsent:
      return "require-absent";
    case Action::kRequirePresent:
      return "require-present";
    case Action::kRequireValue:
      return "require-value";
    case Action::kRequireUnchanged:
      return "require-unchanged";
    case Action::kRequireEmpty:
      return "require-empty";
  }
  return "?";
}

void PrintRange(std::ostream& out, const Step& step) {
  out << " [" << step.key << ", " << (step.unbounded ? "..." : step.other) << ")";
  if (step.reverse) out << " reverse";
  if (step.floor) out << " from-floor";
  if (step.keys_only) out << " keys-only";
  if (step.limit != kNoLimit) out << " limit " << step.limit;
  if (step.deadline != 0) out << " @" << step.deadline;
}

void PrintRequest(std::ostream& out, const Step& step) {
  out << NameOf(step.action);
  if (IsRange(step.action)) return PrintRange(out, step);
  if (!step.key.empty()) out << " " << step.key;
  if (IsComparison(step.action)) out << (step.by_digest ? " digest of " : " ") << step.other;
  if (step.action == Action::kRename) out << " to " << step.other;
  if (!step.value.empty()) out << (IsComparison(step.action) ? " -> " : " ") << step.value;
  if (step.keep_existing) out << " keep-existing";
  const bool watches = step.action == Action::kWatch || step.action == Action::kRequireUnchanged;
  if (watches) out << " #" << step.watch;
  if (step.action == Action::kGet) return;
  if (step.deadline == kKeep) {
    out << " keep-deadline";
  } else if (step.deadline != 0) {
    out << " @" << step.deadline;
  }
}

void PrintFound(std::ostream& out, const Step& step) {
  out << ", " << (step.found ? *step.found : "nothing") << " seen";
}

void PrintAnswer(std::ostream& out, const Step& step) {
  if (step.stops) {
    out << ": stops its part";
    if (step.told) PrintFound(out, step);
    return;
  }
  switch (step.action) {
    case Action::kGet:
      out << ": " << step.found.value_or("(absent)");
      if (step.told && step.deadline != 0) out << " @" << step.deadline;
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
    case Action::kExpireRange:
      out << ": " << step.number;
      break;
    case Action::kInsert:
    case Action::kUpdate:
    case Action::kDelete:
    case Action::kCompareAndSet:
    case Action::kCompareAndDelete:
    case Action::kPutIfDiffers:
    case Action::kExpire:
    case Action::kRename:
      out << (step.happened ? ": yes" : ": no");
      if (!step.happened && step.told) PrintFound(out, step);
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
  if (operation.now != 0) out << "at " << operation.now << " ";
  const bool answered = !operation.is_pending() && operation.applied;
  const char* separator = "";
  for (const Step& step : operation.steps) {
    out << (step.begins_part ? " || " : separator);
    PrintRequest(out, step);
    if (answered) PrintAnswer(out, step);
    separator = " | ";
  }
  if (!operation.applied) {
    out << ": refused";
    if (operation.culprit) {
      out << " because of step " << *operation.culprit;
      if (const Step& step = operation.steps[*operation.culprit]; step.told) PrintFound(out, step);
    }
  }
  return out;
}

}  // namespace skep::linearizability
