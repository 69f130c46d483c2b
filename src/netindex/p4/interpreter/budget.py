"""What a checked program takes of a switch with a pipeline of stages, and whether that is too much.

The model is of an ASIC like the one of the paper. It is coarse, and on the safe side where it can be:

  - What a table, an action or an assignment reads, also by its key or by the condition it stands under, must have
    been written in an earlier stage. What it writes must have been written in an earlier stage, too, and have been
    read in no later one, by those before it in the program. Two branches of one condition do not wait for each other.
  - An action does one operation on each value in a stage. Slices, concatenations and casts are wires, and take none.
  - A stage has TABLES_MAX tables; an action or assignment outside of a table is one, too. In the order of the program
    each goes into the first stage in which it may be and for which there is room.
  - Ingress and egress share the memory of their stages.
  - Arithmetic is of 32 bits, ranges are of 20.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, field

from . import syntax as s
from .p4types import Bits, Extern
from .syntax import parts_of

STAGES_MAX = 12
TABLES_MAX = 16
OPERAND_BITS_MAX = 32
RANGE_BITS_MAX = 20
SRAM_BITS_MAX = 80 * 128 * 1024  # of a stage: blocks of 128 Kibit
TCAM_ROWS_MAX = 24 * 512  # of a stage
TCAM_ROW_BITS = 44
ENTRY_BITS = 8  # of an entry in SRAM, besides its key and its action's data
WIRES = ("++",)
PIPELINES = ("ingress", "egress")


@dataclass
class Report:
    stages: dict = field(default_factory=lambda: {name: defaultdict(list) for name in PIPELINES})
    sram_bits: dict = field(default_factory=lambda: defaultdict(int))  # by stage
    tcam_rows: dict = field(default_factory=lambda: defaultdict(int))
    problems: list = field(default_factory=list)


def of(program):
    report = Report()
    for name in PIPELINES:
        Pipeline(report, name).walk(program.blocks[name])
    for stage in sorted(report.sram_bits.keys() | report.tcam_rows.keys()):
        check_memory(report, stage)
    return report


def check_memory(report, stage):
    for what, used, most in (("bits of SRAM", report.sram_bits[stage], SRAM_BITS_MAX),
                             ("rows of TCAM", report.tcam_rows[stage], TCAM_ROWS_MAX)):
        if used > most:
            report.problems.append(f"stage {stage} needs {used} {what}, and has {most}")


def text(report):
    lines = []
    for name, stages in report.stages.items():
        lines.append(f"{name}: {max(stages, default=0)} stages of {STAGES_MAX}")
        lines += [f"  {stage:2}  {', '.join(stages[stage])}" for stage in sorted(stages)]
    lines.append(f"SRAM: {sum(report.sram_bits.values()) / 8 / 1024 / 1024:.1f} MiB of "
                 f"{STAGES_MAX * SRAM_BITS_MAX / 8 / 1024 / 1024:.1f}; at most "
                 f"{max(report.sram_bits.values(), default=0) * 100 // SRAM_BITS_MAX} % of a stage")
    lines.append(f"TCAM: {sum(report.tcam_rows.values())} rows of {STAGES_MAX * TCAM_ROWS_MAX}; at most "
                 f"{max(report.tcam_rows.values(), default=0) * 100 // TCAM_ROWS_MAX} % of a stage")
    return "\n".join(lines + [f"too much: {problem}" for problem in report.problems])


def overlap(a, b):
    """Whether one of two names of storage is a part of the other, or the same."""
    return a == b or a.startswith(b + ".") or b.startswith(a + ".")


def last_of(stages, names):
    """The last stage of storage that is a part of these, or has a part of them."""
    return max([at for known, at in stages.items() if any(overlap(known, name) for name in names)], default=0)


@dataclass
class Use:
    """What statements read and write: names of storage."""
    reads: set = field(default_factory=set)
    writes: set = field(default_factory=set)
    depth: int = 1  # operations one after the other


class Pipeline:
    def __init__(self, report, name):
        self.report = report
        self.name = name
        self.storage = {}  # declaration -> name of storage
        self.written = {}  # name of storage -> last stage
        self.read_at = {}  # likewise
        self.guards = []  # sets of names that conditions around here read
        self.earliest = [1]  # stage, by the tables whose result conditions around here read

    def problem(self, place, what):
        line = f"{place}: {what}"
        if line not in self.report.problems:
            self.report.problems.append(line)

    # Statements, in order.

    def walk(self, control, prefix=""):
        for parameter in control.parameters:
            self.storage.setdefault(parameter, parameter.name)
        for local in control.locals:
            self.storage[local] = prefix + local.name
            if isinstance(local, s.Variable) and local.value is not None and local.value.constant is None:
                self.assign(local, local.name, local.value, prefix)
        self.block(control.body, prefix)

    def block(self, node, prefix):
        for statement in node.statements:
            self.statement(statement, prefix)

    def statement(self, node, prefix):
        if isinstance(node, s.Block):
            self.block(node, prefix)
        elif isinstance(node, s.Assignment):
            self.assign(node.target, self.name_of(node.target), node.value, prefix)
        elif isinstance(node, s.Variable):
            self.storage[node] = prefix + node.name
            if node.value is not None:
                self.assign(node, self.storage[node], node.value, prefix)
        elif isinstance(node, s.CallStatement):
            self.call(node.call, prefix)
        elif isinstance(node, s.If):
            stage = self.condition(node.condition, prefix)
            self.branches([node.then] + ([node.otherwise] if node.otherwise else []),
                          self.names_in(node.condition), stage, prefix)
        elif isinstance(node, s.Switch):
            stage = self.table(node.table, prefix)
            self.branches([case.body for case in node.cases if case.body], set(), stage, prefix)

    def branches(self, bodies, reads, stage, prefix):
        """One of these is done: each begins with what was written and read before all of them."""
        before = dict(self.written), dict(self.read_at)
        merged = dict(self.written), dict(self.read_at)
        self.guards.append(reads)
        self.earliest.append(stage + 1)
        for body in bodies:
            self.written, self.read_at = (dict(each) for each in before)
            self.statement(body, prefix)
            for into, from_ in zip(merged, (self.written, self.read_at)):
                into.update({name: max(at, into.get(name, 0)) for name, at in from_.items()})
        self.written, self.read_at = merged
        self.guards.pop()
        self.earliest.pop()

    def condition(self, node, prefix):
        """The stage of the table that the condition applies, or 0."""
        self.check_widths(node)
        for inner in calls_in(node):
            if inner.callee[0] == "table":
                return self.table(inner.callee[1], prefix)
        return 0

    def assign(self, at, target, value, prefix):
        use = Use()
        self.read(value, use)
        use.writes.add(target)
        use.depth = max(1, self.depth(value))
        self.place(use, f"{prefix}{target} =", at.at)

    def call(self, node, prefix):
        kind = node.callee[0]
        if kind == "table":
            self.table(node.callee[1], prefix)
        elif kind == "control":
            self.control(node, prefix)
        else:
            use = Use()
            self.use_call(node, use)
            name = node.callee[1] if isinstance(node.callee[1], str) else node.callee[1].name
            self.place(use, f"{prefix}{name}()", node.at)

    def control(self, node, prefix):
        """The control's parameters are its arguments, as far as these are storage."""
        instance = node.callee[1]
        inner = f"{prefix}{instance.name}."
        control = instance.type.declaration
        for parameter, value in zip(control.parameters, node.values):
            name = self.name_of(value)
            self.storage[parameter] = name or inner + parameter.name
            if name is None and value.constant is None:
                self.assign(value, inner + parameter.name, value, prefix)
        self.walk(control, inner)

    def table(self, table, prefix):
        use = Use()
        for key in table.keys:
            self.read(key.expression, use)
            self.check_widths(key.expression)
            width = getattr(key.expression.type, "width", 1)
            if key.kind == "range" and width > RANGE_BITS_MAX:
                self.problem(key.at, f"a range of {width} bits, more than {RANGE_BITS_MAX}")
        for action in table.actions.values():
            depth = self.use_body(action, use)
            if depth > 1:
                self.problem(action.at, f"the action {action.name} of a table takes {depth} stages, one operation "
                                        "after the other")
        stage = self.place(use, prefix + table.name, table.at)
        self.add_memory(table, stage)
        return stage

    # Storage.

    def name_of(self, node):
        """The storage that an expression is, or None."""
        if isinstance(node, s.Name):
            return self.storage.get(node.declaration)
        if isinstance(node, s.Member):
            base = self.name_of(node.base)
            return base and f"{base}.{node.name}"
        return self.name_of(node.base) if isinstance(node, s.Slice) else None

    def read(self, node, use):
        if node.constant is not None:
            return
        name = self.name_of(node)
        if name is not None:
            use.reads.add(name)
            return
        if isinstance(node, s.Call):
            self.use_call(node, use)
        for part in parts_of(node):
            self.read(part, use)

    def names_in(self, node):
        use = Use()
        self.read(node, use)
        return use.reads

    def use_call(self, node, use):
        """What a call of an action, of a header's method or of v1model reads and writes."""
        kind = node.callee[0]
        if kind == "action":
            action = node.callee[1]
            for parameter, value in zip(action.parameters, node.values):
                self.storage[parameter] = self.name_of(value) or f"{action.name}.{parameter.name}"
                self.read(value, use)
            use.depth = max(use.depth, self.use_body(action, use))
        elif kind == "header":
            name = f"{self.name_of(node.function.base)}.$valid"
            (use.reads if node.callee[1] == "isValid" else use.writes).add(name)
        elif kind in ("function", "method"):
            for (direction, _, _), value in zip(node.callee[1].parameters, node.values):
                if direction in ("out", "inout"):
                    use.writes.add(self.name_of(value))
                if direction != "out":
                    self.read(value, use)
            if kind == "method" and isinstance(node.function.base.type, Extern):
                use.writes.add(self.name_of(node.function.base))

    def use_body(self, action, use):
        """Adds what an action does. Returns how many operations it does one after the other."""
        done = {}  # name of storage -> depth at which it is written
        for parameter in action.parameters:
            self.storage.setdefault(parameter, f"{action.name}.{parameter.name}")
        for statement in action.body.statements:
            self.use_statement(statement, use, done)
        return max(done.values(), default=1)

    def use_statement(self, node, use, done):
        inner = Use()
        if isinstance(node, s.Assignment):
            self.read(node.value, inner)
            inner.writes.add(self.name_of(node.target))
            inner.depth = max(1, self.depth(node.value))
        elif isinstance(node, s.CallStatement):
            self.use_call(node.call, inner)
        elif isinstance(node, s.Variable):
            self.storage[node] = f"{node.name}@{node.at.line}"
            inner.writes.add(self.storage[node])
            if node.value is not None:
                self.read(node.value, inner)
                inner.depth = max(1, self.depth(node.value))
        before = max([at for name, at in done.items() if any(overlap(name, read) for read in inner.reads)], default=0)
        done.update(dict.fromkeys(inner.writes, before + inner.depth))
        use.reads |= inner.reads
        use.writes |= inner.writes

    # Stages and memory.

    def place(self, use, name, place):
        """Finds the first stage for what reads and writes this. Returns its last stage."""
        reads = use.reads.union(*self.guards)
        behind = last_of(self.written, reads | use.writes) + 1
        stage = max(behind, last_of(self.read_at, use.writes), *self.earliest)
        stages = self.report.stages[self.name]
        while len(stages[stage]) >= TABLES_MAX:
            stage += 1
        end = stage + use.depth - 1
        for at in range(stage, end + 1):
            stages[at].append(name)
        if end > STAGES_MAX:
            self.problem(place, f"{name} of {self.name} is in stage {end} of {STAGES_MAX}")
        self.written.update(dict.fromkeys(use.writes, end))
        self.read_at.update({name: max(end, self.read_at.get(name, 0)) for name in reads})
        return end

    def add_memory(self, table, stage):
        key_bits = sum(getattr(key.expression.type, "width", 1) for key in table.keys)
        data_bits = max(sum(getattr(parameter.type, "width", 1) for parameter in action.parameters)
                        for action in table.actions.values())
        entries = table.size if table.keys else 1
        if any(key.kind != "exact" for key in table.keys):
            self.report.tcam_rows[stage] += entries * math.ceil(key_bits / TCAM_ROW_BITS)
            key_bits = 0
        self.report.sram_bits[stage] += entries * (key_bits + data_bits + ENTRY_BITS)

    # Operations.

    def depth(self, node):
        """Operations one after the other in an expression. Checks their widths, too."""
        self.check_widths(node)
        if node.constant is not None:
            return 0
        own = isinstance(node, (s.Unary, s.Conditional)) or (isinstance(node, s.Binary)
                                                             and node.operator not in WIRES)
        return own + max([self.depth(part) for part in parts_of(node)], default=0)

    def check_widths(self, node):
        if node.constant is not None:
            return
        operands = {s.Unary: lambda: [node.operand], s.Binary: lambda: [node.left, node.right]}.get(type(node))
        if operands and getattr(node, "operator", "") not in WIRES:
            for operand in operands():
                if isinstance(operand.type, Bits) and operand.type.width > OPERAND_BITS_MAX:
                    self.problem(node.at, f"{node.operator!r} of {operand.type.width} bits, more than "
                                          f"{OPERAND_BITS_MAX}")
            if node.operator == "*":
                self.problem(node.at, "a product of two values of a packet")
            if node.operator in ("<<", ">>") and node.right.constant is None:
                self.problem(node.at, "a shift by a value of a packet")
        for part in parts_of(node):
            self.check_widths(part)


def calls_in(node):
    if isinstance(node, s.Call):
        yield node
    for part in parts_of(node):
        yield from calls_in(part)
