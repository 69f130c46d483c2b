"""Tokens -> syntax: a whole program."""

from . import syntax as s
from .lexer import tokens
from .parse_statements import StatementParser
from .source import P4Error, beyond_subset
from .v1model import TYPE_NAMES

NOT_TAKEN = ("extern", "package", "match_kind", "header_union", "valueset", "abstract", "void", "type")


class ProgramParser(StatementParser):
    def program(self):
        declarations = []
        while self.token.kind != "end":
            if not self.accept(";"):
                declarations.append(self.declaration())
        return declarations

    def declaration(self):
        token = self.token
        if self.is_at("@"):
            raise beyond_subset(token.place, "an annotation here")
        if self.is_at(*NOT_TAKEN):
            raise beyond_subset(token.place, f"a declaration of {token.text}")
        known = {"const": self.constant, "typedef": self.typedef, "header": self.structure,
                 "struct": self.structure, "enum": self.enum, "error": self.errors, "parser": self.parser,
                 "control": self.control, "action": self.action}
        if token.kind == "name" and token.text in known:
            return known[token.text]()
        if self.at_type():
            return self.instance()
        raise P4Error(token.place, f"expected a declaration, not {self.said()}")

    def instance(self):
        place = self.token.place
        found = self.variable_or_instance(True)
        if isinstance(found, s.Variable):
            raise P4Error(place, "a variable is declared in a parser or control, not here")
        return found

    def declare_type(self, name):
        self.type_names.add(name)
        return name

    def typedef(self):
        place = self.next().place
        if self.is_at("header", "struct", "enum"):
            raise beyond_subset(place, "a typedef of a declaration")
        type_ref = self.type_ref()
        return self.ended(s.Typedef(place, self.declare_type(self.type_name()), type_ref))

    def type_name(self):
        return self.name("a type").text

    def structure(self):
        word = self.next()
        name = self.type_name()
        if self.is_at("<"):
            raise beyond_subset(self.token.place, "a type with parameters")
        self.expect("{", "before fields")
        fields = []
        while not self.accept("}"):
            place = self.token.place
            if self.is_at("@"):
                raise beyond_subset(place, "an annotation here")
            type_ref = self.type_ref()
            fields.append(self.ended(s.Field(place, self.name("a field").text, type_ref)))
        return s.Structure(word.place, self.declare_type(name), word.text == "header", fields)

    def enum(self):
        place = self.next().place
        if self.at_type() and self.ahead().text != "{":
            raise beyond_subset(place, "an enum with a type")
        name = self.declare_type(self.type_name())
        return s.EnumDeclaration(place, name, self.names("a member"))

    def errors(self):
        place = self.next().place
        return s.Errors(place, self.names("an error"))

    def names(self, what):
        self.expect("{", "before names")
        return [s.Name(token.place, token.text) for token in [self.name(what), *self.more_names(what)]]

    def more_names(self, what):
        found = []
        while self.accept(","):
            found.append(self.name(what))
        self.expect("}", "or a comma")
        return found

    def parser(self):
        place = self.next().place
        name = self.declare_type(self.type_name())
        parameters = self.parameters()
        self.refuse_without_body("parser")
        self.next()
        local = []
        while self.is_at("const") or self.at_type():
            local.append(self.constant() if self.is_at("const") else self.variable_or_instance(True))
        states = []
        while not self.accept("}"):
            states.append(self.state())
        return s.Parser(place, name, parameters, local, states)

    def refuse_without_body(self, what):
        if self.is_at(";"):
            raise beyond_subset(self.token.place, f"a type of {what}")
        if self.is_at("("):
            raise beyond_subset(self.token.place, f"a {what} with parameters of its constructor")
        if not self.is_at("{"):
            raise P4Error(self.token.place, f"expected '{{' before the body of a {what}, not {self.said()}")

    def state(self):
        place = self.expect("state", "in a parser").place
        name = self.name("a state").text
        self.expect("{", "before a state's statements")
        statements = []
        transition = None
        while not self.is_at("}", "transition"):
            if self.is_at("if", "{", "switch", "exit", "return"):
                raise beyond_subset(self.token.place, f"{self.token.text!r} in a parser")
            statements.append(self.simple_statement())
        if self.is_at("transition"):
            transition = self.transition()
        self.expect("}", "behind a state's transition")
        return s.State(place, name, statements, transition)

    def transition(self):
        place = self.next().place
        if not self.accept("select"):
            return self.ended(s.Transition(place, self.name("a state").text))
        self.expect("(", "behind select")
        values = [self.expression()]
        while self.accept(","):
            values.append(self.expression())
        self.expect(")", "behind the values of select")
        self.expect("{", "before cases")
        cases = []
        if self.is_at("}"):
            raise beyond_subset(self.token.place, "a select without cases")
        while not self.accept("}"):
            at = self.token.place
            keys = self.keysets()
            self.expect(":", "behind a case")
            cases.append(self.ended(s.SelectCase(at, keys, self.name("a state").text)))
        return s.Select(place, values, cases)

    def control(self):
        place = self.next().place
        name = self.declare_type(self.type_name())
        parameters = self.parameters()
        self.refuse_without_body("control")
        self.next()
        local = []
        known = {"const": self.constant, "action": self.action, "table": self.table}
        while not self.is_at("apply"):
            if self.token.kind == "name" and self.token.text in known:
                local.append(known[self.token.text]())
            elif self.at_type():
                local.append(self.variable_or_instance(True))
            else:
                raise P4Error(self.token.place, f"expected a declaration or 'apply', not {self.said()}")
        self.next()
        body = self.block()
        self.expect("}", "behind a control's apply block")
        return s.Control(place, name, parameters, local, body)


def parse(text, file, read):
    """(the declarations of a program, the names of the files <..> that it includes)"""
    found, includes = tokens(text, file, read)
    names = {name for include in includes for name in TYPE_NAMES[include]}
    return ProgramParser(found, names).program(), includes
