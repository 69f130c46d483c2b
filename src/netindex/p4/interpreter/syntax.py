"""What the grammar's productions become. The checker sets the fields that are not given to a constructor."""

from dataclasses import dataclass, field


def set_later(default=None):
    return field(default=default, init=False, repr=False)


@dataclass(eq=False)
class Node:
    at: object  # source.Place


# Types as they are written.

@dataclass(eq=False)
class BitsRef(Node):
    width: object
    signed: bool


@dataclass(eq=False)
class NamedRef(Node):
    name: str
    arguments: list  # of types


# Expressions.

@dataclass(eq=False)
class Expression(Node):
    type: object = set_later()  # of p4types.py
    constant: object = set_later()  # its value if that is known before any packet comes


@dataclass(eq=False)
class Number(Expression):
    value: int
    width: int | None
    signed: bool


@dataclass(eq=False)
class Boolean(Expression):
    value: bool


@dataclass(eq=False)
class Name(Expression):
    name: str
    declaration: object = set_later()


@dataclass(eq=False)
class Member(Expression):
    base: object
    name: str


@dataclass(eq=False)
class TypeMember(Expression):  # of an enum, or of `error`
    type_name: str
    name: str


@dataclass(eq=False)
class Slice(Expression):
    base: object
    high: object
    low: object


@dataclass(eq=False)
class Unary(Expression):
    operator: str
    operand: object


@dataclass(eq=False)
class Binary(Expression):
    operator: str
    left: object
    right: object


@dataclass(eq=False)
class Conditional(Expression):
    condition: object
    then: object
    otherwise: object


@dataclass(eq=False)
class Cast(Expression):
    to: object
    operand: object


@dataclass(eq=False)
class ListOf(Expression):
    elements: list


@dataclass(eq=False)
class Argument(Node):
    name: str | None
    value: object


@dataclass(eq=False)
class Call(Expression):
    function: object  # Name or Member
    type_arguments: list
    arguments: list  # of Argument
    callee: object = set_later()  # what is called: check_calls.py
    values: list = set_later()  # its arguments, one a parameter


# Sets of values, of `select` and of entries.

@dataclass(eq=False)
class AnyValue(Node):
    pass


@dataclass(eq=False)
class MaskedValue(Node):
    value: object
    mask: object


@dataclass(eq=False)
class RangeOfValues(Node):
    low: object
    high: object


# Statements.

@dataclass(eq=False)
class Assignment(Node):
    target: object
    value: object


@dataclass(eq=False)
class CallStatement(Node):
    call: object


@dataclass(eq=False)
class If(Node):
    condition: object
    then: object
    otherwise: object


@dataclass(eq=False)
class Block(Node):
    statements: list


@dataclass(eq=False)
class SwitchCase(Node):
    label: str | None  # None: default
    body: object  # None: that of the next case


@dataclass(eq=False)
class Switch(Node):
    value: object
    cases: list
    table: object = set_later()


@dataclass(eq=False)
class Return(Node):
    pass


@dataclass(eq=False)
class Exit(Node):
    pass


@dataclass(eq=False)
class Empty(Node):
    pass


# Declarations.

@dataclass(eq=False)
class Declaration(Node):
    name: str
    type: object = set_later()


@dataclass(eq=False)
class Constant(Declaration):
    type_ref: object
    value: object


@dataclass(eq=False)
class Typedef(Declaration):
    type_ref: object


@dataclass(eq=False)
class Field(Declaration):
    type_ref: object


@dataclass(eq=False)
class Structure(Declaration):
    is_header: bool
    fields: list


@dataclass(eq=False)
class EnumDeclaration(Declaration):
    members: list  # of Name


@dataclass(eq=False)
class Errors(Node):
    members: list  # of Name


@dataclass(eq=False)
class Parameter(Declaration):
    direction: str  # in, out, inout, or empty
    type_ref: object


@dataclass(eq=False)
class Variable(Declaration):
    type_ref: object
    value: object  # or None


@dataclass(eq=False)
class Instantiation(Declaration):
    type_ref: object
    arguments: list


@dataclass(eq=False)
class Action(Declaration):
    parameters: list
    body: Block


@dataclass(eq=False)
class Key(Node):
    expression: object
    kind: str
    name: str | None  # of the annotation


@dataclass(eq=False)
class ActionRef(Node):
    name: str
    arguments: list | None
    action: object = set_later()
    values: list = set_later()


@dataclass(eq=False)
class Entry(Node):
    keys: list
    action: ActionRef


@dataclass(eq=False)
class Property(Node):
    name: str
    is_const: bool
    value: object  # of key, actions and entries a list; of default_action an ActionRef; else an expression


@dataclass(eq=False)
class Table(Declaration):
    properties: list
    keys: list = set_later()
    key_names: list = set_later()
    actions: dict = set_later()  # by name
    default_action: ActionRef = set_later()
    default_is_const: bool = set_later(False)
    entries: list = set_later()
    entries_are_const: bool = set_later(False)
    size: int = set_later()
    counter: object = set_later()


@dataclass(eq=False)
class State(Declaration):
    statements: list
    transition: object  # Transition, or None


@dataclass(eq=False)
class Transition(Node):
    state: str


@dataclass(eq=False)
class SelectCase(Node):
    keys: list
    state: str


@dataclass(eq=False)
class Select(Node):
    values: list
    cases: list


@dataclass(eq=False)
class Parser(Declaration):
    parameters: list
    locals: list
    states: list
    states_by_name: dict = set_later()


@dataclass(eq=False)
class Control(Declaration):
    parameters: list
    locals: list
    body: Block


def parts_of(node):
    """The expressions of which one is made."""
    if isinstance(node, Call):
        return node.values or []
    if isinstance(node, ListOf):
        return node.elements
    names = {Member: ("base",), Slice: ("base",), Unary: ("operand",), Binary: ("left", "right"),
             Conditional: ("condition", "then", "otherwise"), Cast: ("operand",)}
    return [getattr(node, name) for name in names.get(type(node), ())]
