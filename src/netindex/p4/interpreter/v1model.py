"""What core.p4 and v1model.p4 declare, as p4c has them since 2019, with V1MODEL_VERSION not set.

A prototype is a list of (direction, type, name). A type that is a str is a type parameter, or one of:
  "data"    a list {..} of bit<W> and int<W>
  "lvalue header"
"""

from dataclasses import dataclass

from .p4types import BOOL, ERROR, PACKET_IN, PACKET_OUT, VOID, Bits, Enum, Extern, Record

ERRORS = ("NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "ParserTimeout",
          "ParserInvalidArgument")
MATCH_KINDS = {"core.p4": ("exact", "ternary", "lpm"), "v1model.p4": ("range",)}
# Those of v1model.p4 that need an action selector, or that are newer than the subset.
KINDS_NOT_TAKEN = ("selector", "optional")

HASH_ALGORITHM = Enum("HashAlgorithm", ("crc32", "crc32_custom", "crc16", "crc16_custom", "random", "identity",
                                        "csum16", "xor16"))
ALGORITHMS_TAKEN = ("crc32", "csum16")
COUNTER_TYPE = Enum("CounterType", ("packets", "bytes", "packets_and_bytes"))

STANDARD_METADATA = Record("standard_metadata_t", False, {
    "ingress_port": Bits(9), "egress_spec": Bits(9), "egress_port": Bits(9), "instance_type": Bits(32),
    "packet_length": Bits(32), "enq_timestamp": Bits(32), "enq_qdepth": Bits(19), "deq_timedelta": Bits(32),
    "deq_qdepth": Bits(19), "ingress_global_timestamp": Bits(48), "egress_global_timestamp": Bits(48),
    "mcast_grp": Bits(16), "egress_rid": Bits(16), "checksum_error": Bits(1), "parser_error": ERROR,
    "priority": Bits(3)})
DROP_PORT = 511

TYPES = {
    "core.p4": {"packet_in": PACKET_IN, "packet_out": PACKET_OUT},
    "v1model.p4": {"standard_metadata_t": STANDARD_METADATA, "HashAlgorithm": HASH_ALGORITHM,
                   "CounterType": COUNTER_TYPE},
}
# Objects: the parameters of their constructors, and whether they have a type of elements.
EXTERNS = {
    "register": (True, [("", Bits(32), "size")]),
    "counter": (False, [("", Bits(32), "size"), ("", COUNTER_TYPE, "type")]),
    "direct_counter": (False, [("", COUNTER_TYPE, "type")]),
}
EXTERNS_NOT_TAKEN = ("meter", "direct_meter", "action_profile", "action_selector", "Checksum16")
PACKAGE = "V1Switch"
TYPE_NAMES = {"core.p4": tuple(TYPES["core.p4"]),
              "v1model.p4": (*TYPES["v1model.p4"], *EXTERNS, *EXTERNS_NOT_TAKEN, PACKAGE)}


@dataclass(frozen=True)
class Prototype:
    name: str
    type_parameters: tuple
    parameters: tuple
    returns: object = VOID
    where: tuple = ()  # kinds of block that may call it; empty: all


CHECKSUM = (("in", BOOL, "condition"), ("in", "data", "data"), ("inout", "O", "checksum"),
            ("", HASH_ALGORITHM, "algo"))

FUNCTIONS = {
    "core.p4": {
        "verify": Prototype("verify", (), (("in", BOOL, "check"), ("in", ERROR, "toSignal")), VOID, ("parser",)),
    },
    "v1model.p4": {
        "mark_to_drop": Prototype("mark_to_drop", (), (("inout", STANDARD_METADATA, "standard_metadata"),), VOID,
                                  ("ingress", "egress")),
        "hash": Prototype("hash", ("O", "T", "D", "M"),
                          (("out", "O", "result"), ("in", HASH_ALGORITHM, "algo"), ("in", "T", "base"),
                           ("in", "data", "data"), ("in", "M", "max")), VOID, ("ingress", "egress")),
        **{name: Prototype(name, ("T", "O"), CHECKSUM, VOID, (where,))
           for name, where in (("verify_checksum", "verify"), ("verify_checksum_with_payload", "verify"),
                               ("update_checksum", "compute"), ("update_checksum_with_payload", "compute"))},
    },
}
FUNCTIONS_NOT_TAKEN = ("random", "digest", "truncate", "resubmit", "recirculate", "clone", "clone3", "assert",
                       "assume", "log_msg", "resubmit_preserving_field_list", "recirculate_preserving_field_list",
                       "clone_preserving_field_list", "static_assert")


def methods(of):
    """The methods of a value of this type, by name."""
    if of == PACKET_IN:
        return {"extract": Prototype("extract", ("T",), (("out", "lvalue header", "hdr"),)),
                "lookahead": Prototype("lookahead", ("T",), (), "T"),
                "advance": Prototype("advance", (), (("in", Bits(32), "sizeInBits"),)),
                "length": Prototype("length", (), (), Bits(32))}
    if of == PACKET_OUT:
        return {"emit": Prototype("emit", ("T",), (("in", "emitted", "hdr"),))}
    if isinstance(of, Extern):
        return extern_methods(of)
    return {}


def extern_methods(of):
    index = ("in", Bits(32), "index")
    if of.name == "register":
        return {"read": Prototype("read", (), (("out", of.element, "result"), index)),
                "write": Prototype("write", (), (index, ("in", of.element, "value")))}
    return {"count": Prototype("count", (), (index,))}


# The blocks of V1Switch: their kind here, and their parameters. H and M are the program's.
BLOCKS = (
    ("parser", (("", PACKET_IN), ("out", "H"), ("inout", "M"), ("inout", STANDARD_METADATA))),
    ("verify", (("inout", "H"), ("inout", "M"))),
    ("ingress", (("inout", "H"), ("inout", "M"), ("inout", STANDARD_METADATA))),
    ("egress", (("inout", "H"), ("inout", "M"), ("inout", STANDARD_METADATA))),
    ("compute", (("inout", "H"), ("inout", "M"))),
    ("deparser", (("", PACKET_OUT), ("in", "H"))),
)
