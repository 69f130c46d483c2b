"""The pipeline of v1model, packet in, packet out (V1Switch): parser, verify, ingress, egress, compute, deparser.

A parser that rejects leaves its error in standard_metadata.parser_error, and the packet goes on to ingress; what it
had extracted stays valid. A packet whose egress_spec is DROP_PORT after ingress or egress is dropped.
"""

from . import syntax as s
from .evaluate import Evaluator, Exited, Frame, Instance
from .v1model import DROP_PORT, STANDARD_METADATA
from .values import PacketReader, Reject, undefined, zero

STATES_MAX = 1000  # that a packet may come through; then the error is ParserTimeout


class Switch(Evaluator):
    def __init__(self, program):
        super().__init__()
        self.program = program
        self.instances = {kind: Instance(block, block.name) for kind, block in program.blocks.items()
                          if kind != "parser"}

    def instances_by_name(self):
        """All controls, also those in others, as entries name them."""
        return {inner.name: inner for each in self.instances.values() for inner in each.all()}

    def process(self, packet, port=0):
        """(port, bytes) that the packet leaves with, or None: it is dropped."""
        headers, metadata, standard, reader = self.parse(packet, port)
        payload = reader.rest()
        headers, metadata = self.run_block("verify", [headers, metadata], packet, payload, standard)
        headers, metadata, standard = self.run_block("ingress", [headers, metadata, standard], packet)
        if standard.fields["egress_spec"] == DROP_PORT:
            return None
        standard.fields["egress_port"] = standard.fields["egress_spec"]
        headers, metadata, standard = self.run_block("egress", [headers, metadata, standard], packet)
        if standard.fields["egress_spec"] == DROP_PORT:
            return None
        headers, metadata = self.run_block("compute", [headers, metadata], packet, payload)
        emitted, _ = self.run_block("deparser", [[], headers], packet)
        return standard.fields["egress_port"], b"".join(emitted) + payload

    def parse(self, packet, port):
        parser = self.program.blocks["parser"]
        reader = PacketReader(packet)
        standard = zero(STANDARD_METADATA)
        standard.fields.update(ingress_port=port, packet_length=len(packet))
        arguments = [reader, undefined(self.program.headers), zero(self.program.metadata), standard]
        frame = Frame(Instance(parser, parser.name), len(packet))
        frame.values.update(zip(parser.parameters, arguments))
        rejected = None
        try:
            for local in parser.locals:
                self.run(local, frame)
            self.run_states(parser, frame)
        except Reject as problem:
            rejected = problem.error
        _, headers, metadata, standard = (frame.values[parameter] for parameter in parser.parameters)
        if rejected is not None:
            standard.fields["parser_error"] = rejected
        return headers, metadata, standard, reader

    def run_states(self, parser, frame):
        name = "start"
        for _ in range(STATES_MAX):
            if name == "accept":
                return
            if name == "reject":
                raise Reject("NoError")
            state = parser.states_by_name[name]
            for statement in state.statements:
                self.run(statement, frame)
            name = self.next_state(state, frame)
        raise Reject("ParserTimeout")

    def next_state(self, state, frame):
        transition = state.transition
        if transition is None:
            return "reject"
        if isinstance(transition, s.Transition):
            return transition.state
        values = [self.value(value, frame) for value in transition.values]
        for case in transition.cases:
            if all(contains(keyset, value) for keyset, value in zip(case.keys, values)):
                return case.state
        raise Reject("NoMatch")

    def function_verify(self, node, frame):
        if not self.value(node.values[0], frame):
            raise Reject(self.value(node.values[1], frame))

    def run_block(self, kind, arguments, packet, payload=b"", standard=None):
        """Runs a control. Returns what its parameters are then; `standard` is told of wrong checksums."""
        instance = self.instances[kind]
        frame = Frame(instance, len(packet), payload)
        frame.values.update(zip(instance.control.parameters, arguments))
        try:
            self.run_control(frame)
        except Exited:
            pass
        if frame.checksum_error:
            standard.fields["checksum_error"] = 1
        return [frame.values[parameter] for parameter in instance.control.parameters]


def contains(keyset, value):
    if isinstance(keyset, s.AnyValue):
        return True
    if isinstance(keyset, s.RangeOfValues):
        return keyset.low.constant <= value <= keyset.high.constant
    if isinstance(keyset, s.MaskedValue):
        return value & keyset.mask.constant == keyset.value.constant & keyset.mask.constant
    return keyset.constant == value
