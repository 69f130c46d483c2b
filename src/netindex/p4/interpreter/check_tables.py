"""The rules of tables."""

from . import syntax as s
from .p4types import BOOL, INTEGER, Bits, Callable, Extern, is_scalar
from .source import P4Error, beyond_subset
from .v1model import KINDS_NOT_TAKEN

PROPERTIES = ("key", "actions", "default_action", "entries", "size", "counters")
SIZE_IF_NOT_SAID = 1024


class TableChecker:
    def check_table(self, table):
        given = {}
        for each in table.properties:
            if each.name in given:
                raise P4Error(each.at, f"the table has two properties {each.name}")
            if each.name not in PROPERTIES:
                raise beyond_subset(each.at, f"the table's property {each.name}")
            given[each.name] = each
        if "actions" not in given:
            raise P4Error(table.at, f"the table {table.name} has no property actions")
        self.check_keys(table, given.get("key"))
        self.check_actions(table, given["actions"])
        self.check_default(table, given.get("default_action"))
        self.check_size(table, given.get("size"))
        self.check_counter(table, given.get("counters"))
        self.check_entries(table, given.get("entries"))
        table.type = Callable("table", table)

    def check_keys(self, table, given):
        table.keys = given.value if given else []
        table.key_names = []
        for key in table.keys:
            self.check_key(key)
            name = key.name or self.name_of_key(key.expression)
            if name in table.key_names:
                raise beyond_subset(key.at, f"a second key {name}")
            table.key_names.append(name)
        if sum(key.kind == "lpm" for key in table.keys) > 1:
            raise P4Error(table.at, f"the table {table.name} has more than one key of the kind lpm")

    def check_key(self, key):
        if key.kind in KINDS_NOT_TAKEN:
            raise beyond_subset(key.at, f"the kind of match {key.kind}")
        if key.kind not in self.match_kinds:
            raise P4Error(key.at, f"there is no kind of match {key.kind}")
        if hiding := self.find(key.kind):
            raise P4Error(key.at, f"the kind of match {key.kind} is hidden by a declaration ({hiding.at})")
        found = self.check_value(key.expression)
        if found == INTEGER or not is_scalar(found):
            raise P4Error(key.at, f"{found} is no type of a key")
        is_unsigned = isinstance(found, Bits) and not found.signed
        if not is_unsigned and not (found == BOOL and key.kind == "exact"):
            raise beyond_subset(key.at, f"a key {found} of the kind {key.kind}")

    def name_of_key(self, node):
        """The name by which entries are made, as the compiler derives it."""
        if isinstance(node, s.Name):
            return node.name
        if isinstance(node, s.Member):
            return f"{self.name_of_key(node.base)}.{node.name}"
        if isinstance(node, s.Slice):
            return f"{self.name_of_key(node.base)}[{node.high.constant}:{node.low.constant}]"
        raise P4Error(node.at, "a key that is no field and no slice of one needs a name: @name(\"..\")")

    def check_actions(self, table, given):
        table.actions = {}
        for ref in given.value:
            action = self.lookup(ref.name, ref.at)
            if not isinstance(action, s.Action):
                raise P4Error(ref.at, f"{ref.name} is no action")
            if ref.name in table.actions:
                raise P4Error(ref.at, f"the table has the action {ref.name} twice")
            if ref.arguments:
                raise beyond_subset(ref.at, "an argument in a list of actions")
            if bad := [p for p in action.parameters if p.direction]:
                raise P4Error(ref.at, f"the parameter {bad[0].name} of {ref.name} has a direction: "
                                      "the table must give it")
            ref.action = action
            table.actions[ref.name] = action

    def check_ref(self, table, ref, what):
        """An action with all its arguments, as the table's default or of an entry."""
        if ref.name not in table.actions:
            known = self.lookup(ref.name, ref.at)
            raise P4Error(ref.at, f"{what} {known.name} is not among the actions of the table {table.name}")
        ref.action = table.actions[ref.name]
        ref.values = self.match_arguments(ref.at, ref.name, ref.arguments or [], ref.action.parameters)
        for parameter, value in zip(ref.action.parameters, ref.values):
            self.constant_of(value, parameter.type, f"the argument for {parameter.name}")

    def check_default(self, table, given):
        if given is None:
            table.default_action = s.ActionRef(table.at, "NoAction", [])
            table.default_action.action = self.no_action
            table.default_action.values = []
            table.actions.setdefault("NoAction", self.no_action)
            return
        if given.value.arguments is None:
            raise beyond_subset(given.value.at, "a default action without brackets")
        self.check_ref(table, given.value, "the default action")
        table.default_action = given.value
        table.default_is_const = given.is_const

    def check_size(self, table, given):
        if given is None:
            table.size = SIZE_IF_NOT_SAID
            return
        self.check_value(given.value)
        table.size = given.value.constant
        if given.value.type != INTEGER and not isinstance(given.value.type, Bits) or table.size is None:
            raise P4Error(given.at, "the size of a table is a constant number")
        if table.size <= 0:
            raise beyond_subset(given.at, f"a table of the size {table.size}")

    def check_counter(self, table, given):
        if given is None:
            return
        found = self.check(given.value)
        if not isinstance(found, Extern) or found.name != "direct_counter":
            raise P4Error(given.at, f"counters of a table are a direct_counter, not {found}")
        table.counter = given.value.declaration
        if table.counter in self.direct_counters:
            raise P4Error(given.at, f"{table.counter.name} already counts for another table")
        self.direct_counters.add(table.counter)

    def check_entries(self, table, given):
        table.entries = given.value if given else []
        table.entries_are_const = given is not None
        if given is None:
            return
        if not given.is_const:
            raise beyond_subset(given.at, "entries that are not const")
        if not table.keys:
            raise P4Error(given.at, "a table without a key has no entries")
        if len(table.entries) > table.size:
            raise beyond_subset(given.at, f"{len(table.entries)} entries in a table of the size {table.size}")
        for entry in table.entries:
            self.check_entry(table, entry)

    def check_entry(self, table, entry):
        if len(entry.keys) != len(table.keys):
            raise P4Error(entry.at, f"the entry has {len(entry.keys)} sets of values, the table "
                                    f"{len(table.keys)} keys")
        for key, keyset in zip(table.keys, entry.keys):
            self.check_keyset(keyset, key.expression.type, key.kind)
        self.check_ref(table, entry.action, "the action")

    def check_keyset(self, keyset, type_, kind):
        """`kind`: of match, or None of a select."""
        if isinstance(keyset, s.AnyValue):
            if kind == "exact":
                raise P4Error(keyset.at, "a key of the kind exact needs a value")
            return
        pair = {s.MaskedValue: ("value", "mask"), s.RangeOfValues: ("low", "high")}.get(type(keyset))
        if pair is None:
            self.value_of_keyset(keyset, type_)
            return
        taken = {s.MaskedValue: ("ternary", "lpm", None), s.RangeOfValues: ("range", None)}[type(keyset)]
        if kind not in taken:
            raise P4Error(keyset.at, f"a key of the kind {kind} takes no such set of values")
        values = [self.value_of_keyset(getattr(keyset, part), type_) for part in pair]
        if isinstance(keyset, s.RangeOfValues) and values[0] > values[1]:
            raise P4Error(keyset.at, f"the range {values[0]} .. {values[1]} is empty")
        if kind == "lpm" and not is_prefix(values[1], type_.width):
            raise P4Error(keyset.at, "the mask of a key of the kind lpm is a prefix")

    def value_of_keyset(self, node, type_):
        return self.constant_of(node, type_, "a value of the set")


def is_prefix(mask, width):
    """Whether the mask has ones, then zeros."""
    zeros = (1 << width) - 1 - mask
    return zeros & (zeros + 1) == 0
