"""Tokens -> syntax: types and expressions, by recursive descent."""

from . import syntax as s
from .lexer import RESERVED
from .source import P4Error, beyond_subset

# From the operators that bind least to those that bind most. Unlike in C, & ^ | bind more than comparisons.
BINARY = [("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">="), ("|",), ("^",), ("&",), ("<<", ">>"),
          ("++", "+", "-", "|+|", "|-|"), ("*", "/", "%")]
UNARY = ("!", "~", "-", "+")
TYPE_WORDS = ("bit", "int", "bool", "error", "varbit", "string", "match_kind", "tuple", "list", "void")
NOT_TAKEN_TYPES = ("varbit", "string", "match_kind", "tuple", "list", "void")
# How deep expressions and statements may be in each other. Bounds the recursion of all that walks over them.
DEPTH_MAX = 60


class ExpressionParser:
    def __init__(self, tokens, type_names):
        self.tokens = tokens
        self.position = 0
        self.type_names = set(type_names)  # grows with the declarations: the grammar needs to know
        self.depth = 0

    # Tokens.

    @property
    def token(self):
        return self.tokens[self.position]

    def ahead(self, count=1):
        return self.tokens[min(self.position + count, len(self.tokens) - 1)]

    def is_at(self, *texts):
        return self.token.kind in ("mark", "name") and self.token.text in texts

    def next(self):
        token = self.token
        if token.kind != "end":
            self.position += 1
        return token

    def accept(self, *texts):
        return self.next() if self.is_at(*texts) else None

    def expect(self, text, where):
        if not self.is_at(text):
            raise P4Error(self.token.place, f"expected {text!r} {where}, not {self.said()}")
        return self.next()

    def said(self):
        return self.token.text if self.token.kind == "end" else repr(self.token.text[:40])

    def name(self, what):
        token = self.token
        if token.kind != "name":
            raise P4Error(token.place, f"expected the name of {what}, not {self.said()}")
        if token.text in RESERVED:
            raise P4Error(token.place, f"{token.text} is a keyword, not the name of {what}")
        return self.next()

    def deeper(self, place):
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise P4Error(place, f"nested more than {DEPTH_MAX} deep")

    # Types.

    def at_type(self):
        return self.token.kind == "name" and (self.token.text in TYPE_WORDS or self.token.text in self.type_names)

    def type_ref(self):
        token = self.token
        if not self.at_type():
            what = f"{token.text!r} is not the name of a type" if token.kind == "name" \
                else f"expected a type, not {self.said()}"
            raise P4Error(token.place, what)
        self.next()
        if token.text in NOT_TAKEN_TYPES:
            raise beyond_subset(token.place, f"the type {token.text}")
        if token.text in ("bit", "int"):
            ref = self.bits_ref(token)
        else:
            ref = s.NamedRef(token.place, token.text, self.type_arguments() if self.is_at("<") else [])
        if self.is_at("["):
            raise beyond_subset(self.token.place, "a header stack")
        return ref

    def bits_ref(self, token):
        signed = token.text == "int"
        if not self.accept("<"):
            return s.NamedRef(token.place, "int", []) if signed else s.BitsRef(
                token.place, s.Number(token.place, 1, None, False), False)
        if self.accept("("):
            width = self.expression()
            self.expect(")", "behind the width")
        else:
            width = self.number("the width")
        self.expect(">", "behind the width")
        return s.BitsRef(token.place, width, signed)

    def type_arguments(self):
        self.deeper(self.token.place)
        self.expect("<", "before types")
        refs = [self.type_ref()]
        while self.accept(","):
            refs.append(self.type_ref())
        self.expect(">", "behind types")
        self.depth -= 1
        return refs

    # Expressions.

    def number(self, what):
        token = self.token
        if token.kind != "number":
            raise P4Error(token.place, f"expected {what}, not {self.said()}")
        self.next()
        return s.Number(token.place, *token.value)

    def expression(self):
        self.deeper(self.token.place)
        condition = self.binary(0)
        if question := self.accept("?"):
            then = self.expression()
            self.expect(":", "between the values of '?'")
            condition = s.Conditional(question.place, condition, then, self.expression())
        self.depth -= 1
        return condition

    def binary(self, level):
        if level == len(BINARY):
            return self.unary()
        left = self.binary(level + 1)
        count = 0
        while operator := self.operator(BINARY[level]):
            count += 1
            if count > DEPTH_MAX:
                raise P4Error(operator.place, f"more than {DEPTH_MAX} operators in a row")
            left = s.Binary(operator.place, operator.text, left, self.binary(level + 1))
        return left

    def operator(self, texts):
        """The operator here if it is one of these. Two tokens `>` side by side are one."""
        token = self.token
        both = self.is_at(">") and self.ahead().text == ">" and self.ahead().offset == token.offset + 1
        if both:
            if ">>" not in texts:
                return None
            self.next()
            self.next()
            return type(token)("mark", ">>", token.place, token.offset)
        return self.next() if token.kind == "mark" and token.text in texts else None

    def unary(self):
        token = self.token
        self.deeper(token.place)
        if self.accept(*UNARY):
            found = s.Unary(token.place, token.text, self.unary())
        elif self.is_at("(") and self.at_cast():
            self.next()
            to = self.type_ref()
            self.expect(")", "behind the type of a cast")
            found = s.Cast(token.place, to, self.unary())
        else:
            found = self.postfix()
        self.depth -= 1
        return found

    def at_cast(self):
        inner = self.ahead()
        is_type = inner.kind == "name" and (inner.text in TYPE_WORDS or inner.text in self.type_names)
        return is_type and self.ahead(2).text != "."

    def postfix(self):
        found = self.primary()
        count = 0
        while True:
            token = self.token
            count += 1
            if count > DEPTH_MAX:
                raise P4Error(token.place, f"nested more than {DEPTH_MAX} deep")
            if self.accept("."):
                found = s.Member(token.place, found, self.name_of_member().text)
            elif self.is_at("["):
                found = self.slice(found)
            elif self.is_at("("):
                found = self.call(found, [])
            elif self.is_at("<") and self.at_type_arguments():
                found = self.call(found, self.type_arguments())
            else:
                return found

    def name_of_member(self):
        return self.name("a member")

    def at_type_arguments(self):
        following = self.ahead()
        return following.kind == "name" and (following.text in TYPE_WORDS or following.text in self.type_names)

    def slice(self, base):
        bracket = self.next()
        high = self.expression()
        if not self.is_at(":"):
            raise beyond_subset(bracket.place, "an index")
        self.next()
        low = self.expression()
        self.expect("]", "behind a slice")
        return s.Slice(bracket.place, base, high, low)

    def call(self, function, type_arguments):
        place = function.at
        return s.Call(place, function, type_arguments, self.arguments())

    def separated(self, element, closing):
        """Elements with commas between them, and what closes them; none if that is here already."""
        found = []
        if not self.is_at(closing):
            found.append(element())
            while self.accept(","):
                found.append(element())
        self.expect(closing, "or a comma")
        return found

    def arguments(self):
        self.expect("(", "before arguments")
        return self.separated(self.argument, ")")

    def argument(self):
        place = self.token.place
        name = None
        if self.token.kind == "name" and self.ahead().text == "=":
            name = self.name("a parameter").text
            self.next()
        if self.is_at("_"):
            raise beyond_subset(place, "an argument that is left out")
        return s.Argument(place, name, self.expression())

    def primary(self):
        token = self.token
        if token.kind == "number":
            return self.number("a number")
        if token.kind == "string":
            raise beyond_subset(token.place, "a string")
        if self.accept("("):
            inner = self.expression()
            self.expect(")", "behind an expression")
            return inner
        if self.accept("{"):
            return self.list_of(token)
        if self.accept("true", "false"):
            return s.Boolean(token.place, token.text == "true")
        if self.is_at("error") or (token.kind == "name" and token.text in self.type_names):
            return self.type_member()
        if self.is_at("this"):
            raise beyond_subset(token.place, "this")
        if self.is_at("."):
            raise beyond_subset(token.place, "a name that begins with a dot")
        if token.kind != "name":
            raise P4Error(token.place, f"expected an expression, not {self.said()}")
        return s.Name(token.place, self.name("a value").text)

    def list_of(self, token):
        if self.token.kind == "name" and self.ahead().text == "=":
            raise beyond_subset(self.token.place, "a list with names")
        return s.ListOf(token.place, self.separated(self.expression, "}"))

    def type_member(self):
        token = self.next()
        if self.is_at("(") and token.text != "error":  # a constructor, of main's arguments
            return s.Call(token.place, s.Name(token.place, token.text), [], self.arguments())
        if not self.accept("."):
            raise P4Error(token.place, f"{token.text} is a type, not a value")
        return s.TypeMember(token.place, token.text, self.name("a member").text)

    # Sets of values.

    def keysets(self):
        """The sets of a case: one, or several in brackets."""
        if self.is_at("(") and not self.at_cast():
            start = self.position
            self.next()
            sets = [self.keyset()]
            while self.accept(","):
                sets.append(self.keyset())
            self.expect(")", "behind sets of values")
            if self.is_at(":"):
                return sets
            self.position = start  # the bracket was the first of an expression
        return [self.keyset()]

    def keyset(self):
        token = self.token
        if self.accept("_", "default"):
            return s.AnyValue(token.place)
        value = self.expression()
        if mark := self.accept("&&&"):
            return s.MaskedValue(mark.place, value, self.expression())
        if mark := self.accept(".."):
            return s.RangeOfValues(mark.place, value, self.expression())
        return value
