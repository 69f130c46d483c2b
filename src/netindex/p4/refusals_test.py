#!/usr/bin/env python3
"""Goal: what a compiler for v1model refuses is refused, with a message that says why, at the line of the fault.
Method: a list of faults. Each is put into a program that is right without it; the line with the fault ends in `//!`."""

import unittest

from p4_testing import GAPS, program_of, text_of
from interpreter.check import check
from interpreter.source import P4Error

STATES = "    state start {{ packet.extract(hdr.head); {} }}"


def apply(text, message):
    return {"apply": text + " //!"}, message


def local(text, message):
    return {"locals": text + " //!"}, message


def top(text, message):
    return {"top": text + " //!"}, message


def table(text, message):
    return {"locals": "table t {\n" + text + "\n}"}, message


FAULTS = {
    # Text.
    "a character that begins no token": top("const bit<8> x = 1 $ 2;", "no token begins with '$'"),
    "a comment without an end": ({"main": "\n/* V1Switch //!"}, "the comment has no end"),
    "a string without an end": top('@name("x', "the string has no end"),
    "a number with a wrong digit": top("const bit<8> x = 0b12;", "is no number"),
    "a number with letters": top("const bit<8> x = 12ab;", "is no number"),
    "a number without digits": top("const bit<8> x = 0x;", "is no number"),
    "a number of another base with a letter": top("const bit<8> x = 0o8;", "is no number"),
    "a keyword as a name": top("const bit<8> table = 1;", "table is a keyword"),
    "a missing semicolon": ({"apply": "meta.m = 1\nmeta.n = 2; //!"}, "expected ';'"),
    "a block without an end": ({"main": "control X(inout headers_t hdr) { apply { //!"}, "the block has no end"),
    "a directive": top("#define X 1", "not in the subset"),
    "an include of something else": top("#include <psa.p4>", "not in the subset"),
    "an include in quotes": top('#include "other.p4"', "not in the subset"),
    "a statement that is none": apply("meta.m;", "expected '=' or a call"),
    "a token that ends nothing": apply("meta.m = 1 );", "expected ';'"),
    "a loop": apply("for (bit<8> i = 0; i < 4; i = i + 1) { }", "for is not in the subset"),
    # Names.
    "an unknown name": apply("meta.m = nothing;", "no declaration of nothing"),
    "an unknown type": apply("nothing_t x;", "expected '=' or a call"),
    "an unknown type of a field": ({"types": "struct s_t {\nnothing_t x; //!\n}"}, "'nothing_t' is not the name of a type"),
    "an unknown field": apply("meta.m = hdr.head.z;", "head_t has no field z"),
    "an unknown header": apply("hdr.nothing.setValid();", "headers_t has no field nothing"),
    "a field of a number": apply("meta.m = meta.m.x;", "bit<8> has no member x"),
    "an unknown method": apply("hdr.head.isThere();", "has no method isThere"),
    "a method of a struct": apply("if (meta.isValid()) { }", "is no header"),
    "an unknown function": apply("frob(meta.m);", "no declaration of frob"),
    "a function of v1model that is not taken": apply("digest(1, meta.m);", "digest is not in the subset"),
    "a variable before its declaration": ({"apply": "meta.m = x; //!\nbit<8> x = 1;"}, "no declaration of x"),
    "a variable outside of its block": ({"apply": "{ bit<8> x = 1; }\nmeta.m = x; //!"}, "no declaration of x"),
    "a variable twice": ({"apply": "bit<8> x;\nbit<8> x; //!"}, "a second declaration of x"),
    "a constant twice": ({"top": "const bit<8> x = 1;\nconst bit<8> x = 2; //!"}, "a second declaration of x"),
    "a type twice": ({"top": "typedef bit<8> x_t;\ntypedef bit<9> x_t; //!"}, "a second declaration of x_t"),
    "a type of v1model again": top("header standard_metadata_t { bit<8> a; }", "which v1model declares"),
    "a function of v1model again": top("const bit<8> verify = 1;", "which v1model declares"),
    "an action of core again": ({"top": "action NoAction() { } //!"}, "which v1model declares"),
    "a field twice": ({"types": "struct s_t { bit<8> a;\nbit<8> a; } //!"}, "s_t has two fields a"),
    "a parameter twice": local("action x(bit<8> p, bit<8> p) { }", "a second declaration of p"),
    "an action twice": local("action drop() { }", "a second declaration of drop"),
    "a member of an enum twice": top("enum e_t { A, A }", "A is declared twice"),
    "an unknown member of an enum": ({"top": "enum e_t { A }", "apply": "if (e_t.A == e_t.B) { } //!"}, "has no member B"),
    "an error twice": top("error { NoMatch }", "NoMatch is declared twice"),
    "an unknown error": apply("if (standard.parser_error == error.Odd) { }", "error has no member Odd"),
    "a type as a value": apply("meta.m = head_t;", "is a type, not a value"),
    "a member of a type that has none": apply("meta.m = head_t.a;", "has no members of its own"),
    "an action as a value": apply("meta.m = drop;", "the action drop is not a value"),
    # Types.
    "different widths in an assignment": apply("meta.m = meta.n;", "what is assigned is bit<32>, not bit<8>"),
    "different widths in a sum": apply("meta.n = meta.n + meta.m;", "'+' of bit<32> and bit<8>"),
    "different widths in a comparison": apply("if (meta.n == meta.m) { }", "which are different types"),
    "different signs": apply("if ((int<8>)meta.m < meta.m) { }", "'<' of int<8> and bit<8>"),
    "a bool as a number": apply("meta.m = meta.flag;", "is bool, not bit<8>"),
    "a number as a bool": apply("meta.flag = 1;", "is int, not bool"),
    "a condition that is no bool": apply("if (meta.m) { }", "the condition is bit<8>, not bool"),
    "a condition that is constant 1": apply("if (1) { }", "the condition is int, not bool"),
    "&& of numbers": apply("if (meta.m && meta.m) { }", "'&&' is not defined on bit<8>"),
    "! of a number": apply("meta.flag = !meta.m;", "'!' is not defined on bit<8>"),
    "~ of a bool": apply("meta.flag = ~meta.flag;", "'~' is not defined on bool"),
    "- of a bool": apply("meta.flag = -meta.flag;", "'-' is not defined on bool"),
    "+ of bools": apply("meta.flag = meta.flag + meta.flag;", "'+' is not defined on bool"),
    "< of bools": apply("meta.flag = meta.flag < meta.flag;", "'<' is not defined on bool"),
    "& of numbers without a width": apply("meta.m = 1 & 3;", "'&' is not defined on int"),
    "~ of a number without a width": apply("meta.m = ~1;", "'~' is not defined on int"),
    "++ of a number without a width": apply("meta.n[15:0] = meta.m ++ 1;", "both need a width"),
    "++ of bools": apply("meta.m = meta.flag ++ meta.flag;", "'++' is not defined on bool"),
    "|+| of numbers without a width": apply("meta.m = 1 |+| 3;", "'|+|' is not defined on int"),
    "a shift by a negative number": apply("meta.m = meta.m << -1;", "a shift by a negative number"),
    "a shift by a signed number": apply("meta.m = meta.m << (int<8>)meta.m;", "'<<' is not defined on bit<8> and int<8>"),
    "a shift of a bool": apply("meta.flag = meta.flag >> 1;", "'>>' is not defined on bool"),
    "a shift of a constant by a variable": apply("meta.n = 1 << meta.m;", "by what is not constant"),
    "a division by zero": apply("meta.m = 4 / 0;", "division by zero"),
    "a remainder of a negative number": apply("meta.m = -4 % 3;", "division of a negative number"),
    "a division of a packet's value": apply("meta.m = meta.m / 2;", "not in the subset"),
    "a slice that is upside down": apply("meta.m = (bit<8>)meta.n[0:7];", "[0:7] is no slice of bit<32>"),
    "a slice beyond the width": apply("meta.m = meta.n[32:25];", "[32:25] is no slice of bit<32>"),
    "a slice with a variable bound": apply("meta.m = (bit<8>)meta.n[meta.m:0];", "must be constant"),
    "a slice of a bool": apply("meta.m[0:0] = meta.flag[0:0];", "a slice of bool"),
    "a slice of a struct": apply("meta.m = meta[7:0];", "a slice of metadata_t"),
    "an index": apply("meta.m = meta.n[3];", "an index is not in the subset"),
    "a cast of width and sign at once": apply("meta.m = (bit<8>)(int<16>)meta.m;", "a cast of bit<8> to int<16>"),
    "a cast of more than one bit to bool": apply("meta.flag = (bool)meta.m;", "a cast of bit<8> to bool"),
    "a cast of a bool to a byte": apply("meta.m = (bit<8>)meta.flag;", "a cast of bool to bit<8>"),
    "a cast of a header": apply("meta.n = (bit<32>)hdr.tail;", "a cast of tail_t to bit<32>"),
    "values of '?' of different types": apply("meta.m = meta.flag ? meta.m : meta.n;", "which are different types"),
    "values of '?' without a width": apply("meta.m = meta.flag ? 1 : 2;", "its values need a width"),
    "a condition of '?' that is no bool": apply("meta.m = meta.m ? meta.m : meta.m;", "not bool"),
    "a header for another": apply("hdr.head = hdr.tail;", "is tail_t, not head_t"),
    "a list as a header": apply("hdr.tail = { 1, 2 };", "not in the subset"),
    "a width of zero": apply("bit<0> x;", "bit<0> has no values"),
    "a width of one with a sign": apply("int<1> x;", "int<1> has no values"),
    "a width beyond the limit": apply("bit<4096> x;", "is more than 2048"),
    "a width that is not constant": apply("bit<(meta.m)> x;", "a width is a constant number"),
    "a variable without a width": apply("int x = 1;", "only constants have that type"),
    "a constant that is not constant": apply("const bit<8> x = meta.m;", "is not constant"),
    "a constant of another type": top("const bool x = 1;", "is int, not bool"),
    "a type with arguments that has none": apply("head_t<bit<8>> x;", "has no type parameters"),
    "varbit": ({"types": "header v_t {\nvarbit<8> x; //!\n}"}, "the type varbit is not in the subset"),
    "a header stack": ({"headers": "\nhead_t[2] more; //!\n"}, "a header stack is not in the subset"),
    "a header of seven bits": ({"types": "\nheader odd_t { bit<7> x; } //!"}, "has 7 bits, no multiple of 8"),
    "a struct in a header": ({"types": "struct s_t { bit<8> a; }\nheader h_t {\ns_t s; //!\n}"}, "not in the subset"),
    "a header in a header": ({"types": "header h_t {\ntail_t t; //!\n}"}, "no type of a header's field"),
    "an error in a header": ({"types": "header h_t {\nerror e; //!\n}"}, "no type of a header's field"),
    "an object as a field": ({"types": "struct s_t {\nregister<bit<8>> r; //!\n}"}, "is not the type of a value"),
    "a packet as a variable": apply("packet_in p;", "is not the type of a value"),
    "a generic header": top("header h_t<T> { T x; }", "a type with parameters"),
    # What can be written.
    "a constant that is written": ({"top": "const bit<8> x = 1;", "apply": "x = 2; //!"}, "cannot be written"),
    "an in parameter that is written": ({"before": "control S(in bit<8> p) { apply {\np = 1; //!\n} }"}, "the direction in"),
    "an action's data that are written": local("action x(bit<8> p) { p = 1; }", "the direction none"),
    "a sum that is written": apply("(meta.m + 1) = 2;", "cannot be written"),
    "a call that is written": apply("hdr.head.isValid() = true;", "cannot be written"),
    "the deparser's headers, written": ({"deparser": "\nhdr.head.a = 1; //!\n"}, "the deparser has calls only"),
    "setValid of an in parameter": ({"before": "control S(in head_t h) { apply {\nh.setValid(); //!\n} }"}, "the direction in"),
    "a slice of a sum that is written": apply("(meta.m + meta.m)[3:0] = 1;", "cannot be written"),
    # Calls.
    "too few arguments": apply("send();", "send has 1 parameters, not 0"),
    "too many arguments": apply("drop(1);", "drop has 0 parameters, not 1"),
    "an argument of another type": apply("send(meta.m);", "is bit<8>, not bit<9>"),
    "an unknown name of an argument": apply("send(p = 1);", "send has no parameter p"),
    "some arguments with names": ({"locals": "action x(bit<8> p, bit<8> q) { }", "apply": "x(p = 1, 2); //!"}, "all arguments of a call have names, or none"),
    "an argument twice": ({"locals": "action x(bit<8> p, bit<8> q) { }", "apply": "x(p = 1, p = 2); //!"}, "p is given twice"),
    "out of what cannot be written": ({"locals": "action x(out bit<8> p) { p = 1; }", "apply": "x(1); //!"}, "cannot be written"),
    "inout of another type": ({"locals": "action x(inout bit<8> p) { p = 1; }", "apply": "x(meta.n); //!"}, "p is bit<8>, and bit<32>"),
    "a direction behind none": local("action x(bit<8> p, in bit<8> q) { }", "without a direction must come last"),
    "a call of a variable": apply("meta.m(1);", "has no method m"),
    "a call of a table": ({"locals": "table t { actions = { drop; } }", "apply": "t(); //!"}, "t cannot be called"),
    "a result that is not there": apply("meta.m = drop();", "is not a value"),
    "type arguments of an action": apply("drop<bit<8>>();", "no type parameters"),
    "a function that belongs into the parser": apply("verify(true, error.NoMatch);", "verify cannot be called in a control"),
    "a checksum outside of its control": apply("update_checksum(true, { hdr.head.a, hdr.head.b }, hdr.head.c, HashAlgorithm.csum16);", "cannot be called in a control"),
    "a checksum in the wrong control": ({"compute": "\nverify_checksum(true, { hdr.head.a, hdr.head.b }, hdr.head.c, HashAlgorithm.csum16); //!\n"}, "cannot be called in"),
    "an assignment among checksums": ({"compute": "\nmeta.m = 1; //!\n"}, "has calls only"),
    "mark_to_drop in the deparser": ({"deparser": "\npacket.emit(hdr.head); hdr.head.setInvalid(); //!\n"}, "the direction in"),
    "a condition in the deparser": ({"deparser": "\nif (hdr.head.isValid()) { packet.emit(hdr.head); } //!\n"}, "has calls only"),
    "emit of a number": ({"deparser": "\npacket.emit(hdr.head.a); //!\n"}, "emit takes a header"),
    "a hash of a bool": apply("hash(meta.n, HashAlgorithm.crc32, 32w0, { meta.flag }, 32w1);", "data are bit<W>"),
    "a hash of a number without a width": apply("hash(meta.n, HashAlgorithm.crc32, 32w0, { 1 }, 32w1);", "a number without a width"),
    "a hash with a base without a width": apply("hash(meta.n, HashAlgorithm.crc32, 0, { meta.m }, 32w1);", "it needs a type bit<W>"),
    "an algorithm that is not taken": apply("hash(meta.n, HashAlgorithm.xor16, 32w0, { meta.n }, 32w1);", "not in the subset"),
    "an algorithm that is unknown": apply("hash(meta.n, HashAlgorithm.md5, 32w0, { meta.n }, 32w1);", "has no member md5"),
    "a checksum of 8 bits": ({"compute": "\nupdate_checksum(true, { hdr.head.a }, hdr.head.c, HashAlgorithm.csum16); //!\n"}, "8 bits of data are not what"),
    "a checksum of another width": ({"compute": "\nupdate_checksum(true, { hdr.head.c }, hdr.head.d, HashAlgorithm.csum16); //!\n"}, "csum16 gives bit<16>"),
    # Objects.
    "an object in a block": apply("register<bit<8>>(4) r;", "not here"),
    "a register of bools": local("register<bool>(4) r;", "elements bit<W>, not bool"),
    "a register without a type": local("register(4) r;", "register has 1 type parameter"),
    "a counter with a type": local("counter<bit<8>>(4, CounterType.packets) c;", "counter has no type parameters"),
    "a register of no elements": local("register<bit<8>>(0) r;", "of no elements"),
    "a register without a size": local("register<bit<8>>() r;", "has 1 parameters, not 0"),
    "a register of variable size": local("register<bit<8>>(meta.n) r;", "is not constant"),
    "a register that is read wrongly": ({"locals": "register<bit<8>>(4) r;", "apply": "r.read(meta.n, 0); //!"}, "result is bit<8>, and bit<32>"),
    "an element that is written with another type": ({"locals": "register<bit<8>>(4) r;", "apply": "r.write(0, meta.n); //!"}, "is bit<32>, not bit<8>"),
    "a meter": local("meter(4, MeterType.packets) m;", "meter is not in the subset"),
    "a header as an object": local("head_t() h;", "is not the type of an object"),
    "an object outside of controls": top("register<bit<8>>(4) r;", "not in the subset"),
    "a variable outside of controls": top("bit<8> x;", "not here"),
    # Tables.
    "a table without actions": ({"locals": "table t { key = { meta.m : exact; } } //!"}, "has no property actions"),
    "an unknown property": table("actions = { drop; }\ncolour = 3; //!", "a table has no property colour"),
    "a property that is not taken": table("actions = { drop; }\nimplementation = 3; //!", "not in the subset"),
    "a property twice": table("actions = { drop; }\nsize = 3;\nsize = 4; //!", "two properties size"),
    "an unknown kind of match": table("key = { meta.m : fuzzy; } //!\nactions = { drop; }", "no kind of match fuzzy"),
    "a kind of match that is not taken": table("key = { meta.m : optional; } //!\nactions = { drop; }", "not in the subset"),
    "two keys of the kind lpm": ({"locals": "table t { //!\nkey = { meta.m : lpm; meta.n : lpm; }\nactions = { drop; }\n}"}, "more than one key of the kind lpm"),
    "a header as a key": table("key = { hdr.head : exact; } //!\nactions = { drop; }", "no type of a key"),
    "a number as a key": table("key = { 5 : exact @name(\"x\"); } //!\nactions = { drop; }", "no type of a key"),
    "a bool as a range": table("key = { meta.flag : range; } //!\nactions = { drop; }", "has a type bit<W>, not bool"),
    "a key that needs a name": table("key = { meta.m + 1 : exact; } //!\nactions = { drop; }", "needs a name"),
    "a key twice": table("key = { meta.m : exact;\nmeta.m : range; } //!\nactions = { drop; }", "two keys of the table are named meta.m"),
    "an action that is not there": table("actions = { vanish; } //!", "no declaration of vanish"),
    "an action that is a variable": table("actions = { meta; } //!", "meta is no action"),
    "an action twice in a table": table("actions = { drop;\ndrop; } //!", "has the action drop twice"),
    "an action whose parameter has a direction": ({"locals": "action x(in bit<8> p) { }\ntable t {\nactions = { x; } //!\n}"}, "has a direction"),
    "a default that is not among the actions": table("actions = { drop; }\ndefault_action = send(1); //!", "not among the actions"),
    "a default without its arguments": table("actions = { send; }\ndefault_action = send; //!", "send has 1 parameters, not 0"),
    "a default with a variable": table("actions = { set_d; }\ndefault_action = set_d(meta.n); //!", "is not constant"),
    "a default that is too wide": table("actions = { send; }\ndefault_action = send(16w3); //!", "is bit<16>, not bit<9>"),
    "a size of zero": table("actions = { drop; }\nsize = 0; //!", "above 0"),
    "a size that varies": table("actions = { drop; }\nsize = meta.m; //!", "constant number"),
    "an entry with too few keys": table("key = { meta.m : exact; meta.n : exact; }\nactions = { drop; }\nconst entries = {\n5 : drop(); //!\n}", "the entry has 1 sets of values, the table 2 keys"),
    "an entry with an action of another table": table("key = { meta.m : exact; }\nactions = { drop; }\nconst entries = {\n5 : send(1); //!\n}", "not among the actions"),
    "an entry with a mask for an exact key": table("key = { meta.m : exact; }\nactions = { drop; }\nconst entries = {\n5 &&& 7 : drop(); //!\n}", "takes no such set"),
    "an entry with a range for a ternary key": table("key = { meta.m : ternary; }\nactions = { drop; }\nconst entries = {\n5 .. 7 : drop(); //!\n}", "takes no such set"),
    "an entry without a value for an exact key": table("key = { meta.m : exact; }\nactions = { drop; }\nconst entries = {\n_ : drop(); //!\n}", "needs a value"),
    "an empty range": table("key = { meta.m : range; }\nactions = { drop; }\nconst entries = {\n7 .. 5 : drop(); //!\n}", "is empty"),
    "a mask that is no prefix": table("key = { meta.m : lpm; }\nactions = { drop; }\nconst entries = {\n5 &&& 5 : drop(); //!\n}", "is a prefix"),
    "an entry of another type": table("key = { meta.m : exact; }\nactions = { drop; }\nconst entries = {\ntrue : drop(); //!\n}", "is bool, not bit<8>"),
    "an entry that varies": table("key = { meta.m : exact; }\nactions = { drop; }\nconst entries = {\nmeta.m : drop(); //!\n}", "is not constant"),
    "more entries than the table has": table("key = { meta.m : exact; }\nactions = { drop; }\nsize = 1;\nconst entries = { //!\n5 : drop(); 6 : drop();\n}", "2 entries in a table of size 1"),
    "entries without a key": table("actions = { drop; }\nconst entries = { //!\n5 : drop();\n}", "without a key has no entries"),
    "counters that are none": ({"locals": "register<bit<8>>(4) r;\ntable t {\nactions = { drop; }\ncounters = r; //!\n}"}, "are a direct_counter"),
    "a counter of two tables": ({"locals": "direct_counter(CounterType.packets) c;\ntable t { actions = { drop; } counters = c; }\ntable u {\nactions = { drop; }\ncounters = c; //!\n}"}, "already counts for another table"),
    "a table that is applied in an action": ({"locals": "table t { actions = { drop; } }\naction x() {\nt.apply(); //!\n}"}, "cannot be applied in an action"),
    "a table that is applied twice": ({"locals": "table t { actions = { drop; } }", "apply": "t.apply();\nt.apply(); //!"}, "applied twice"),
    "a table with arguments": ({"locals": "table t { actions = { drop; } }", "apply": "t.apply(1); //!"}, "apply has no parameters"),
    "a member that apply() does not have": ({"locals": "table t { actions = { drop; } }", "apply": "if (t.apply().found) { } //!"}, "has no member found"),
    "the result of apply() as a value": ({"locals": "table t { actions = { drop; } }", "apply": "if (t.apply()) { } //!"}, "is not a value"),
    "action_run as a value": ({"locals": "table t { actions = { drop; } }", "apply": "if (t.apply().action_run == drop) { } //!"}, "is not a value"),
    "a condition in an action": local("action x() { if (meta.flag) { meta.m = 1; } }", "a condition in an action"),
    # Switches.
    "a case that is no action of the table": ({"locals": "table t { actions = { drop; } }", "apply": "switch (t.apply().action_run) {\nsend: { } //!\n}"}, "send is no action of the table t"),
    "a case twice": ({"locals": "table t { actions = { drop; } }", "apply": "switch (t.apply().action_run) {\ndrop: { }\ndrop: { } //!\n}"}, "two cases drop"),
    "a default that is not last": ({"locals": "table t { actions = { drop; } }", "apply": "switch (t.apply().action_run) {\ndefault: { }\ndrop: { } //!\n}"}, "not the last case"),
    "a last case without a block": ({"locals": "table t { actions = { drop; } }", "apply": "switch (t.apply().action_run) {\ndrop: //!\n}"}, "has no block"),
    "a switch of a number": apply("switch (meta.m) { }", "not in the subset"),
    # Parsers.
    "a parser without start": ({"states": "state begin { transition accept; }", "top": ""}, "has no state start"),
    "a state that is not there": ({"states": "state start {\ntransition nowhere; //!\n}"}, "there is no state nowhere"),
    "a case that leads nowhere": ({"states": "state start { transition select(meta.m) {\n1: nowhere; //!\n} }"}, "there is no state nowhere"),
    "a state twice": ({"states": "state start { transition accept; }\nstate start { transition accept; } //!"}, "two states start"),
    "a state named accept": ({"states": "state start { transition accept; }\nstate accept { } //!"}, "the state accept is there already"),
    "a statement behind the transition": ({"states": "state start { transition accept;\nmeta.m = 1; } //!"}, "expected '}'"),
    "extract of a number": ({"states": "state start {\npacket.extract(meta.m); //!\ntransition accept; }"}, "extract takes a header"),
    "extract of a struct": ({"states": "state start {\npacket.extract(meta); //!\ntransition accept; }"}, "extract takes a header"),
    "extract of another type than is said": ({"states": "state start {\npacket.extract<tail_t>(hdr.head); //!\ntransition accept; }"}, "is not the type that extract is called with"),
    "lookahead without a type": ({"states": "state start {\nmeta.m = packet.lookahead(); //!\ntransition accept; }"}, "lookahead needs a type"),
    "lookahead of a bool": ({"states": "state start {\nmeta.flag = packet.lookahead<bool>(); //!\ntransition accept; }"}, "which has no width"),
    "lookahead of another width": ({"states": "state start {\nmeta.m = packet.lookahead<bit<16>>(); //!\ntransition accept; }"}, "is bit<16>, not bit<8>"),
    "a case of another width": ({"states": "state start { transition select(meta.m) {\n16w1: accept; //!\n} }"}, "is bit<16>, not bit<8>"),
    "a case of another type": ({"states": "state start { transition select(meta.m) {\ntrue: accept; //!\n} }"}, "is bool, not bit<8>"),
    "a case with too many sets": ({"states": "state start { transition select(meta.m) {\n(1, 2): accept; //!\n} }"}, "2 sets of values for 1 values"),
    "a case that varies": ({"states": "state start { transition select(meta.m) {\nmeta.m: accept; //!\n} }"}, "is not constant"),
    "select of a header": ({"states": "state start {\ntransition select(hdr.head) { //!\ndefault: accept; } }"}, "select of head_t"),
    "an action in a parser": ({"top": "action x() { }", "states": "state start {\nx(); //!\ntransition accept; }"}, "cannot be called in a parser"),
    "a condition in a parser": ({"states": "state start {\nif (meta.flag) { } //!\ntransition accept; }"}, "not in the subset"),
    "verify of a number": ({"states": "state start {\nverify(1, error.NoMatch); //!\ntransition accept; }"}, "is int, not bool"),
    "verify without an error": ({"states": "state start {\nverify(true, 3); //!\ntransition accept; }"}, "is int, not error"),
    "a register in a parser": ({"parser_locals": "register<bit<8>>(4) r; //!"}, "not the type of an object here"),
    # Controls and main.
    "a control in itself": ({"before": "control S(inout bit<8> x) {\nS() again; //!\napply { } }"}, "no declaration of S"),
    "a control without an object": ({"before": "control S(inout bit<8> x) { apply { } }", "apply": "S.apply(meta.m); //!"}, "S is a type, not an object"),
    "a control that is applied twice": ({"before": "control S(inout bit<8> x) { apply { } }", "locals": "S() s;", "apply": "s.apply(meta.m);\ns.apply(meta.m); //!"}, "applied twice"),
    "a control with a wrong argument": ({"before": "control S(inout bit<8> x) { apply { } }", "locals": "S() s;", "apply": "s.apply(meta.n); //!"}, "x is bit<8>, and bit<32>"),
    "a control in an action": ({"before": "control S(inout bit<8> x) { apply { } }", "locals": "S() s;\naction x() {\ns.apply(meta.m); //!\n}"}, "cannot be applied in an action"),
    "a control with a constructor's argument": ({"before": "control S(inout bit<8> x) { apply { } }", "locals": "S(1) s; //!"}, "the constructor of S has no parameters"),
    "a type of control": ({"before": "control S(inout bit<8> x); //!"}, "not in the subset"),
    "no main": ({"top": "", "main": ""}, "the program has no main"),
    "main twice": ({"main": GAPS["main"] + "\n" + GAPS["main"] + " //!"}, "a second declaration of main"),
    "main of something else": ({"main": "register<bit<8>>(1) main; //!"}, "main is a V1Switch"),
    "main with too few blocks": ({"main": "V1Switch(TheParser(), Verify()) main; //!"}, "V1Switch takes 6 blocks"),
    "blocks in another order": ({"before": "control Short(inout headers_t hdr) { apply { } } //!", "main": "V1Switch(TheParser(), Short(), Ingress(), Egress(), Compute(), Deparser()) main;"}, "needs 2 parameters"),
    "a control as the parser": ({"main": "V1Switch(Verify(), Verify(), Ingress(), Egress(), Compute(), Deparser()) main; //!"}, "Verify as two blocks"),
    "a parameter with another direction": ({"before": "control Odd(in headers_t hdr, inout metadata_t meta) { apply { } } //!", "main": "V1Switch(TheParser(), Odd(), Ingress(), Egress(), Compute(), Deparser()) main;"}, "hdr must be inout headers_t"),
    "a parameter of another type": ({"before": "control Odd(inout headers_t hdr, inout head_t meta) { apply { } } //!", "main": "V1Switch(TheParser(), Odd(), Ingress(), Egress(), Compute(), Deparser()) main;"}, "meta must be inout metadata_t"),
    "a number among the headers": ({"headers": "bit<8> odd;", "deparser": "packet.emit(hdr.head);", "main": GAPS["main"] + " //!"}, "is no struct of headers: odd is bit<8>"),
    "an annotation that is not taken": top("@atomic const bit<8> x = 1;", "not in the subset"),
    "an extern of its own": top("extern void frob();", "not in the subset"),
}


