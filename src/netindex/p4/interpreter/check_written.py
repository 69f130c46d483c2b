"""Warns of variables that are read before anything was written to them, where that can be seen: those of a block, and
parameters with the direction out. It is seen by what is written on all ways to a statement.
"""

from . import syntax as s
from .p4types import is_scalar


def check_written(statements, parameters, warn):
    """Of statements that are a body; `parameters` are those of the body."""
    outs = {each for each in parameters if each.direction == "out" and is_scalar(each.type)}
    check = WrittenCheck(outs, warn)
    written = check.block(statements, set())
    for parameter in outs - written if written is not None else ():
        warn(parameter.at, f"{parameter.name} may not have been written when its block ends")


class WrittenCheck:
    """Each function takes the variables that are written before a statement, and returns those that are behind it;
    None: nothing comes behind it."""

    def __init__(self, tracked, warn):
        self.tracked = set(tracked)
        self.warn = warn

    def block(self, statements, written):
        for statement in statements:
            if written is None:
                return None
            written = self.statement(statement, written)
        return written

    def statement(self, node, written):
        if isinstance(node, s.Block):
            return self.block(node.statements, written)
        if isinstance(node, (s.Return, s.Exit)):
            return None
        if isinstance(node, s.Variable):
            return self.variable(node, written)
        if isinstance(node, s.Assignment):
            self.read(node.value, written)
            return self.write(node.target, written)
        if isinstance(node, s.CallStatement):
            return self.call(node.call, written)
        if isinstance(node, s.If):
            self.read(node.condition, written)
            return both(self.statement(node.then, written),
                        self.statement(node.otherwise, written) if node.otherwise else written)
        if isinstance(node, s.Switch):
            return self.switch(node, written)
        return written

    def variable(self, node, written):
        if is_scalar(node.type):
            self.tracked.add(node)
        if node.value is None:
            return written - {node}
        self.read(node.value, written)
        return written | {node}

    def switch(self, node, written):
        bodies = [case.body for case in node.cases if case.body is not None]
        found = [self.statement(body, written) for body in bodies]
        if all(case.label is not None for case in node.cases):
            found.append(written)
        merged = None
        for each in found:
            merged = both(merged, each)
        return merged

    def write(self, node, written):
        if isinstance(node, s.Name):
            return written | {node.declaration}
        if isinstance(node, s.Slice):
            self.read(node.base, written)
        return written

    def call(self, node, written):
        parameters = getattr(node.callee[-1], "parameters", ())
        if node.callee[0] == "control":
            parameters = node.callee[1].type.declaration.parameters
        elif node.callee[0] == "method":
            parameters = node.callee[1].parameters
        directions = [each[0] if isinstance(each, tuple) else each.direction for each in parameters]
        after = written
        for direction, value in zip(directions, node.values):
            if direction != "out":
                self.read(value, written)
            if direction in ("out", "inout"):
                after = self.write(value, after)
        return after

    def read(self, node, written):
        if isinstance(node, s.Name) and node.declaration in self.tracked - written:
            self.warn(node.at, f"{node.name} may be read before it is written")
        for part in s.parts_of(node):
            self.read(part, written)


def both(a, b):
    """What is written behind two ways, of which one is gone."""
    if a is None or b is None:
        return a if b is None else b
    return a & b
