"""Arithmetic (sections "Operations on fixed-width bit types" and the following of the specification).

The same functions give the values of constants and those of packets.
"""

from .p4types import BOOL, INTEGER, Bits
from .source import P4Error

SHIFT_MAX = 2048


def unary(operator, type_, a):
    if operator == "!":
        return not a
    value = {"-": -a, "+": a, "~": ~a}[operator]
    return type_.wrap(value) if isinstance(type_, Bits) else value


def binary(operator, left, right, a, b):
    """The value of `a operator b`, of operands of these types."""
    if operator in COMPARE:
        return COMPARE[operator](a, b)
    if operator in ("<<", ">>"):
        return shift(operator, left, a, b)
    if operator == "++":
        return concatenate(left, right, a, b)
    value = ARITHMETIC[operator](a, b)
    if not isinstance(left, Bits):
        return value
    if operator in ("|+|", "|-|"):
        return min(max(value, left.low()), left.high())
    return left.wrap(value)


COMPARE = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b}
ARITHMETIC = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "|+|": lambda a, b: a + b,
    "|-|": lambda a, b: a - b, "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
    "/": lambda a, b: a // b, "%": lambda a, b: a % b}


def shift(operator, type_, a, b):
    """Of a signed number the sign is shifted in. So many places as the number has, or more, leave nothing else."""
    if not isinstance(type_, Bits):
        return a << b if operator == "<<" else a >> b
    b = min(b, type_.width)
    return type_.wrap(a << b if operator == "<<" else a >> b)


def concatenate(left, right, a, b):
    return Bits(left.width + right.width, left.signed).wrap(a << right.width | Bits(right.width).wrap(b))


def take_slice(a, high, low):
    return (a >> low) & ((1 << (high - low + 1)) - 1)


def put_slice(type_, a, high, low, value):
    mask = ((1 << (high - low + 1)) - 1) << low
    return type_.wrap((a & ~mask) | (value << low))


def cast(to, a):
    """The value of a legal cast."""
    if to == BOOL:
        return bool(a)
    if isinstance(to, Bits):
        return to.wrap(int(a))
    return a


def check_constant_operands(operator, place, left, b):
    """Refuses what has no value. `b` is the right operand, if it is known."""
    if operator in ("/", "%") and b <= 0:
        raise P4Error(place, "division by zero" if b == 0 else "division by a negative number")
    if operator in ("<<", ">>") and b is not None and b < 0:
        raise P4Error(place, "a shift by a negative number")
    if operator in ("<<", ">>") and b is not None and left == INTEGER and b > SHIFT_MAX:
        raise P4Error(place, f"a shift by more than {SHIFT_MAX}")