class Refusals(unittest.TestCase):
    def test_the_program_is_right_without_a_fault(self):
        self.assertEqual(program_of().warnings, [])

    def test_every_fault_is_refused_at_its_line(self):
        for name, (gaps, message) in FAULTS.items():
            with self.subTest(name):
                text = text_of(**gaps)
                lines = [number for number, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith("//!")]
                with self.assertRaises(P4Error) as caught:
                    check(text, "test.p4")
                self.assertIn(message, str(caught.exception))
                if lines:
                    self.assertEqual([caught.exception.place.line], lines, str(caught.exception))

    def test_without_includes_nothing_is_known(self):
        for text, message in (("", "has no main"), ("packet_in x;", "expected a declaration"),
                              ("#include <core.p4>\nV1Switch() main;", "expected a declaration")):
            with self.assertRaises(P4Error) as caught:
                check(text, "test.p4")
            self.assertIn(message, str(caught.exception))

    def test_nesting_has_a_limit(self):
        for text in ("(" * 500 + "1" + ")" * 500, "1" + "+1" * 500, "-" * 500 + "1", "meta" + ".m" * 500):
            with self.assertRaises(P4Error) as caught:
                program_of(apply=f"meta.m = {text};")
            self.assertRegex(str(caught.exception), "more than 60|has no member")
        with self.assertRaisesRegex(P4Error, "nested more than 60"):
            program_of(apply="{" * 500 + "}" * 500)

    def test_bytes_that_are_no_text_are_refused(self):
        from interpreter.lexer import decode
        with self.assertRaisesRegex(P4Error, "x.p4:2:1: error: the file is not UTF-8"):
            decode(b"// fine\n\xff", "x.p4")


class Warnings(unittest.TestCase):
    """What a compiler only warns of."""

    def assert_warns(self, message, **gaps):
        self.assertIn(message, "\n".join(program_of(**gaps).warnings))

    def test_a_number_that_does_not_fit(self):
        self.assert_warns("256 does not fit into bit<8>: it is 0", apply="meta.m = 256;")
        self.assert_warns("-1 does not fit into bit<8>: it is 255", apply="meta.m = -1;")
        self.assert_warns("300 does not fit into bit<8>: it is 44", apply="meta.m = 8w300;")

    def test_a_name_that_hides_another(self):
        self.assert_warns("meta hides a declaration outside", apply="bit<8> meta = 1;")

    def test_a_state_without_a_transition(self):
        self.assert_warns("it rejects", states="state start { }")

    def test_a_state_that_is_not_reached(self):
        self.assert_warns("no transition leads to the state lost",
                          states="state start { transition accept; } state lost { transition accept; }")

    def test_a_case_behind_the_default(self):
        self.assert_warns("no value comes to this case",
                          states="state start { transition select(meta.m) { default: accept; 1: reject; } }")


if __name__ == "__main__":
    unittest.main()
