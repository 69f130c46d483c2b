"""What the tests of the interpreter share: a small program with gaps."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from interpreter.check import check, check_file  # noqa: E402
from interpreter.runtime import load  # noqa: E402
from interpreter.switch import Switch  # noqa: E402

FAT_BTREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fat_btree.p4")

PROGRAM = """\
#include <core.p4>
#include <v1model.p4>
{top}
header head_t {{ bit<8> a; bit<8> b; bit<16> c; bit<32> d; }}
header tail_t {{ bit<16> x; bit<16> y; }}
{types}
struct headers_t {{ head_t head; tail_t tail; {headers} }}
struct metadata_t {{ bit<8> m; bit<32> n; bool flag; {metadata} }}
parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {{
{parser_locals}
{states}
}}
control Verify(inout headers_t hdr, inout metadata_t meta) {{ apply {{ {verify} }} }}
{before}
control Ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {{
    action drop() {{ mark_to_drop(standard); }}
    action send(bit<9> port) {{ standard.egress_spec = port; }}
    action set_d(bit<32> value) {{ hdr.head.d = value; }}
{locals}
    apply {{
{apply}
    }}
}}
control Egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {{
    apply {{ {egress} }}
}}
control Compute(inout headers_t hdr, inout metadata_t meta) {{ apply {{ {compute} }} }}
control Deparser(packet_out packet, in headers_t hdr) {{ apply {{ {deparser} }} }}
{main}
"""

GAPS = {
    "top": "", "types": "", "headers": "", "metadata": "", "parser_locals": "", "verify": "", "before": "",
    "locals": "", "apply": "", "egress": "", "compute": "", "deparser": "packet.emit(hdr);",
    "states": "    state start { packet.extract(hdr.head); transition accept; }",
    "main": "V1Switch(TheParser(), Verify(), Ingress(), Egress(), Compute(), Deparser()) main;",
}


def text_of(**gaps):
    assert not gaps.keys() - GAPS.keys(), gaps.keys() - GAPS.keys()
    return PROGRAM.format(**{**GAPS, **gaps})


def program_of(**gaps):
    return check(text_of(**gaps), "test.p4")


def switch_of(config=None, **gaps):
    switch = Switch(program_of(**gaps))
    load(switch, config or {})
    return switch


def head(a=0, b=0, c=0, d=0):
    """The bytes of a head_t."""
    return a.to_bytes(1, "big") + b.to_bytes(1, "big") + c.to_bytes(2, "big") + d.to_bytes(4, "big")


def d_after(apply, a=0, b=0, c=0, d=0, **gaps):
    """The field d of a packet when the ingress has run these statements."""
    _, packet = switch_of(apply=apply, **gaps).process(head(a, b, c, d))
    return int.from_bytes(packet[4:8], "big")
