"""The rules of calls. What a call calls becomes its `callee`, one of:

  ("action", Action)  ("table", Table)  ("control", Instantiation)  ("header", method)
  ("method", Prototype, the object's declaration)  ("function", Prototype)
"""

from . import syntax as s
from .p4types import (ACTION_RUN, APPLY_RESULT, BOOL, INTEGER, PACKET_IN, PACKET_OUT, VOID, Bits, Callable, Extern,
                      ListType, Record)
from .source import P4Error, beyond_subset
from .v1model import ALGORITHMS_TAKEN, HASH_ALGORITHM, methods

HEADER_METHODS = ("isValid", "setValid", "setInvalid")


class CallChecker:
    def check_call(self, node):
        if isinstance(node.function, s.Member):
            return self.method_call(node)
        if isinstance(node.function, s.TypeMember):
            raise P4Error(node.at, f"{node.function.type_name} is a type, not an object")
        if not isinstance(node.function, s.Name):
            raise P4Error(node.at, "this cannot be called")
        declaration = self.lookup_function(node.function)
        if isinstance(declaration, s.Action):
            return self.action_call(node, declaration)
        if isinstance(declaration, s.Declaration):
            raise P4Error(node.at, f"{node.function.name} cannot be called")
        node.callee = ("function", declaration)
        self.only_in(node, declaration)
        return self.prototype_call(node, declaration)

    def only_in(self, node, prototype):
        if prototype.where and self.block not in prototype.where:
            raise P4Error(node.at, f"{prototype.name} cannot be called in {self.block_name()}")

    # Actions, tables, controls.

    def action_call(self, node, action):
        if self.block == "parser":
            raise P4Error(node.at, "an action cannot be called in a parser")
        self.no_type_arguments(node)
        node.callee = ("action", action)
        node.values = self.match_arguments(node.at, action.name, node.arguments, action.parameters)
        for parameter, value in zip(action.parameters, node.values):
            self.pass_argument(parameter.direction, parameter.type, parameter.name, value)
        return VOID

    def method_call(self, node):
        base = self.check(node.function.base)
        name = node.function.name
        if isinstance(base, Record) and name in HEADER_METHODS:
            return self.header_call(node, base, name)
        if isinstance(base, Callable) and name == "apply":
            return self.apply_call(node, base)
        prototype = methods(base).get(name)
        if prototype is None:
            raise P4Error(node.function.at, f"{base} has no method {name}")
        inner = node.function.base
        node.callee = ("method", prototype, getattr(inner, "declaration", None))
        if isinstance(base, Extern) and base.name == "direct_counter":
            raise beyond_subset(node.at, "a call of a direct_counter, which its table counts by")
        if isinstance(base, Extern) and self.block == "parser":
            raise beyond_subset(node.at, f"a {base.name} in a parser")
        return self.prototype_call(node, prototype)

    def header_call(self, node, base, name):
        if not base.is_header:
            raise P4Error(node.function.at, f"{base} is no header, and has no method {name}")
        self.no_arguments(node, name)
        if name != "isValid":
            self.check_lvalue(node.function.base)
        node.callee = ("header", name)
        return BOOL if name == "isValid" else VOID

    def apply_call(self, node, base):
        declaration = node.function.base.declaration
        self.no_type_arguments(node)
        if base.what == "table":
            return self.apply_table(node, declaration)
        if base.what != "control" or not isinstance(declaration, s.Instantiation):
            raise P4Error(node.at, f"{base} cannot be applied")
        if self.in_action or self.block not in ("ingress", "egress"):
            raise P4Error(node.at, f"a control cannot be applied in {self.block_name()}")
        control = base.declaration
        node.callee = ("control", declaration)
        self.once(node, declaration, "control")
        node.values = self.match_arguments(node.at, control.name, node.arguments, control.parameters)
        for parameter, value in zip(control.parameters, node.values):
            self.pass_argument(parameter.direction, parameter.type, parameter.name, value)
        return VOID

    def apply_table(self, node, table):
        if self.in_action or self.block == "parser":
            raise P4Error(node.at, f"a table cannot be applied in {self.block_name()}")
        self.no_arguments(node, "apply")
        self.once(node, table, "table")
        node.callee = ("table", table)
        return APPLY_RESULT

    def once(self, node, declaration, what):
        """A switch has each table at one place of its pipeline."""
        if declaration in self.applied:
            raise beyond_subset(node.at, f"a {what} that is applied twice (before: {self.applied[declaration]})")
        self.applied[declaration] = node.at

    # What core.p4 and v1model.p4 declare.

    def prototype_call(self, node, prototype):
        if prototype.name == "lookahead":
            return self.lookahead_call(node, prototype)
        bound = self.bound_types(node, prototype)
        names = [s.Parameter(node.at, name, direction, None) for direction, _, name in prototype.parameters]
        node.values = self.match_arguments(node.at, prototype.name, node.arguments, names)
        for (direction, type_, name), value in zip(prototype.parameters, node.values):
            self.prototype_argument(prototype, bound, direction, type_, name, value)
        if "algo" in {name for _, _, name in prototype.parameters}:
            self.check_checksum(node, prototype)
        return prototype.returns

    def bound_types(self, node, prototype):
        """The types of a call's type parameters: given, or to be found."""
        if not node.type_arguments:
            return {}
        if len(node.type_arguments) != len(prototype.type_parameters):
            raise P4Error(node.at, f"{prototype.name} has {len(prototype.type_parameters)} type parameters, "
                                   f"not {len(node.type_arguments)}")
        if "data" in {type_ for _, type_, _ in prototype.parameters}:
            raise beyond_subset(node.at, f"a type argument of {prototype.name}")
        return dict(zip(prototype.type_parameters, (self.resolve(ref) for ref in node.type_arguments)))

    def lookahead_call(self, node, prototype):
        bound = self.bound_types(node, prototype)
        if not bound:
            raise P4Error(node.at, "lookahead needs a type: lookahead<bit<8>>()")
        found = bound["T"]
        if isinstance(found, Record):
            raise beyond_subset(node.at, "lookahead of a header")
        if not isinstance(found, Bits):
            raise P4Error(node.at, f"lookahead of {found}, which has no width")
        if node.arguments:
            raise P4Error(node.at, "lookahead has no parameters")
        node.values = []
        return found

    def prototype_argument(self, prototype, bound, direction, type_, name, value):
        """`type_` is a type, or says what the argument must be: v1model.py."""
        if type_ == "lvalue header":
            self.check_value(value)
            if not isinstance(value.type, Record) or not value.type.is_header:
                raise P4Error(value.at, f"extract takes a header, not {value.type}")
            if bound.get("T", value.type) != value.type:
                raise P4Error(value.at, f"{value.type} is not the type that extract is called with")
            self.check_lvalue(value)
        elif type_ == "emitted":
            self.emitted(value)
        elif type_ == "data":
            self.data(value)
        elif isinstance(type_, str):
            self.check_value(value)
            if value.type == INTEGER:
                raise beyond_subset(value.at, f"a number without a width as {name} of {prototype.name}")
            if not isinstance(value.type, Bits) or value.type.signed:
                raise P4Error(value.at, f"{name} of {prototype.name} is {value.type}: it needs a type bit<W>")
            if direction in ("out", "inout"):
                self.check_lvalue(value)
        else:
            self.pass_argument(direction, type_, name, value)
        if type_ == HASH_ALGORITHM:
            self.algorithm(value)

    def check_checksum(self, node, prototype):
        """Of what the algorithm takes and gives, the widths."""
        by_name = dict(zip((name for _, _, name in prototype.parameters), node.values))
        algorithm = by_name["algo"].constant
        bits = {"csum16": 16, "crc32": 32}[algorithm]
        width = sum(element.type.width for element in by_name["data"].elements)
        if width % {"csum16": 16, "crc32": 8}[algorithm] != 0:
            raise beyond_subset(node.at, f"{algorithm} of {width} bits")
        if "checksum" in by_name and by_name["checksum"].type != Bits(bits):
            raise P4Error(node.at, f"{algorithm} gives bit<{bits}>, not {by_name['checksum'].type}")

    def emitted(self, value):
        self.check_value(value)
        if not isinstance(value.type, Record):
            raise P4Error(value.at, f"emit takes a header or a struct of headers, not {value.type}")
        if not value.type.is_header:
            for name, field in value.type.fields.items():
                if not isinstance(field, Record) or not field.is_header:
                    raise P4Error(value.at, f"{value.type} is no struct of headers: {name} is {field}")

    def data(self, value):
        if not isinstance(value, s.ListOf):
            raise beyond_subset(value.at, "anything but a list {..} as data")
        self.check_value(value)
        for element in value.elements:
            if not isinstance(element.type, Bits):
                what = "a number without a width" if element.type == INTEGER else str(element.type)
                raise P4Error(element.at, f"data are bit<W> and int<W>, not {what}")

    def algorithm(self, value):
        if value.constant is None:
            raise P4Error(value.at, "the algorithm must be constant")
        if value.constant not in ALGORITHMS_TAKEN:
            raise beyond_subset(value.at, f"HashAlgorithm.{value.constant}")

    # Arguments.

    def no_type_arguments(self, node):
        if node.type_arguments:
            raise P4Error(node.at, "this call has no type parameters")

    def no_arguments(self, node, name):
        self.no_type_arguments(node)
        if node.arguments:
            raise P4Error(node.at, f"{name} has no parameters")
        node.values = []

    def match_arguments(self, place, name, arguments, parameters):
        """The expressions of a call in the order of the parameters."""
        named = [argument for argument in arguments if argument.name is not None]
        if named and len(named) != len(arguments):
            raise P4Error(place, "either all arguments of a call have names, or none has")
        if len(arguments) != len(parameters):
            raise P4Error(place, f"{name} has {len(parameters)} parameters, not {len(arguments)}")
        if not named:
            return [argument.value for argument in arguments]
        by_name = {}
        for argument in arguments:
            if argument.name in by_name:
                raise P4Error(argument.at, f"{argument.name} is given twice")
            if argument.name not in {parameter.name for parameter in parameters}:
                raise P4Error(argument.at, f"{name} has no parameter {argument.name}")
            by_name[argument.name] = argument.value
        return [by_name[parameter.name] for parameter in parameters]

    def pass_argument(self, direction, type_, name, value):
        if type_ in (PACKET_IN, PACKET_OUT):
            raise beyond_subset(value.at, f"{type_} as an argument")
        self.check_value(value)
        if direction in ("out", "inout"):
            if value.type != type_:
                raise P4Error(value.at, f"{name} is {type_}, and {value.type} cannot be written to by it")
            self.check_lvalue(value)
        else:
            self.assignable(value, type_, f"the argument for {name}")


def is_value(type_):
    return not isinstance(type_, (Callable, Extern, ListType)) and type_ not in (VOID, APPLY_RESULT, ACTION_RUN)
