"""Values of headers and structs, and packets while they are parsed.

What the specification leaves undefined has no value here: reading it ends the packet with a P4Error, so that no
answer can depend on it. It is a field of an invalid header, or a variable before it is first written.
"""

from .p4types import BOOL, ERROR, Bits, Enum, Record
from .source import P4Error

UNDEFINED = object()


class RecordValue:
    __slots__ = ("type", "fields", "valid")

    def __init__(self, type_, fields, valid):
        self.type = type_
        self.fields = fields
        self.valid = valid  # of a struct: True

    def copy(self):
        fields = {name: value.copy() if isinstance(value, RecordValue) else value
                  for name, value in self.fields.items()}
        return RecordValue(self.type, fields, self.valid)

    def get(self, name, place):
        value = self.fields[name]
        if not self.valid:
            raise P4Error(place, f"a field of {self.type} is read, and the header is not valid")
        if value is UNDEFINED:
            raise P4Error(place, f"{name} is read before it is written")
        return value

    def set(self, name, value, place):
        if not self.valid:
            raise P4Error(place, f"a field of {self.type} is written, and the header is not valid")
        self.fields[name] = value

    def to_bytes(self):
        """Of a header."""
        bits = 0
        for name, type_ in self.type.fields.items():
            value = self.fields[name]
            if value is UNDEFINED:
                raise P4Error(None, f"the header {self.type} is sent, and its field {name} was not written")
            bits = bits << type_.width | Bits(type_.width).wrap(value)
        return bits.to_bytes(self.type.width() // 8, "big")


def undefined(type_):
    """The value of what nothing was written to: a header is invalid."""
    if not isinstance(type_, Record):
        return UNDEFINED
    fields = {name: undefined(field) for name, field in type_.fields.items()}
    return RecordValue(type_, fields, not type_.is_header)


def zero(type_):
    """The value that v1model gives to metadata at first."""
    if isinstance(type_, Record):
        return RecordValue(type_, {name: zero(field) for name, field in type_.fields.items()}, not type_.is_header)
    if isinstance(type_, Bits):
        return 0
    if isinstance(type_, Enum):
        return type_.members[0]
    return {BOOL: False, ERROR: "NoError"}[type_]


def copied(value):
    return value.copy() if isinstance(value, RecordValue) else value


class Reject(Exception):
    """The parser rejects, with this member of `error`."""

    def __init__(self, error):
        super().__init__(error)
        self.error = error


class PacketReader:
    def __init__(self, data):
        self.data = data
        self.bits = int.from_bytes(data, "big")
        self.width = 8 * len(data)
        self.position = 0  # in bits

    def peek(self, width):
        if self.position + width > self.width:
            raise Reject("PacketTooShort")
        return (self.bits >> (self.width - self.position - width)) & ((1 << width) - 1)

    def take(self, width):
        found = self.peek(width)
        self.position += width
        return found

    def extract(self, header):
        """Fills a header. A packet that is too short leaves it as it was."""
        left = header.type.width()
        bits = self.take(left)
        for name, type_ in header.type.fields.items():
            left -= type_.width
            header.fields[name] = type_.wrap(bits >> left)
        header.valid = True

    def rest(self):
        """The bytes that were not parsed."""
        if self.position % 8 != 0:
            raise P4Error(None, f"the parser stops {self.position % 8} bits into a byte")
        return self.data[self.position // 8:]
