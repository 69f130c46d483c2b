"""The types of a program."""

from dataclasses import dataclass, field

WIDTH_MAX = 2048


@dataclass(frozen=True)
class Bits:
    """bit<width>, or int<width> if signed. A value is an int in the range of its type."""
    width: int
    signed: bool = False

    def __str__(self):
        return f"{'int' if self.signed else 'bit'}<{self.width}>"

    def low(self):
        return -(1 << (self.width - 1)) if self.signed else 0

    def high(self):
        return (1 << (self.width - (1 if self.signed else 0))) - 1

    def wrap(self, value):
        """The value modulo 2^width, in the range of the type."""
        value &= (1 << self.width) - 1
        return value - (1 << self.width) if self.signed and value > self.high() else value


@dataclass(frozen=True)
class Simple:
    name: str

    def __str__(self):
        return self.name


INTEGER = Simple("int")  # of any size, and known before any packet comes
BOOL = Simple("bool")
ERROR = Simple("error")
VOID = Simple("void")
PACKET_IN = Simple("packet_in")
PACKET_OUT = Simple("packet_out")
APPLY_RESULT = Simple("the result of apply()")
ACTION_RUN = Simple("action_run")


@dataclass(frozen=True)
class Enum:
    name: str
    members: tuple

    def __str__(self):
        return self.name


@dataclass(eq=False)
class Record:
    """A header or a struct. A value is a RecordValue of values.py."""
    name: str
    is_header: bool
    fields: dict = field(default_factory=dict)  # name -> type, in order

    def __str__(self):
        return self.name

    def width(self):
        """Bits of a header."""
        return sum(each.width for each in self.fields.values())


@dataclass(frozen=True)
class ListType:
    """The type of {a, b}."""
    elements: tuple

    def __str__(self):
        return "a list"


@dataclass(frozen=True)
class Extern:
    """The type of an object of v1model: its name, and the type of its elements if it has one."""
    name: str
    element: object = None

    def __str__(self):
        return f"{self.name}<{self.element}>" if self.element else self.name


@dataclass(frozen=True)
class Callable:
    """The type of what can only be called, or of an object that only has methods."""
    what: str  # "action", "table", "control", "parser", "extern function", "package"
    declaration: object = None

    def __str__(self):
        return f"the {self.what} {getattr(self.declaration, 'name', '')}".rstrip()


def is_scalar(type_):
    return isinstance(type_, (Bits, Enum)) or type_ in (BOOL, ERROR)
