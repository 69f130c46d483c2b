"""Tokens -> syntax: statements, and declarations inside of parsers and controls."""

from . import syntax as s
from .parse_expressions import ExpressionParser
from .source import P4Error, beyond_subset


class StatementParser(ExpressionParser):
    def block(self):
        place = self.expect("{", "before statements").place
        self.deeper(place)
        statements = []
        while not self.is_at("}"):
            if self.token.kind == "end":
                raise P4Error(place, "the block has no end")
            statements.append(self.statement())
        self.next()
        self.depth -= 1
        return s.Block(place, statements)

    def statement(self):
        token = self.token
        if token.kind == "name" and token.text in ("for", "break", "continue", "while"):
            raise beyond_subset(token.place, token.text)
        if self.is_at("@"):
            raise beyond_subset(token.place, "an annotation here")
        if self.is_at("if"):
            return self.if_statement()
        if self.is_at("switch"):
            return self.switch_statement()
        if self.is_at("{"):
            return self.block()
        if self.accept("exit"):
            return self.ended(s.Exit(token.place))
        if self.accept("return"):
            if not self.is_at(";"):
                raise beyond_subset(self.token.place, "a value that is returned")
            return self.ended(s.Return(token.place))
        return self.simple_statement()

    def simple_statement(self):
        """What a parser's states may have, too."""
        token = self.token
        if self.accept(";"):
            return s.Empty(token.place)
        if self.is_at("const"):
            return self.constant()
        if self.at_type() and self.ahead().text != ".":
            return self.variable_or_instance(False)
        return self.assignment_or_call()

    def ended(self, node):
        self.expect(";", "behind a statement")
        return node

    def if_statement(self):
        place = self.next().place
        self.deeper(place)
        self.expect("(", "behind if")
        condition = self.expression()
        self.expect(")", "behind the condition")
        then = self.statement()
        otherwise = self.statement() if self.accept("else") else None
        self.depth -= 1
        for branch in (then, otherwise):
            if isinstance(branch, (s.Variable, s.Constant)):
                raise P4Error(branch.at, "a declaration is no statement: it needs a block around it")
        return s.If(place, condition, then, otherwise)

    def switch_statement(self):
        place = self.next().place
        self.expect("(", "behind switch")
        value = self.expression()
        self.expect(")", "behind the value of a switch")
        self.expect("{", "before cases")
        cases = []
        while not self.accept("}"):
            token = self.token
            label = None if self.accept("default") else self.name("an action").text
            self.expect(":", "behind a case")
            cases.append(s.SwitchCase(token.place, label, self.block() if self.is_at("{") else None))
        return s.Switch(place, value, cases)

    def assignment_or_call(self):
        place = self.token.place
        left = self.postfix()
        if self.accept("="):
            return self.ended(s.Assignment(place, left, self.expression()))
        if not isinstance(left, s.Call):
            raise P4Error(self.token.place, f"expected '=' or a call, not {self.said()}")
        return self.ended(s.CallStatement(place, left))

    # Declarations.

    def constant(self):
        place = self.expect("const", "before a constant").place
        type_ref = self.type_ref()
        name = self.name("a constant").text
        self.expect("=", "before the value of a constant")
        return self.ended(s.Constant(place, name, type_ref, self.expression()))

    def variable_or_instance(self, takes_instances):
        place = self.token.place
        type_ref = self.type_ref()
        if self.is_at("("):
            if not takes_instances:
                raise P4Error(place, "an object is made in a parser's or control's declarations, not here")
            arguments = self.arguments()
            name = self.name("an object").text
            return self.ended(s.Instantiation(place, name, type_ref, arguments))
        name = self.name("a variable").text
        value = self.expression() if self.accept("=") else None
        return self.ended(s.Variable(place, name, type_ref, value))

    def parameters(self):
        self.expect("(", "before parameters")
        return self.separated(self.parameter, ")")

    def parameter(self):
        place = self.token.place
        direction = self.accept("in", "out", "inout")
        type_ref = self.type_ref()
        name = self.name("a parameter").text
        if self.is_at("="):
            raise beyond_subset(self.token.place, "a parameter with a default")
        return s.Parameter(place, name, direction.text if direction else "", type_ref)

    def action(self):
        place = self.next().place
        name = self.name("an action").text
        return s.Action(place, name, self.parameters(), self.block())

    # Tables.

    def table(self):
        place = self.next().place
        name = self.name("a table").text
        self.expect("{", "before a table's properties")
        properties = []
        while not self.accept("}"):
            if self.is_at("@"):
                raise beyond_subset(self.token.place, "an annotation here")
            properties.append(self.table_property())
        return s.Table(place, name, properties)

    def table_property(self):
        place = self.token.place
        is_const = self.accept("const") is not None
        name = self.name("a property").text
        self.expect("=", "behind the name of a property")
        lists = {"key": self.key, "actions": self.action_of_list, "entries": self.entry}
        if name in lists:
            value = self.braced(lists[name])
        else:
            value = self.action_ref() if name == "default_action" else self.expression()
            self.expect(";", "behind a property")
        return s.Property(place, name, is_const, value)

    def braced(self, element):
        self.expect("{", "before a list of a table")
        if self.is_at("}"):
            raise beyond_subset(self.token.place, "an empty list of a table")
        found = []
        while not self.accept("}"):
            found.append(element())
        return found

    def key(self):
        place = self.token.place
        expression = self.expression()
        self.expect(":", "before a key's kind of match")
        kind = self.name("a kind of match").text
        name = self.name_annotation() if self.is_at("@") else None
        return self.ended(s.Key(place, expression, kind, name))

    def name_annotation(self):
        place = self.next().place
        word = self.name("an annotation").text
        if word != "name":
            raise beyond_subset(place, f"the annotation @{word}")
        self.expect("(", "behind @name")
        token = self.token
        if token.kind != "string":
            raise P4Error(token.place, f"expected a string, not {self.said()}")
        self.next()
        self.expect(")", "behind a name")
        return token.text[1:-1]

    def action_of_list(self):
        return self.ended(self.action_ref())

    def action_ref(self):
        place = self.token.place
        name = self.name("an action").text
        return s.ActionRef(place, name, self.arguments() if self.is_at("(") else None)

    def entry(self):
        place = self.token.place
        keys = self.keysets()
        self.expect(":", "before an entry's action")
        return self.ended(s.Entry(place, keys, self.action_ref()))
