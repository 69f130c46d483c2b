"""Runs the statements of a checked program.

P4 has no recursion, so a name has one value at a time in one run of a control: `Frame.values` has them by their
declarations, those of its actions' parameters, too.
"""

from . import operators
from . import syntax as s
from .checksums import ALGORITHMS, packed
from .source import P4Error
from .tables import TableState
from .v1model import DROP_PORT
from .values import UNDEFINED, copied, undefined


class Exited(Exception):
    """An exit statement was run: the block of the switch ends."""


class Returned(Exception):
    """A return statement was run: the action or control ends."""


class Instance:
    """A control's tables, objects and controls, which live as long as the switch."""

    def __init__(self, control, name):
        self.control = control
        self.name = name
        self.tables = {}
        self.objects = {}  # declaration -> list of elements, or dict of counts
        self.controls = {}
        for local in control.locals:
            if isinstance(local, s.Table):
                self.tables[local] = TableState(local, f"{name}.{local.name}")
            elif isinstance(local, s.Instantiation):
                self.instantiate(local)

    def instantiate(self, local):
        what = local.type
        if getattr(what, "what", "") == "control":
            self.controls[local] = Instance(what.declaration, f"{self.name}.{local.name}")
        elif what.name == "register":
            self.objects[local] = [0] * local.arguments[0]
        elif what.name == "counter":
            self.objects[local] = [[0, 0] for _ in range(local.arguments[0])]
        else:
            self.objects[local] = {}

    def all(self):
        """This one and those in it."""
        yield self
        for inner in self.controls.values():
            yield from inner.all()


class Frame:
    def __init__(self, instance, packet_bytes, payload=b""):
        self.instance = instance
        self.values = {}
        self.packet_bytes = packet_bytes
        self.payload = payload  # of the packet: what was not parsed
        self.checksum_error = False


class ApplyResult:
    def __init__(self, hit, action):
        self.hit = hit
        self.action = action


