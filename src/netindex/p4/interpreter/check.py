"""The rules of declarations, and of the program as a whole: refuses what a compiler for v1model refuses."""

import errno
import os
from contextlib import contextmanager

from . import syntax as s
from . import v1model
from .check_calls import CallChecker, is_value
from .check_expressions import ExpressionChecker
from .check_statements import StatementChecker
from .check_tables import TableChecker
from .check_written import check_written
from .lexer import decode
from .p4types import (BOOL, ERROR, INTEGER, PACKET_IN, PACKET_OUT, Bits, Callable, Enum, Extern, Record,
                      is_scalar)
from .parse import parse
from .source import P4Error, Place, beyond_subset

BLOCK_NAMES = {"parser": "a parser", "verify": "the control that verifies checksums", "ingress": "a control",
               "egress": "a control", "compute": "the control that computes checksums", "deparser": "the deparser",
               None: "a control"}


class Program:
    """A checked program. `blocks` has the declarations of the blocks of V1Switch by their kind."""

    def __init__(self, file):
        self.file = file
        self.blocks = {}
        self.headers = None  # the types H and M
        self.metadata = None
        self.warnings = []


class Checker(ExpressionChecker, CallChecker, StatementChecker, TableChecker):
    def __init__(self, file, includes):
        self.program = Program(file)
        self.includes = self.with_core(includes)
        self.place = Place(file, 1, 1)
        self.scopes = [{}]
        self.errors = list(v1model.ERRORS) if self.includes else []
        self.match_kinds = [kind for name in self.includes for kind in v1model.MATCH_KINDS[name]]
        self.functions = {k: v for name in self.includes for k, v in v1model.FUNCTIONS[name].items()}
        self.no_action = s.Action(self.place, "NoAction", [], s.Block(self.place, []))
        self.no_action.type = Callable("action", self.no_action)
        if self.includes:
            self.declare(self.no_action)
        self.block = None  # of V1Switch, that is checked; None: it is not known which
        self.in_action = False
        self.applied = {}
        self.direct_counters = set()
        self.kinds = {}
        self.declare_types()

    @staticmethod
    def with_core(includes):
        return ["core.p4"] + (["v1model.p4"] if "v1model.p4" in includes else []) if includes else []

    def declare_types(self):
        for name in self.includes:
            for type_name, type_ in v1model.TYPES[name].items():
                declaration = s.Typedef(self.place, type_name, None)
                declaration.type = type_
                self.declare(declaration)

    # Scopes.

    @contextmanager
    def scope(self):
        self.scopes.append({})
        yield
        self.scopes.pop()

    def declare(self, declaration):
        scope = self.scopes[-1]
        if other := scope.get(declaration.name):
            where = f" (before: {other.at})" if other.at is not self.place else ", which v1model declares"
            raise P4Error(declaration.at, f"a second declaration of {declaration.name}{where}")
        if len(self.scopes) == 1 and (declaration.name in self.functions or self.is_known_type(declaration.name)):
            raise P4Error(declaration.at, f"a second declaration of {declaration.name}, which v1model declares")
        if any(declaration.name in outer for outer in self.scopes[:-1]):
            self.warn(declaration.at, f"{declaration.name} hides a declaration outside")
        scope[declaration.name] = declaration

    def is_known_type(self, name):
        return "v1model.p4" in self.includes and (
            name in v1model.EXTERNS or name in v1model.EXTERNS_NOT_TAKEN or name == v1model.PACKAGE)

    def find(self, name):
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def lookup(self, name, place):
        found = self.find(name)
        if found is None:
            if name in self.functions:
                raise P4Error(place, f"{name} can only be called")
            raise P4Error(place, f"there is no declaration of {name}")
        return found

    def lookup_function(self, node):
        found = self.find(node.name) or self.functions.get(node.name)
        if found is None:
            if node.name in v1model.FUNCTIONS_NOT_TAKEN:
                raise beyond_subset(node.at, node.name)
            raise P4Error(node.at, f"there is no declaration of {node.name}")
        return found

    def warn(self, place, what):
        self.program.warnings.append(f"{place}: warning: {what}")

    def block_name(self):
        return "an action" if self.in_action else BLOCK_NAMES[self.block]

    # Types.

    def resolve(self, ref):
        """The type that is meant."""
        if isinstance(ref, s.BitsRef):
            width = self.constant_width(ref.width)
            return self.bits(ref.at, width, ref.signed)
        simple = {"int": INTEGER, "bool": BOOL, "error": ERROR}.get(ref.name)
        if simple is not None:
            return simple
        if ref.name in v1model.EXTERNS:
            return self.resolve_extern(ref)
        if ref.name in v1model.EXTERNS_NOT_TAKEN:
            raise beyond_subset(ref.at, ref.name)
        if ref.arguments:
            raise P4Error(ref.at, f"{ref.name} has no type parameters")
        declaration = self.lookup(ref.name, ref.at)
        if not isinstance(declaration, (s.Typedef, s.Structure, s.EnumDeclaration, s.Control, s.Parser)):
            raise P4Error(ref.at, f"{ref.name} is not a type")
        return declaration.type

    def constant_width(self, node):
        self.check_value(node)
        if node.constant is None or (node.type != INTEGER and not isinstance(node.type, Bits)):
            raise P4Error(node.at, "a width is a constant number")
        return node.constant

    def resolve_extern(self, ref):
        has_element, _ = v1model.EXTERNS[ref.name]
        if len(ref.arguments) != (1 if has_element else 0):
            raise P4Error(ref.at, f"{ref.name} has {1 if has_element else 'no'} type parameter"
                                  f"{'' if has_element else 's'}")
        if not has_element:
            return Extern(ref.name)
        element = self.resolve(ref.arguments[0])
        if not isinstance(element, Bits) or element.signed:
            raise P4Error(ref.at, f"a register has elements bit<W>, not {element}")
        return Extern(ref.name, element)

    def resolve_value_type(self, ref):
        found = self.resolve(ref)
        if not is_value(found) or found in (PACKET_IN, PACKET_OUT):
            raise P4Error(ref.at, f"{found} is not the type of a value")
        if found == INTEGER:
            raise P4Error(ref.at, "a variable of type int: only constants have that type")
        return found

    def resolve_constant_type(self, ref):
        found = self.resolve(ref)
        if found != INTEGER and not is_scalar(found):
            raise beyond_subset(ref.at, f"a constant of the type {found}")
        return found

    # Declarations.

    def check_program(self, declarations):
        main = None
        self.kinds = self.kinds_of_blocks(declarations)
        for declaration in declarations:
            if isinstance(declaration, s.Instantiation):
                if declaration.name != "main":
                    raise beyond_subset(declaration.at, "an object outside of controls")
                if main is not None:
                    raise P4Error(declaration.at, f"a second declaration of main (before: {main.at})")
                main = declaration
                self.check_main(main)
            else:
                getattr(self, "declare_" + type(declaration).__name__)(declaration)
        if main is None:
            raise P4Error(self.place, "the program has no main")
        return self.program

    def kinds_of_blocks(self, declarations):
        """Which block of V1Switch a control or parser is, by its name: main says so, and comes last."""
        main = next((each for each in declarations if getattr(each, "name", "") == "main"), None)
        found = {}
        for argument, (kind, _) in zip(getattr(main, "arguments", []), v1model.BLOCKS):
            call = argument.value
            if isinstance(call, s.Call) and isinstance(call.function, s.Name):
                if call.function.name in found:
                    raise beyond_subset(argument.at, f"{call.function.name} as two blocks")
                found[call.function.name] = kind
        return found

    def check_main(self, main):
        if main.type_ref.name != v1model.PACKAGE:
            raise P4Error(main.at, f"main is a {v1model.PACKAGE}")
        if "v1model.p4" not in self.includes:
            raise P4Error(main.at, "the program does not include <v1model.p4>")
        if main.type_ref.arguments:
            raise beyond_subset(main.at, f"a type argument of {v1model.PACKAGE}")
        if len(main.arguments) != len(v1model.BLOCKS) or any(each.name for each in main.arguments):
            raise P4Error(main.at, f"{v1model.PACKAGE} takes {len(v1model.BLOCKS)} blocks")
        for argument, (kind, parameters) in zip(main.arguments, v1model.BLOCKS):
            self.check_block_of_main(argument.value, kind, parameters)
        self.check_headers(main)

    def check_block_of_main(self, value, kind, parameters):
        wanted = s.Parser if kind == "parser" else s.Control
        declaration = self.find(value.function.name) if isinstance(value, s.Call) and isinstance(
            value.function, s.Name) else None
        if not isinstance(declaration, wanted):
            raise P4Error(value.at, f"this block is a {wanted.__name__.lower()}: NAME()")
        if value.arguments:
            raise P4Error(value.at, f"the constructor of {declaration.name} has no parameters")
        if len(declaration.parameters) != len(parameters):
            raise P4Error(declaration.at, f"{declaration.name} needs {len(parameters)} parameters as a block of "
                                          f"{v1model.PACKAGE}, not {len(declaration.parameters)}")
        for parameter, (direction, type_) in zip(declaration.parameters, parameters):
            type_ = self.bind_block_type(type_, parameter)
            if parameter.direction != direction or parameter.type != type_:
                raise P4Error(parameter.at, f"{parameter.name} must be {direction} {type_}".replace("  ", " "))
        self.program.blocks[kind] = declaration

    def bind_block_type(self, type_, parameter):
        """H and M are what the first block that has them says."""
        field = {"H": "headers", "M": "metadata"}.get(type_) if isinstance(type_, str) else None
        if field is None:
            return type_
        if getattr(self.program, field) is None:
            if not isinstance(parameter.type, Record) or parameter.type.is_header:
                raise P4Error(parameter.at, f"{parameter.name} must be a struct")
            setattr(self.program, field, parameter.type)
        return getattr(self.program, field)

    def check_headers(self, main):
        for name, field in self.program.headers.fields.items():
            if not isinstance(field, Record) or not field.is_header:
                raise P4Error(main.at, f"{self.program.headers} is no struct of headers: {name} is {field}")

    def declare_Constant(self, node):
        self.statement_Constant(node)

    def declare_Typedef(self, node):
        node.type = self.resolve_value_type(node.type_ref)
        self.declare(node)

    def declare_Structure(self, node):
        node.type = Record(node.name, node.is_header)
        for field in node.fields:
            found = self.resolve_value_type(field.type_ref)
            if field.name in node.type.fields:
                raise P4Error(field.at, f"{node.name} has two fields {field.name}")
            if node.is_header:
                self.check_header_field(field, found)
            node.type.fields[field.name] = found
        if node.is_header and node.type.width() % 8 != 0:
            raise P4Error(node.at, f"the header {node.name} has {node.type.width()} bits, no multiple of 8")
        self.declare(node)

    def check_header_field(self, field, found):
        if found == BOOL or isinstance(found, Record) and not found.is_header:
            raise beyond_subset(field.at, f"a field {found} in a header")
        if not isinstance(found, Bits):
            raise P4Error(field.at, f"{found} is no type of a header's field")

    def declare_EnumDeclaration(self, node):
        self.unique(node.members, [])
        node.type = Enum(node.name, tuple(member.name for member in node.members))
        self.declare(node)

    def declare_Errors(self, node):
        self.unique(node.members, self.errors)
        self.errors += [member.name for member in node.members]

    def unique(self, members, known):
        seen = set(known)
        for member in members:
            if member.name in seen:
                raise P4Error(member.at, f"{member.name} is declared twice")
            seen.add(member.name)

    def declare_Action(self, node):
        """Also those of a control."""
        with self.scope():
            self.check_parameters(node.parameters)
            directed = [bool(parameter.direction) for parameter in node.parameters]
            if directed != sorted(directed, reverse=True):
                raise P4Error(node.at, f"the parameters of {node.name} without a direction must come last")
            for parameter in node.parameters:
                if not is_scalar(parameter.type):
                    raise beyond_subset(parameter.at, f"a parameter {parameter.type} of an action")
            self.in_action = True
            self.check_block(node.body)
            self.in_action = False
            check_written(node.body.statements, node.parameters, self.warn)
        node.type = Callable("action", node)
        self.declare(node)

    def check_parameters(self, parameters):
        for parameter in parameters:
            parameter.type = self.resolve(parameter.type_ref)
            if not is_value(parameter.type) or parameter.type == INTEGER:
                raise P4Error(parameter.at, f"{parameter.type} is not the type of a parameter")
            self.declare(parameter)

    # Controls and parsers.

    def declare_Control(self, node):
        node.type = Callable("control", node)
        self.block = self.kinds.get(node.name, "ingress")
        if self.block == "parser":
            raise P4Error(node.at, f"{node.name} is no parser, as main says")
        with self.scope():
            self.check_block_parameters(node)
            for local in node.locals:
                self.check_local(local)
            self.check_block(node.body)
            self.check_direct_counters(node)
            check_written(node.body.statements, [], self.warn)
        self.block = None
        self.declare(node)

    def check_direct_counters(self, node):
        for local in node.locals:
            if local.type == Extern("direct_counter") and local not in self.direct_counters:
                raise beyond_subset(local.at, f"the direct_counter {local.name} of no table")

    def check_block_parameters(self, node):
        self.check_parameters(node.parameters)
        for parameter in node.parameters:
            is_packet = parameter.type in (PACKET_IN, PACKET_OUT)
            if is_packet and parameter.direction:
                raise P4Error(parameter.at, f"{parameter.type} has no direction")
            if not is_packet and not parameter.direction:
                raise beyond_subset(parameter.at, f"the parameter {parameter.name} without a direction")

    def check_local(self, local):
        if self.block in ("verify", "compute", "deparser"):
            raise beyond_subset(local.at, f"a declaration in {self.block_name()}")
        if isinstance(local, s.Action):
            self.declare_Action(local)
        elif isinstance(local, s.Table):
            self.check_table(local)
            self.declare(local)
        elif isinstance(local, s.Instantiation):
            self.check_instance(local)
            self.declare(local)
        else:
            self.check_statement(local)

    def check_instance(self, node):
        found = self.resolve(node.type_ref)
        node.type = found
        if isinstance(found, Callable) and found.what == "control" and self.block != "parser":
            if node.arguments:
                raise P4Error(node.at, f"the constructor of {found.declaration.name} has no parameters")
            return
        if not isinstance(found, Extern) or self.block == "parser":
            raise P4Error(node.at, f"{found} is not the type of an object here")
        _, parameters = v1model.EXTERNS[found.name]
        named = [s.Parameter(node.at, name, direction, None) for direction, _, name in parameters]
        values = self.match_arguments(node.at, found.name, node.arguments, named)
        node.arguments = [self.constant_of(value, type_, f"the argument for {name}")
                          for value, (_, type_, name) in zip(values, parameters)]
        if parameters[0][2] == "size" and node.arguments[0] == 0:
            raise beyond_subset(node.at, f"a {found.name} of no elements")

    def declare_Parser(self, node):
        node.type = Callable("parser", node)
        self.block = "parser"
        if self.kinds.get(node.name, "parser") != "parser":
            raise P4Error(node.at, f"{node.name} is no control, as main says")
        with self.scope():
            self.check_block_parameters(node)
            for local in node.locals:
                self.check_local(local)
            self.check_states(node)
        self.block = None
        self.declare(node)

    def check_states(self, node):
        node.states_by_name = {}
        for state in node.states:
            if state.name in ("accept", "reject"):
                raise P4Error(state.at, f"the state {state.name} is there already")
            if state.name in node.states_by_name:
                raise P4Error(state.at, f"the parser has two states {state.name}")
            node.states_by_name[state.name] = state
        if "start" not in node.states_by_name:
            raise P4Error(node.at, f"the parser {node.name} has no state start")
        for state in node.states:
            with self.scope():
                for statement in state.statements:
                    self.check_statement(statement)
                self.check_transition(node, state)
                check_written(state.statements, [], self.warn)
        self.warn_of_unreachable(node)

    def check_transition(self, node, state):
        if state.transition is None:
            self.warn(state.at, f"the state {state.name} has no transition: it rejects")
        elif isinstance(state.transition, s.Transition):
            self.check_target(node, state.transition)
        else:
            self.check_select(node, state.transition)

    def check_target(self, node, at):
        if at.state not in node.states_by_name and at.state not in ("accept", "reject"):
            raise P4Error(at.at, f"there is no state {at.state}")

    def check_select(self, node, select):
        for value in select.values:
            if not isinstance(self.check_value(value), Bits):
                raise beyond_subset(value.at, f"select of {value.type}")
        is_complete = False
        for case in select.cases:
            self.check_target(node, case)
            if is_complete:
                self.warn(case.at, "no value comes to this case")
            if len(case.keys) == 1 and isinstance(case.keys[0], s.AnyValue):
                is_complete = True
                continue
            if len(case.keys) != len(select.values):
                raise P4Error(case.at, f"{len(case.keys)} sets of values for {len(select.values)} values")
            for keyset, value in zip(case.keys, select.values):
                self.check_keyset(keyset, value.type, None)

    def warn_of_unreachable(self, node):
        reached, ahead = set(), ["start"]
        while ahead:
            state = node.states_by_name.get(ahead.pop())
            if state is None or state.name in reached:
                continue
            reached.add(state.name)
            cases = getattr(state.transition, "cases", None)
            ahead += [c.state for c in cases] if cases is not None else [getattr(state.transition, "state", "reject")]
        for name in node.states_by_name.keys() - reached:
            self.warn(node.states_by_name[name].at, f"no transition leads to the state {name}")


def no_files(name):
    raise FileNotFoundError(errno.ENOENT, "there are no other files")


def check(text, file, read=no_files):
    """The checked program of a text. `read` gives the bytes of other files by their names. Raises P4Error if it is
    refused."""
    declarations, includes = parse(text, file, read)
    return Checker(file, includes).check_program(declarations)


def check_file(path):
    """Likewise, of a file, which may include others of its folder."""
    folder, name = os.path.split(path)

    def read(name):
        with open(os.path.join(folder, name), "rb") as f:
            return f.read()
    return check(decode(read(name), path), path, read)
