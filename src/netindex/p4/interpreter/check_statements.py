"""The rules of statements."""

from . import syntax as s
from .p4types import ACTION_RUN, BOOL, VOID
from .source import P4Error, beyond_subset

# What p4c's back end for v1model takes in the blocks that are no match-action pipeline.
ONLY_CALLS = dict.fromkeys(("verify", "compute", "deparser"), (s.CallStatement, s.Block, s.Empty))


class StatementChecker:
    def check_block(self, block):
        with self.scope():
            for statement in block.statements:
                self.check_statement(statement)

    def check_statement(self, node):
        if self.block in ONLY_CALLS and not isinstance(node, ONLY_CALLS[self.block]):
            raise P4Error(node.at, f"{self.block_name()} has calls only")
        getattr(self, "statement_" + type(node).__name__)(node)

    def statement_Block(self, node):
        self.check_block(node)

    def statement_Empty(self, node):
        pass

    def statement_Variable(self, node):
        node.type = self.resolve_value_type(node.type_ref)
        if node.value is not None:
            self.check_value(node.value)
            self.assignable(node.value, node.type, f"the value of {node.name}")
        self.declare(node)

    def statement_Constant(self, node):
        node.type = self.resolve_constant_type(node.type_ref)
        self.constant_of(node.value, node.type, f"the value of {node.name}")
        self.declare(node)

    def statement_Assignment(self, node):
        if isinstance(node.target, s.Call):
            raise P4Error(node.at, "a call cannot be written to")
        self.check_value(node.target)
        self.check_lvalue(node.target)
        self.check_value(node.value)
        self.assignable(node.value, node.target.type, "what is assigned")

    def statement_CallStatement(self, node):
        found = self.check(node.call)
        if found != VOID and node.call.callee[0] != "table":
            raise beyond_subset(node.at, "a call whose result is not used")
        if self.block in ONLY_CALLS and node.call.callee[0] not in ("function", "method"):
            raise P4Error(node.at, f"{self.block_name()} cannot call this")

    def statement_If(self, node):
        if self.in_action:
            raise beyond_subset(node.at, "a condition in an action")
        if self.check_value(node.condition) != BOOL:
            raise P4Error(node.condition.at, f"the condition is {node.condition.type}, not bool")
        self.check_statement(node.then)
        if node.otherwise is not None:
            self.check_statement(node.otherwise)

    def statement_Return(self, node):
        if self.in_action:
            raise beyond_subset(node.at, "a return in an action")

    def statement_Exit(self, node):
        if self.in_action:
            raise beyond_subset(node.at, "an exit in an action")

    def statement_Switch(self, node):
        if self.in_action:
            raise beyond_subset(node.at, "a switch in an action")
        if self.check(node.value) != ACTION_RUN:
            raise beyond_subset(node.value.at, "a switch of anything but action_run")
        node.table = node.value.base.callee[1]
        seen = set()
        for case in node.cases:
            self.check_case(node, case, seen)
        if node.cases and node.cases[-1].body is None:
            raise P4Error(node.cases[-1].at, "the last case of a switch has no block")

    def check_case(self, node, case, seen):
        if None in seen:
            raise P4Error(case.at, "'default' is not the last case of the switch")
        if case.label in seen:
            raise P4Error(case.at, f"the switch has two cases {case.label}")
        if case.label is not None and case.label not in node.table.actions:
            raise P4Error(case.at, f"{case.label} is no action of the table {node.table.name}")
        seen.add(case.label)
        if case.body is not None:
            self.check_block(case.body)