class Evaluator:
    def __init__(self):
        self.run_by_class = self.by_class("run_")
        self.value_by_class = self.by_class("value_")

    def by_class(self, prefix):
        """The methods for kinds of nodes."""
        return {getattr(s, name.removeprefix(prefix)): getattr(self, name) for name in dir(self)
                if name.startswith(prefix) and hasattr(s, name.removeprefix(prefix))}

    # Statements.

    def run(self, node, frame):
        self.run_by_class[type(node)](node, frame)

    def run_Block(self, node, frame):
        for statement in node.statements:
            self.run(statement, frame)

    def run_Empty(self, node, frame):
        pass

    def run_Constant(self, node, frame):
        pass

    def run_Variable(self, node, frame):
        value = undefined(node.type) if node.value is None else copied(self.value(node.value, frame))
        frame.values[node] = value

    def run_Assignment(self, node, frame):
        self.store(node.target, copied(self.value(node.value, frame)), frame)

    def run_CallStatement(self, node, frame):
        self.value(node.call, frame)

    def run_If(self, node, frame):
        if self.value(node.condition, frame):
            self.run(node.then, frame)
        elif node.otherwise is not None:
            self.run(node.otherwise, frame)

    def run_Return(self, node, frame):
        raise Returned

    def run_Exit(self, node, frame):
        raise Exited

    def run_Switch(self, node, frame):
        result = self.value(node.value.base, frame)
        matched = False
        for case in node.cases:
            matched = matched or case.label is None or case.label == result.action
            if matched and case.body is not None:
                self.run(case.body, frame)
                return

    # Expressions.

    def value(self, node, frame):
        if node.constant is not None:
            return node.constant
        return self.value_by_class[type(node)](node, frame)

    def value_Name(self, node, frame):
        value = frame.values[node.declaration]
        if value is UNDEFINED:
            raise P4Error(node.at, f"{node.name} is read before it is written")
        return value

    def value_Member(self, node, frame):
        base = self.value(node.base, frame)
        if isinstance(base, ApplyResult):
            return base.hit == (node.name == "hit")
        return base.get(node.name, node.at)

    def value_Slice(self, node, frame):
        return operators.take_slice(self.value(node.base, frame), node.high.constant, node.low.constant)

    def value_Unary(self, node, frame):
        return operators.unary(node.operator, node.type, self.value(node.operand, frame))

    def value_Binary(self, node, frame):
        left = self.value(node.left, frame)
        if node.operator == "&&":
            return left and self.value(node.right, frame)
        if node.operator == "||":
            return left or self.value(node.right, frame)
        return operators.binary(node.operator, node.left.type, node.right.type, left, self.value(node.right, frame))

    def value_Conditional(self, node, frame):
        return self.value(node.then if self.value(node.condition, frame) else node.otherwise, frame)

    def value_Cast(self, node, frame):
        return operators.cast(node.type, self.value(node.operand, frame))

    def value_ListOf(self, node, frame):
        return [self.value(element, frame) for element in node.elements]

    def value_Call(self, node, frame):
        return getattr(self, "call_" + node.callee[0])(node, frame)

    def store(self, node, value, frame):
        if isinstance(node, s.Name):
            frame.values[node.declaration] = value
        elif isinstance(node, s.Member):
            self.value(node.base, frame).set(node.name, value, node.at)
        else:
            old = self.value(node.base, frame)
            changed = operators.put_slice(node.base.type, old, node.high.constant, node.low.constant, value)
            self.store(node.base, changed, frame)

    # Calls of what the program declares: arguments are copied in, and out again.

    def pass_in(self, parameters, values, frame, into):
        for parameter, value in zip(parameters, values):
            if parameter.direction == "out":
                passed = undefined(parameter.type)
            else:
                passed = copied(self.value(value, frame))
            into[parameter] = passed

    def pass_out(self, parameters, values, frame, from_):
        for parameter, value in zip(parameters, values):
            if parameter.direction in ("out", "inout"):
                self.store(value, from_[parameter], frame)

    def call_action(self, node, frame):
        action = node.callee[1]
        passed = {}
        self.pass_in(action.parameters, node.values, frame, passed)
        frame.values.update(passed)
        try:
            self.run_body(action.body, frame)
        finally:
            self.pass_out(action.parameters, node.values, frame, frame.values)

    def run_body(self, body, frame):
        try:
            self.run(body, frame)
        except Returned:
            pass

    def call_control(self, node, frame):
        inner = Frame(frame.instance.controls[node.callee[1]], frame.packet_bytes)
        parameters = inner.instance.control.parameters
        self.pass_in(parameters, node.values, frame, inner.values)
        try:
            self.run_control(inner)
        finally:
            self.pass_out(parameters, node.values, frame, inner.values)

    def run_control(self, frame):
        control = frame.instance.control
        for local in control.locals:
            if isinstance(local, s.Variable):
                self.run(local, frame)
        self.run_body(control.body, frame)

    def call_table(self, node, frame):
        table = node.callee[1]
        state = frame.instance.tables[table]
        values = [self.value(key.expression, frame) for key in table.keys]
        entry = state.find(values) if values else None
        action, arguments = (entry.action, entry.arguments) if entry else state.default
        if entry and table.counter is not None:
            self.add_to(frame.instance.objects[table.counter].setdefault(entry.number, [0, 0]), frame)
        frame.values.update(zip(action.parameters, arguments))
        self.run_body(action.body, frame)
        return ApplyResult(entry is not None, action.name)

    # Calls of what v1model declares.

    def call_header(self, node, frame):
        header = self.value(node.function.base, frame)
        if node.callee[1] == "isValid":
            return header.valid
        if node.callee[1] == "setValid" and not header.valid:
            header.fields = dict.fromkeys(header.fields, UNDEFINED)
        header.valid = node.callee[1] == "setValid"
        return None

    def call_method(self, node, frame):
        _, prototype, declaration = node.callee
        of = frame.instance.objects[declaration] if declaration in frame.instance.objects \
            else frame.values[declaration]
        return getattr(self, "method_" + prototype.name)(node, of, frame)

    def method_read(self, node, of, frame):
        index = self.value(node.values[1], frame)
        if index >= len(of):
            raise P4Error(node.at, f"element {index} of a register of {len(of)} is read")
        self.store(node.values[0], of[index], frame)

    def method_write(self, node, of, frame):
        index = self.value(node.values[0], frame)
        value = self.value(node.values[1], frame)
        if index < len(of):
            of[index] = value

    def method_count(self, node, of, frame):
        index = self.value(node.values[0], frame)
        if index < len(of):
            self.add_to(of[index], frame)

    @staticmethod
    def add_to(count, frame):
        count[0] += 1
        count[1] += frame.packet_bytes

    def method_extract(self, node, of, frame):
        of.extract(self.value(node.values[0], frame))

    def method_lookahead(self, node, of, frame):
        return node.type.wrap(of.peek(node.type.width))

    def method_advance(self, node, of, frame):
        of.take(self.value(node.values[0], frame))

    def method_length(self, node, of, frame):
        return of.width // 8

    def method_emit(self, node, of, frame):
        value = self.value(node.values[0], frame)
        for header in [value] if value.type.is_header else value.fields.values():
            if header.valid:
                of.append(header.to_bytes())

    def call_function(self, node, frame):
        name = node.callee[1].name
        getattr(self, "function_" + name.removesuffix("_with_payload"))(node, frame)

    def function_mark_to_drop(self, node, frame):
        metadata = self.value(node.values[0], frame)
        metadata.set("egress_spec", DROP_PORT, node.at)
        metadata.set("mcast_grp", 0, node.at)

    def function_hash(self, node, frame):
        result, algorithm, base, data, most = node.values
        found = ALGORITHMS[algorithm.constant](self.data(data, frame))
        base, most = self.value(base, frame), self.value(most, frame)
        self.store(result, result.type.wrap(base + (found % most if most else 0)), frame)

    def data(self, node, frame):
        return packed([(element.type.width, self.value(element, frame)) for element in node.elements])

    def checksum(self, node, frame):
        payload = frame.payload if node.callee[1].name.endswith("_with_payload") else b""
        return ALGORITHMS[node.values[3].constant](self.data(node.values[1], frame) + payload)

    def function_verify_checksum(self, node, frame):
        if self.value(node.values[0], frame) and self.checksum(node, frame) != self.value(node.values[2], frame):
            frame.checksum_error = True

    def function_update_checksum(self, node, frame):
        if self.value(node.values[0], frame):
            self.store(node.values[2], self.checksum(node, frame), frame)
