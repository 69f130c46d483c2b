"""A table's entries, and how one is found.

Entries whose exact keys are equal are a group, found by a hash. In a group the entry with the highest priority that
matches is found; in a table whose only other key is an lpm, that with the longest prefix. Which of two entries of
one priority is found is undefined, so a packet that both match is refused.
"""

from dataclasses import dataclass, field

from . import syntax as s
from .source import P4Error


@dataclass
class TableEntry:
    others: list  # of keys that are not exact: (index, kind, two numbers: value and mask, or low and high)
    priority: int
    action: object  # syntax.Action
    arguments: list
    number: int = 0  # in the order in which they came; counters use it

    def matches(self, values):
        return all(low <= values[index] <= high if kind == "range" else values[index] & high == low
                   for index, kind, low, high in self.others)


@dataclass
class TableState:
    """A table of one control's instance."""
    table: s.Table
    name: str
    groups: dict = field(default_factory=dict)
    seen: set = field(default_factory=set)
    count: int = 0
    default: tuple = ()  # action, arguments

    def __post_init__(self):
        self.exact = [i for i, key in enumerate(self.table.keys) if key.kind == "exact"]
        self.needs_priority = any(key.kind in ("ternary", "range") for key in self.table.keys)
        ref = self.table.default_action
        self.default = (ref.action, [value.constant for value in ref.values])
        for number, entry in enumerate(self.table.entries):
            matches = [match_of_keyset(key, keyset) for key, keyset in zip(self.table.keys, entry.keys)]
            self.add(matches, len(self.table.entries) - number, entry.action.action,
                     [value.constant for value in entry.action.values], entry.at)

    def add(self, matches, priority, action, arguments, place=None):
        """`matches`: of each key (value, None) if it is exact, else its two numbers."""
        if self.count == self.table.size:
            raise P4Error(place, f"more than {self.table.size} entries in the table {self.name}")
        others = [(i, key.kind, *matches[i]) for i, key in enumerate(self.table.keys) if key.kind != "exact"]
        if not self.needs_priority:
            priority = max([high.bit_count() for _, _, _, high in others], default=0)
        identity = (tuple(matches), priority if self.needs_priority else 0)
        if identity in self.seen:
            raise P4Error(place, f"two entries of the table {self.name} are alike")
        self.seen.add(identity)
        exact = tuple(matches[i][0] for i in self.exact)
        group = self.groups.setdefault(exact, [])
        group.append(TableEntry(others, priority, action, arguments, self.count))
        group.sort(key=lambda entry: -entry.priority)
        self.count += 1

    def find(self, values):
        """The entry that values of the keys match, or None."""
        found = None
        for entry in self.groups.get(tuple(values[i] for i in self.exact), ()):
            if found is not None and entry.priority < found.priority:
                break
            if entry.matches(values):
                if found is not None:
                    raise P4Error(None, f"two entries of the table {self.name}, of one priority, match {values}")
                found = entry
        return found


def match_of_keyset(key, keyset):
    width = getattr(key.expression.type, "width", 1)
    ones = (1 << width) - 1
    if key.kind == "exact":
        return (keyset.constant, None)
    if isinstance(keyset, s.AnyValue):
        return (0, ones) if key.kind == "range" else (0, 0)
    if isinstance(keyset, s.RangeOfValues):
        return (keyset.low.constant, keyset.high.constant)
    if isinstance(keyset, s.MaskedValue):
        return (keyset.value.constant & keyset.mask.constant, keyset.mask.constant)
    return (keyset.constant, keyset.constant if key.kind == "range" else ones)


def prefix_mask(width, length):
    return ((1 << length) - 1) << (width - length)
