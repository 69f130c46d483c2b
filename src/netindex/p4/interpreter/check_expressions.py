"""The rules of expressions: gives each its type, and its value if it is known before any packet comes."""

from . import operators
from . import syntax as s
from .p4types import (ACTION_RUN, APPLY_RESULT, BOOL, ERROR, INTEGER, VOID, WIDTH_MAX, Bits, Callable, Enum,
                      ListType, Record, is_scalar)
from .source import P4Error, beyond_subset

SAME_WIDTH = ("+", "-", "*", "|+|", "|-|", "&", "|", "^")
ORDER = ("<", ">", "<=", ">=")
EQUAL = ("==", "!=")
INTEGER_BITS_MAX = 4 * WIDTH_MAX


class ExpressionChecker:
    """Base of the checker. `self.lookup`, `self.warn`, `self.check_call` and `self.resolve` are its own."""

    def check(self, node):
        """Gives the node and all below it their types; returns its own."""
        node.type = getattr(self, "check_" + type(node).__name__)(node)
        return node.type

    def check_value(self, node):
        """As check, but the expression must have a value."""
        found = self.check(node)
        if isinstance(found, Callable) or found in (VOID, APPLY_RESULT, ACTION_RUN):
            raise P4Error(node.at, f"{'a call without a result' if found == VOID else found} is not a value")
        return found

    def check_Number(self, node):
        node.constant = node.value
        if node.width is None:
            return INTEGER
        found = self.bits(node.at, node.width, node.signed)
        return self.wrapped(node, found)

    def bits(self, place, width, signed):
        if width > WIDTH_MAX:
            raise P4Error(place, f"a width of {width} is more than {WIDTH_MAX}")
        if width < (2 if signed else 1):
            raise beyond_subset(place, f"{'int' if signed else 'bit'}<{width}>")
        return Bits(width, signed)

    def wrapped(self, node, found):
        """Puts the node's constant into the range of a type."""
        value = found.wrap(node.constant)
        if value != node.constant:
            self.warn(node.at, f"{node.constant if abs(node.constant) < 1 << 128 else 'the value'} does not fit into "
                               f"{found}: it is {value}")
        node.constant = value
        return found

    def check_Boolean(self, node):
        node.constant = node.value
        return BOOL

    def check_Name(self, node):
        node.declaration = self.lookup(node.name, node.at)
        if isinstance(node.declaration, s.Constant):
            node.constant = node.declaration.value.constant
        return node.declaration.type

    def check_TypeMember(self, node):
        if node.type_name == "error":
            members, found = self.errors, ERROR
        else:
            found = self.resolve(s.NamedRef(node.at, node.type_name, []))
            if not isinstance(found, Enum):
                raise P4Error(node.at, f"{node.type_name} has no members of its own")
            members = found.members
        if node.name not in members:
            raise P4Error(node.at, f"{node.type_name} has no member {node.name}")
        node.constant = node.name
        return found

    def check_Member(self, node):
        base = self.check(node.base)
        if base == APPLY_RESULT:
            return self.result_of_apply(node)
        if not isinstance(base, Record):
            raise P4Error(node.at, f"{base} has no member {node.name}")
        if node.name not in base.fields:
            raise P4Error(node.at, f"{base} has no field {node.name}")
        return base.fields[node.name]

    def result_of_apply(self, node):
        if node.name == "action_run":
            return ACTION_RUN
        if node.name not in ("hit", "miss"):
            raise P4Error(node.at, f"the result of apply() has no member {node.name}")
        return BOOL

    def check_Slice(self, node):
        base = self.check_value(node.base)
        if not isinstance(base, Bits):
            raise P4Error(node.at, f"a slice of {base}, which has no bits")
        high = self.index(node.high)
        low = self.index(node.low)
        if not 0 <= low <= high < base.width:
            raise P4Error(node.at, f"[{high}:{low}] is no slice of {base}")
        if node.base.constant is not None:
            node.constant = operators.take_slice(node.base.constant, high, low)
        return Bits(high - low + 1)

    def index(self, node):
        self.check_value(node)
        if node.constant is None or not isinstance(node.type, (Bits,)) and node.type != INTEGER:
            raise P4Error(node.at, "the bounds of a slice must be constant numbers")
        return node.constant

    def check_Unary(self, node):
        operand = self.check_value(node.operand)
        if node.operator == "!":
            fits = operand == BOOL
        else:
            fits = isinstance(operand, Bits) or (operand == INTEGER and node.operator != "~")
        if not fits:
            raise P4Error(node.at, f"{node.operator!r} is not defined on {operand}")
        if node.operand.constant is not None:
            node.constant = operators.unary(node.operator, operand, node.operand.constant)
        return operand

    def check_Binary(self, node):
        self.check_value(node.left)
        self.check_value(node.right)
        if node.operator in ("<<", ">>"):
            found = self.type_of_shift(node)
        elif node.operator == "++":
            found = self.type_of_concatenation(node)
        elif node.operator in ("&&", "||"):
            found = self.type_of_logic(node)
        else:
            self.make_alike(node)
            found = self.type_of_alike(node)
        self.fold(node)
        return found

    def fold(self, node):
        a, b = node.left.constant, node.right.constant
        if node.operator in ("/", "%"):
            if node.left.type != INTEGER:
                raise beyond_subset(node.at, "a division of packets' values")
            if a < 0:
                raise P4Error(node.at, "division of a negative number")
        if node.operator in ("/", "%", "<<", ">>"):
            operators.check_constant_operands(node.operator, node.at, node.left.type, b)
        if a is None or b is None:
            return
        if node.operator in ("&&", "||"):
            node.constant = (a and b) if node.operator == "&&" else (a or b)
            return
        node.constant = operators.binary(node.operator, node.left.type, node.right.type, a, b)
        if node.left.type == INTEGER and abs(node.constant) >= 1 << INTEGER_BITS_MAX:
            raise P4Error(node.at, f"a constant of more than {INTEGER_BITS_MAX} bits")

    def type_of_shift(self, node):
        left, right = node.left.type, node.right.type
        by = right == INTEGER or (isinstance(right, Bits) and not right.signed)
        if not by or not (isinstance(left, Bits) or left == INTEGER):
            raise P4Error(node.at, f"{node.operator!r} is not defined on {left} and {right}")
        if left == INTEGER and node.right.constant is None:
            raise P4Error(node.at, "a shift of a number without a width by what is not constant")
        return left

    def type_of_concatenation(self, node):
        left, right = node.left.type, node.right.type
        if not isinstance(left, Bits) or not isinstance(right, Bits):
            raise P4Error(node.at, f"'++' is not defined on {left} and {right}: both need a width")
        return self.bits(node.at, left.width + right.width, left.signed)

    def type_of_logic(self, node):
        for side in (node.left, node.right):
            if side.type != BOOL:
                raise P4Error(side.at, f"{node.operator!r} is not defined on {side.type}")
        return BOOL

    def make_alike(self, node):
        """A number without a width takes that of the other side."""
        left, right = node.left.type, node.right.type
        if left == INTEGER and isinstance(right, Bits):
            self.wrapped(node.left, right)
            node.left.type = right
        elif right == INTEGER and isinstance(left, Bits):
            self.wrapped(node.right, left)
            node.right.type = left

    def type_of_alike(self, node):
        left, right = node.left.type, node.right.type
        if node.operator in EQUAL and isinstance(left, (Record, ListType)) and left == right:
            raise beyond_subset(node.at, f"a comparison of {left} as a whole")
        if left != right:
            raise P4Error(node.at, f"{node.operator!r} of {left} and {right}, which are different types")
        if node.operator in EQUAL and (is_scalar(left) or left == INTEGER):
            return BOOL
        if node.operator in ORDER and (isinstance(left, Bits) or left == INTEGER):
            return BOOL
        if node.operator in SAME_WIDTH and isinstance(left, Bits):
            return left
        if node.operator in ("+", "-", "*", "/", "%") and left == INTEGER:
            return left
        if node.operator in ("/", "%") and isinstance(left, Bits):
            return left
        raise P4Error(node.at, f"{node.operator!r} is not defined on {left}")

    def check_Conditional(self, node):
        if self.check_value(node.condition) != BOOL:
            raise P4Error(node.condition.at, f"the condition is {node.condition.type}, not bool")
        self.check_value(node.then)
        self.check_value(node.otherwise)
        pair = s.Binary(node.at, "?", node.then, node.otherwise)
        self.make_alike(pair)
        if node.then.type != node.otherwise.type:
            raise P4Error(node.at, f"'?' of {node.then.type} and {node.otherwise.type}, which are different types")
        if not is_scalar(node.then.type):
            raise P4Error(node.at, f"'?' of {node.then.type}: its values need a width")
        if node.condition.constant is not None:
            node.constant = (node.then if node.condition.constant else node.otherwise).constant
        return node.then.type

    def check_Cast(self, node):
        to = self.resolve(node.to)
        from_ = self.check_value(node.operand)
        if not castable(to, from_):
            raise P4Error(node.at, f"a cast of {from_} to {to} is not legal")
        if node.operand.constant is not None:
            node.constant = node.operand.constant
            if from_ == INTEGER and isinstance(to, Bits):
                return self.wrapped(node, to)
            node.constant = operators.cast(to, node.constant)
        return to

    def check_ListOf(self, node):
        for element in node.elements:
            self.check_value(element)
        return ListType(tuple(element.type for element in node.elements))

    def check_Call(self, node):
        return self.check_call(node)

    # What others ask for.

    def assignable(self, node, to, what):
        """Checks that the checked expression may become a value of the type, and makes it one."""
        if node.type == INTEGER and isinstance(to, Bits):
            self.wrapped(node, to)
            node.type = to
        elif isinstance(node.type, ListType) and isinstance(to, Record):
            raise beyond_subset(node.at, "a list as the value of a struct")
        elif node.type != to:
            raise P4Error(node.at, f"{what} is {node.type}, not {to}")

    def constant_of(self, node, to, what):
        """The value of an expression that must be constant and of the type."""
        self.check_value(node)
        self.assignable(node, to, what)
        if node.constant is None:
            raise P4Error(node.at, f"{what} is not constant")
        return node.constant

    def check_lvalue(self, node):
        """Refuses what nothing can be written to. The node is checked already."""
        if isinstance(node, s.Slice) and isinstance(node.base, s.Slice):
            raise beyond_subset(node.at, "a slice of a slice that is written")
        inner = node
        while isinstance(inner, (s.Member, s.Slice)):
            inner = inner.base
        declaration = inner.declaration if isinstance(inner, s.Name) else None
        if isinstance(declaration, s.Variable):
            return
        if isinstance(declaration, s.Parameter):
            if declaration.direction in ("out", "inout"):
                return
            raise P4Error(node.at, f"{declaration.name} can only be read: it is a parameter with the direction "
                                   f"{declaration.direction or 'none'}")
        raise P4Error(node.at, "this cannot be written to")


def castable(to, from_):
    if to == from_ and is_scalar(to):
        return True
    if isinstance(to, Bits) and isinstance(from_, Bits):
        return to.width == from_.width or to.signed == from_.signed
    if isinstance(to, Bits) and from_ == INTEGER:
        return True
    bit = Bits(1)
    return (to == BOOL and from_ == bit) or (to == bit and from_ == BOOL)
