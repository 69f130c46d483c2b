"""Fills the tables of a switch from JSON, as P4Runtime would: docs/p4.md has the format.

    {"tables": {"Ingress.route": {
        "entries": [
            {"match": {"hdr.ip.dst": ["0x0a000000", 8]}, "action": "Ingress.send", "parameters": {"port": 3}}],
        "default_action": {"action": "Ingress.drop"}}},
     "registers": {"Ingress.bank": {"0": 1}}}

A switch refuses what does not fit its program, and is then not to be used.
"""

from . import syntax as s
from .p4types import BOOL, ERROR, Bits, Enum
from .source import P4Error
from .tables import prefix_mask


def load(switch, config):
    """Adds what `config`, read from JSON, says."""
    instances = switch.instances_by_name()
    tables = {state.name: (state, instance) for instance in instances.values() for state in instance.tables.values()}
    registers = {f"{instance.name}.{local.name}": (local, elements) for instance in instances.values()
                 for local, elements in instance.objects.items() if local.type.name == "register"}
    for name, rows in section(config, {"tables", "registers"}, "tables").items():
        if name not in tables:
            refuse(f"the program has no table {name}")
        load_table(*tables[name], rows)
    for name, elements in section(config, {"tables", "registers"}, "registers").items():
        if name not in registers:
            refuse(f"the program has no register {name}")
        load_register(*registers[name], name, elements)


def refuse(what):
    raise P4Error(None, what)


def section(of, known, name):
    """The dict `name` of a dict that has no other keys than the known."""
    if not isinstance(of, dict):
        refuse(f"{str(of)[:60]} is not an object {{..}}")
    if unknown := of.keys() - known:
        refuse(f"there is no {sorted(unknown)[0]!r} here, only {', '.join(sorted(known))}")
    found = of.get(name, {})
    if not isinstance(found, dict):
        refuse(f"{name} is not an object {{..}}")
    return found


def load_table(state, instance, rows):
    section(rows, {"entries", "default_action"}, "default_action")
    entries = rows.get("entries", [])
    if not isinstance(entries, list):
        refuse(f"the entries of {state.name} are not a list")
    if entries and state.table.entries_are_const:
        refuse(f"the entries of {state.name} are const")
    actions = {full_name(instance, action): action for action in state.table.actions.values()}
    for entry in entries:
        add_entry(state, actions, entry)
    if "default_action" in rows:
        if state.table.default_is_const:
            refuse(f"the default action of {state.name} is const")
        state.default = action_of(state, actions, rows["default_action"], {"action", "parameters"})


def add_entry(state, actions, entry):
    action = action_of(state, actions, entry, {"match", "priority", "action", "parameters"})
    given = section(entry, entry.keys(), "match")
    if unknown := given.keys() - set(state.table.key_names):
        refuse(f"the table {state.name} has no key {sorted(unknown)[0]}")
    priority = entry.get("priority", 0)
    if not isinstance(priority, int) or (priority > 0) != state.needs_priority:
        refuse(f"an entry of {state.name} has {'a priority above 0' if state.needs_priority else 'no priority'}")
    matches = [match_of(key, name, given) for key, name in zip(state.table.keys, state.table.key_names)]
    state.add(matches, priority, *action)


def match_of(key, name, given):
    """What is matched of a key; what is not given matches everything."""
    type_ = key.expression.type
    if key.kind == "exact":
        if name not in given:
            refuse(f"the exact key {name} is not given")
        return (value_of(type_, given[name], name), None)
    ones = (1 << type_.width) - 1
    if name not in given:
        return (0, ones) if key.kind == "range" else (0, 0)
    pair = given[name]
    if not isinstance(pair, list) or len(pair) != 2:
        refuse(f"the key {name} of the kind {key.kind} is given by two numbers")
    first = value_of(type_, pair[0], name)
    if key.kind == "range":
        second = value_of(type_, pair[1], name)
        return (first, second) if first <= second else refuse(f"the range of {name} is empty")
    if key.kind == "lpm":
        length = value_of(Bits(32), pair[1], name)
        mask = prefix_mask(type_.width, length) if length <= type_.width else refuse(f"the prefix of {name} is long")
    else:
        mask = value_of(type_, pair[1], name)
    if first & ~mask:
        refuse(f"the key {name} has bits outside of its mask")
    return (first, mask)


def action_of(state, actions, of, known):
    """(action, arguments). `actions`: those of the table, by their full names."""
    parameters = section(of, known, "parameters")
    name = of.get("action")
    if not isinstance(name, str) or name not in actions:
        refuse(f"{name} is no action of the table {state.name}")
    wanted = {parameter.name: parameter.type for parameter in actions[name].parameters}
    if wanted.keys() != parameters.keys():
        refuse(f"{name} has the parameters {sorted(wanted)}, not {sorted(parameters)}")
    return actions[name], [value_of(type_, parameters[each], each) for each, type_ in wanted.items()]


def full_name(instance, action):
    is_own = any(local is action for local in instance.control.locals if isinstance(local, s.Action))
    return f"{instance.name}.{action.name}" if is_own else action.name


def value_of(type_, said, name):
    if isinstance(type_, Enum) or type_ == ERROR:
        if not isinstance(said, str) or (isinstance(type_, Enum) and said not in type_.members):
            refuse(f"{said} is no value of {name}")
        return said
    if type_ == BOOL:
        return said if isinstance(said, bool) else refuse(f"{said} for {name} is neither true nor false")
    number = number_of(said)
    if number is None or not type_.low() <= number <= type_.high():
        refuse(f"{str(said)[:60]} for {name} is no number of the type {type_}")
    return number


def number_of(said):
    """A number, or a string of one with its base: JSON's readers may have only 53 bits."""
    if isinstance(said, str) and len(said) < 600:
        try:
            return int(said, 0)
        except ValueError:
            return None
    return said if isinstance(said, int) and not isinstance(said, bool) else None


def load_register(local, elements, name, given):
    if not isinstance(given, dict):
        refuse(f"the elements of {name} are not an object {{..}}")
    for index, said in given.items():
        at = number_of(index)
        if at is None or not 0 <= at < len(elements):
            refuse(f"{name} has no element {str(index)[:60]}")
        elements[at] = value_of(local.type.element, said, name)
