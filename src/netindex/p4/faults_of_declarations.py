"""Programs that are refused, because of objects, tables, parsers, controls, or main: a name -> (what is put into the
gaps of p4_testing.PROGRAM, what the message says). The line with the fault ends in `//!`."""

from faults_of_expressions import apply, local, table, top
from p4_testing import GAPS

FAULTS = {
    # Objects.
    "an object in a block": apply("register<bit<8>>(4) r;", "not here"),
    "a register of bools": local("register<bool>(4) r;", "elements bit<W>, not bool"),
    "a register without a type": local("register(4) r;", "register has 1 type parameter"),
    "a counter with a type":
        local("counter<bit<8>>(4, CounterType.packets) c;", "counter has no type parameters"),
    "a register of no elements": local("register<bit<8>>(0) r;", "of no elements"),
    "a register without a size": local("register<bit<8>>() r;", "has 1 parameters, not 0"),
    "a register of variable size": local("register<bit<8>>(meta.n) r;", "is not constant"),
    "a register that is read wrongly":
        ({"locals": "register<bit<8>>(4) r;", "apply": "r.read(meta.n, 0); //!"},
         "result is bit<8>, and bit<32>"),
    "an element that is written with another type":
        ({"locals": "register<bit<8>>(4) r;", "apply": "r.write(0, meta.n); //!"}, "is bit<32>, not bit<8>"),
    "a meter": local("meter(4, MeterType.packets) m;", "meter is not in the subset"),
    "a header as an object": local("head_t() h;", "is not the type of an object"),
    "an object outside of controls": top("register<bit<8>>(4) r;", "not in the subset"),
    "a variable outside of controls": top("bit<8> x;", "not here"),
    # Tables.
    "a table without actions":
        ({"locals": "table t { key = { meta.m : exact; } } //!"}, "has no property actions"),
    "an unknown property": table("actions = { drop; }\ncolour = 3; //!", "property colour is not in the subset"),
    "a property that is not taken":
        table("actions = { drop; }\nimplementation = 3; //!", "not in the subset"),
    "a property twice": table("actions = { drop; }\nsize = 3;\nsize = 4; //!", "two properties size"),
    "an unknown kind of match":
        table("key = { meta.m : fuzzy; } //!\nactions = { drop; }", "no kind of match fuzzy"),
    "a kind of match that is not taken":
        table("key = { meta.m : optional; } //!\nactions = { drop; }", "not in the subset"),
    "two keys of the kind lpm":
        ({"locals": "table t { //!\nkey = { meta.m : lpm; meta.n : lpm; }\nactions = { drop; }\n}"},
         "more than one key of the kind lpm"),
    "a header as a key": table("key = { hdr.head : exact; } //!\nactions = { drop; }", "no type of a key"),
    "a number as a key":
        table("key = { 5 : exact @name(\"x\"); } //!\nactions = { drop; }", "no type of a key"),
    "a bool as a range":
        table("key = { meta.flag : range; } //!\nactions = { drop; }",
              "a key bool of the kind range is not in the subset"),
    "a key that needs a name":
        table("key = { meta.m + 1 : exact; } //!\nactions = { drop; }", "needs a name"),
    "a key twice":
        table("key = { meta.m : exact;\nmeta.m : range; } //!\nactions = { drop; }",
              "a second key meta.m is not in the subset"),
    "an action that is not there": table("actions = { vanish; } //!", "no declaration of vanish"),
    "an action that is a variable": table("actions = { meta; } //!", "meta is no action"),
    "an action twice in a table": table("actions = { drop;\ndrop; } //!", "has the action drop twice"),
    "an action whose parameter has a direction":
        ({"locals": "action x(in bit<8> p) { }\ntable t {\nactions = { x; } //!\n}"}, "has a direction"),
    "a default that is not among the actions":
        table("actions = { drop; }\ndefault_action = send(1); //!", "not among the actions"),
    "a default without its arguments":
        table("actions = { send; }\ndefault_action = send(); //!", "send has 1 parameters, not 0"),
    "a default with a variable":
        table("actions = { set_d; }\ndefault_action = set_d(meta.n); //!", "is not constant"),
    "a default that is too wide":
        table("actions = { send; }\ndefault_action = send(16w3); //!", "is bit<16>, not bit<9>"),
    "a size of zero": table("actions = { drop; }\nsize = 0; //!", "not in the subset"),
    "a size that varies": table("actions = { drop; }\nsize = meta.m; //!", "constant number"),
    "an entry with too few keys":
        table("key = { meta.m : exact; meta.n : exact; }\nactions = { drop; }\nconst entries = {\n"
              "5 : drop(); //!\n}",
              "the entry has 1 sets of values, the table 2 keys"),
    "an entry with an action of another table":
        table("key = { meta.m : exact; }\nactions = { drop; }\nconst entries = {\n5 : send(1); //!\n}",
              "not among the actions"),
    "an entry with a mask for an exact key":
        table("key = { meta.m : exact; }\nactions = { drop; }\nconst entries = {\n5 &&& 7 : drop(); //!\n}",
              "takes no such set"),
    "an entry with a range for a ternary key":
        table("key = { meta.m : ternary; }\nactions = { drop; }\nconst entries = {\n5 .. 7 : drop(); //!\n}",
              "takes no such set"),
    "an entry without a value for an exact key":
        table("key = { meta.m : exact; }\nactions = { drop; }\nconst entries = {\n_ : drop(); //!\n}",
              "needs a value"),
    "an empty range":
        table("key = { meta.m : range; }\nactions = { drop; }\nconst entries = {\n7 .. 5 : drop(); //!\n}",
              "is empty"),
    "a mask that is no prefix":
        table("key = { meta.m : lpm; }\nactions = { drop; }\nconst entries = {\n5 &&& 5 : drop(); //!\n}",
              "is a prefix"),
    "an entry of another type":
        table("key = { meta.m : exact; }\nactions = { drop; }\nconst entries = {\ntrue : drop(); //!\n}",
              "is bool, not bit<8>"),
    "an entry that varies":
        table("key = { meta.m : exact; }\nactions = { drop; }\nconst entries = {\nmeta.m : drop(); //!\n}",
              "is not constant"),
    "more entries than the table has":
        table("key = { meta.m : exact; }\nactions = { drop; }\nsize = 1;\nconst entries = { //!\n"
              "5 : drop(); 6 : drop();\n}",
              "2 entries in a table of the size 1 is not in the subset"),
    "entries without a key":
        table("actions = { drop; }\nconst entries = { //!\n5 : drop();\n}", "without a key has no entries"),
    "counters that are none":
        ({"locals": "register<bit<8>>(4) r;\ntable t {\nactions = { drop; }\ncounters = r; //!\n}"},
         "are a direct_counter"),
    "a counter of two tables":
        ({"locals": "direct_counter(CounterType.packets) c;\n"
         "table t { actions = { drop; } counters = c; }\ntable u {\nactions = { drop; }\n"
         "counters = c; //!\n}"},
         "already counts for another table"),
    "a table that is applied in an action":
        ({"locals": "table t { actions = { drop; } }\naction x() {\nt.apply(); //!\n}"},
         "cannot be applied in an action"),
    "a table that is applied twice":
        ({"locals": "table t { actions = { drop; } }", "apply": "t.apply();\nt.apply(); //!"},
         "applied twice"),
    "a table with arguments":
        ({"locals": "table t { actions = { drop; } }", "apply": "t.apply(1); //!"},
         "apply has no parameters"),
    "a member that apply() does not have":
        ({"locals": "table t { actions = { drop; } }", "apply": "if (t.apply().found) { } //!"},
         "has no member found"),
    "the result of apply() as a value":
        ({"locals": "table t { actions = { drop; } }", "apply": "if (t.apply()) { } //!"}, "is not a value"),
    "action_run as a value":
        ({"locals": "table t { actions = { drop; } }", "apply": "if (t.apply().action_run == drop) { } //!"},
         "is not a value"),
    "an error as a key":
        table("key = { standard.parser_error : exact; } //!\nactions = { drop; }", "not in the subset"),
    "a kind of match that is hidden":
        ({"locals": "bit<8> range = 1;\ntable t {\nkey = { meta.m : range; } //!\nactions = { drop; }\n}"},
         "the kind of match range is hidden"),
    "a default action without brackets":
        table("actions = { drop; }\ndefault_action = drop; //!", "not in the subset"),
    "a direct_counter of no table": local("direct_counter(CounterType.packets) c;", "not in the subset"),
    "a call of a direct_counter":
        ({"locals": "direct_counter(CounterType.packets) c;\naction x() { c.count(); } //!\n"
                    "table t { actions = { x; } counters = c; }"}, "not in the subset"),
    "no actions in their list": table("actions = { } //!", "not in the subset"),
    "a select without cases":
        ({"states": "state start {\ntransition select(meta.m) { } //!\n}"}, "not in the subset"),
    "a return in an action": local("action x() { return; }", "not in the subset"),
    "an exit in an action": local("action x() { exit; }", "not in the subset"),
    "a slice of a slice that is written": ({"apply": "meta.n[15:8][3:0] = 1; //!"}, "not in the subset"),
    "a condition in an action":
        local("action x() { if (meta.flag) { meta.m = 1; } }", "a condition in an action"),
    # Switches.
    "a case that is no action of the table":
        ({"locals": "table t { actions = { drop; } }", "apply": "switch (t.apply().action_run) {\n"
         "send: { } //!\n}"},
         "send is no action of the table t"),
    "a case twice":
        ({"locals": "table t { actions = { drop; } }", "apply": "switch (t.apply().action_run) {\n"
         "drop: { }\ndrop: { } //!\n}"},
         "two cases drop"),
    "a default that is not last":
        ({"locals": "table t { actions = { drop; } }", "apply": "switch (t.apply().action_run) {\n"
         "default: { }\ndrop: { } //!\n}"},
         "not the last case"),
    "a last case without a block":
        ({"locals": "table t { actions = { drop; } }", "apply": "switch (t.apply().action_run) {\n"
         "drop: //!\n}"},
         "has no block"),
    "a switch of a number": apply("switch (meta.m) { }", "not in the subset"),
    # Parsers.
    "a parser without start":
        ({"states": "state begin { transition accept; }", "top": ""}, "has no state start"),
    "a state that is not there":
        ({"states": "state start {\ntransition nowhere; //!\n}"}, "there is no state nowhere"),
    "a case that leads nowhere":
        ({"states": "state start { transition select(meta.m) {\n1: nowhere; //!\n} }"},
         "there is no state nowhere"),
    "a state twice":
        ({"states": "state start { transition accept; }\nstate start { transition accept; } //!"},
         "two states start"),
    "a state named accept":
        ({"states": "state start { transition accept; }\nstate accept { } //!"},
         "the state accept is there already"),
    "a statement behind the transition":
        ({"states": "state start { transition accept;\nmeta.m = 1; } //!"}, "expected '}'"),
    "extract of a number":
        ({"states": "state start {\npacket.extract(meta.m); //!\ntransition accept; }"},
         "extract takes a header"),
    "extract of a struct":
        ({"states": "state start {\npacket.extract(meta); //!\ntransition accept; }"},
         "extract takes a header"),
    "extract of another type than is said":
        ({"states": "state start {\npacket.extract<tail_t>(hdr.head); //!\ntransition accept; }"},
         "is not the type that extract is called with"),
    "lookahead without a type":
        ({"states": "state start {\nmeta.m = packet.lookahead(); //!\ntransition accept; }"},
         "lookahead needs a type"),
    "lookahead of a bool":
        ({"states": "state start {\nmeta.flag = packet.lookahead<bool>(); //!\ntransition accept; }"},
         "which has no width"),
    "lookahead of another width":
        ({"states": "state start {\nmeta.m = packet.lookahead<bit<16>>(); //!\ntransition accept; }"},
         "is bit<16>, not bit<8>"),
    "a case of another width":
        ({"states": "state start { transition select(meta.m) {\n16w1: accept; //!\n} }"},
         "is bit<16>, not bit<8>"),
    "a case of another type":
        ({"states": "state start { transition select(meta.m) {\ntrue: accept; //!\n} }"},
         "is bool, not bit<8>"),
    "a case with too many sets":
        ({"states": "state start { transition select(meta.m) {\n(1, 2): accept; //!\n} }"},
         "2 sets of values for 1 values"),
    "a case that varies":
        ({"states": "state start { transition select(meta.m) {\nmeta.m: accept; //!\n} }"},
         "is not constant"),
    "select of a header":
        ({"states": "state start {\ntransition select(hdr.head) { //!\ndefault: accept; } }"},
         "select of head_t is not in the subset"),
    "an action in a parser":
        ({"top": "action x() { }", "states": "state start {\nx(); //!\ntransition accept; }"},
         "cannot be called in a parser"),
    "a condition in a parser":
        ({"states": "state start {\nif (meta.flag) { } //!\ntransition accept; }"}, "not in the subset"),
    "verify of a number":
        ({"states": "state start {\nverify(1, error.NoMatch); //!\ntransition accept; }"},
         "is int, not bool"),
    "verify without an error":
        ({"states": "state start {\nverify(true, 3); //!\ntransition accept; }"}, "is int, not error"),
    "a register in a parser":
        ({"parser_locals": "register<bit<8>>(4) r; //!"}, "not the type of an object here"),
    # Controls and main.
    "a control in itself":
        ({"before": "control S(inout bit<8> x) {\nS() again; //!\napply { } }"}, "no declaration of S"),
    "a control without an object":
        ({"before": "control S(inout bit<8> x) { apply { } }", "apply": "S.apply(meta.m); //!"},
         "S is a type, not an object"),
    "a control that is applied twice":
        ({"before": "control S(inout bit<8> x) { apply { } }", "locals": "S() s;",
         "apply": "s.apply(meta.m);\ns.apply(meta.m); //!"},
         "applied twice"),
    "a control with a wrong argument":
        ({"before": "control S(inout bit<8> x) { apply { } }", "locals": "S() s;",
         "apply": "s.apply(meta.n); //!"},
         "x is bit<8>, and bit<32>"),
    "a control in an action":
        ({"before": "control S(inout bit<8> x) { apply { } }", "locals": "S() s;\naction x() {\n"
         "s.apply(meta.m); //!\n}"},
         "cannot be applied in an action"),
    "a control with a constructor's argument":
        ({"before": "control S(inout bit<8> x) { apply { } }", "locals": "S(1) s; //!"},
         "the constructor of S has no parameters"),
    "a type of control": ({"before": "control S(inout bit<8> x); //!"}, "not in the subset"),
    "no main": ({"top": "", "main": ""}, "the program has no main"),
    "main twice": ({"main": GAPS["main"] + "\n" + GAPS["main"] + " //!"}, "a second declaration of main"),
    "main of something else": ({"main": "register<bit<8>>(1) main; //!"}, "main is a V1Switch"),
    "main with too few blocks":
        ({"main": "V1Switch(TheParser(), Verify()) main; //!"}, "V1Switch takes 6 blocks"),
    "blocks in another order":
        ({"before": "control Short(inout headers_t hdr) { apply { } } //!",
         "main": "V1Switch(TheParser(), Short(), Ingress(), Egress(), Compute(), Deparser()) main;"},
         "needs 2 parameters"),
    "a control as the parser":
        ({"main": "V1Switch(Verify(), Verify(), Ingress(), Egress(), Compute(), Deparser()) main; //!"},
         "Verify as two blocks"),
    "a parameter with another direction":
        ({"before": "control Odd(in headers_t hdr, inout metadata_t meta) { apply { } } //!",
         "main": "V1Switch(TheParser(), Odd(), Ingress(), Egress(), Compute(), Deparser()) main;"},
         "hdr must be inout headers_t"),
    "a parameter of another type":
        ({"before": "control Odd(inout headers_t hdr, inout head_t meta) { apply { } } //!",
         "main": "V1Switch(TheParser(), Odd(), Ingress(), Egress(), Compute(), Deparser()) main;"},
         "meta must be inout metadata_t"),
    "a number among the headers":
        ({"headers": "bit<8> odd;", "deparser": "packet.emit(hdr.head);", "main": GAPS["main"] + " //!"},
         "is no struct of headers: odd is bit<8>"),
    "an annotation that is not taken": top("@atomic const bit<8> x = 1;", "not in the subset"),
    "an extern of its own": top("extern void frob();", "not in the subset"),
}
