"""Programs that are refused, because of text, names, types, or calls: a name -> (what is put into the
gaps of p4_testing.PROGRAM, what the message says). The line with the fault ends in `//!`."""


def apply(text, message):
    return {"apply": text + " //!"}, message


def local(text, message):
    return {"locals": text + " //!"}, message


def top(text, message):
    return {"top": text + ("" if text.startswith("#") else " //!")}, message


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
    "a number with too many digits": top("const int x = 1" + "0" * 1000 + ";", "more than 1000 digits"),
    "a keyword as a name": top("const bit<8> table = 1;", "table is a keyword"),
    "a missing semicolon": ({"apply": "meta.m = 1\nmeta.n = 2; //!"}, "expected ';'"),
    "a block without an end":
        ({"main": "control X(inout headers_t hdr) { apply { //!"}, "the block has no end"),
    "a directive": top("#define X 1", "not in the subset"),
    "an include of something else": top("#include <psa.p4>", "not in the subset"),
    "an include of a file that is not there":
        top('#include "other.p4"', "other.p4: there are no other files"),
    "an include without a name": top("#include x", "not in the subset"),
    "a statement that is none": apply("meta.m;", "expected '=' or a call"),
    "a token that ends nothing": apply("meta.m = 1 );", "expected ';'"),
    "a loop": apply("for (bit<8> i = 0; i < 4; i = i + 1) { }", "for is not in the subset"),
    "a comma behind the last argument": apply("send(1,);", "expected an expression"),
    "a comma behind the last parameter": local("action x(bit<8> p,) { }", "expected a type"),
    "a comma behind the last member": top("enum e_t { A, }", "expected the name of a member"),
    "an enum without members": top("enum e_t { }", "expected the name of a member"),
    "a comma behind the last element of a list":
        apply("hash(meta.n, HashAlgorithm.crc32, 32w0, { meta.m, }, 32w1);", "expected an expression"),
    # Names.
    "an unknown name": apply("meta.m = nothing;", "no declaration of nothing"),
    "an unknown type": apply("nothing_t x;", "expected '=' or a call"),
    "an unknown type of a field":
        ({"types": "struct s_t {\nnothing_t x; //!\n}"}, "'nothing_t' is not the name of a type"),
    "an unknown field": apply("meta.m = hdr.head.z;", "head_t has no field z"),
    "an unknown header": apply("hdr.nothing.setValid();", "headers_t has no field nothing"),
    "a field of a number": apply("meta.m = meta.m.x;", "bit<8> has no member x"),
    "an unknown method": apply("hdr.head.isThere();", "has no method isThere"),
    "a method of a struct": apply("if (meta.isValid()) { }", "is no header"),
    "an unknown function": apply("frob(meta.m);", "no declaration of frob"),
    "a function of v1model that is not taken": apply("digest(1, meta.m);", "digest is not in the subset"),
    "a variable before its declaration": ({"apply": "meta.m = x; //!\nbit<8> x = 1;"}, "no declaration of x"),
    "a variable outside of its block":
        ({"apply": "{ bit<8> x = 1; }\nmeta.m = x; //!"}, "no declaration of x"),
    "a variable twice": ({"apply": "bit<8> x;\nbit<8> x; //!"}, "a second declaration of x"),
    "a constant twice":
        ({"top": "const bit<8> x = 1;\nconst bit<8> x = 2; //!"}, "a second declaration of x"),
    "a type twice": ({"top": "typedef bit<8> x_t;\ntypedef bit<9> x_t; //!"}, "a second declaration of x_t"),
    "a type of v1model again": top("header standard_metadata_t { bit<8> a; }", "which v1model declares"),
    "a function of v1model again": top("const bit<8> verify = 1;", "which v1model declares"),
    "an action of core again": ({"top": "action NoAction() { } //!"}, "which v1model declares"),
    "a field twice": ({"types": "struct s_t { bit<8> a;\nbit<8> a; } //!"}, "s_t has two fields a"),
    "a parameter twice": local("action x(bit<8> p, bit<8> p) { }", "a second declaration of p"),
    "an action twice": local("action drop() { }", "a second declaration of drop"),
    "a member of an enum twice": top("enum e_t { A, A }", "A is declared twice"),
    "an unknown member of an enum":
        ({"top": "enum e_t { A }", "apply": "if (e_t.A == e_t.B) { } //!"}, "has no member B"),
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
    "a shift by a signed number":
        apply("meta.m = meta.m << (int<8>)meta.m;", "'<<' is not defined on bit<8> and int<8>"),
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
    "a cast of width and sign at once":
        apply("meta.m = (bit<8>)(int<16>)meta.m;", "a cast of bit<8> to int<16>"),
    "a cast of more than one bit to bool": apply("meta.flag = (bool)meta.m;", "a cast of bit<8> to bool"),
    "a cast of a bool to a byte": apply("meta.m = (bit<8>)meta.flag;", "a cast of bool to bit<8>"),
    "a cast of a header": apply("meta.n = (bit<32>)hdr.tail;", "a cast of tail_t to bit<32>"),
    "values of '?' of different types":
        apply("meta.m = meta.flag ? meta.m : meta.n;", "which are different types"),
    "values of '?' without a width": apply("meta.m = meta.flag ? 1 : 2;", "its values need a width"),
    "a condition of '?' that is no bool": apply("meta.m = meta.m ? meta.m : meta.m;", "not bool"),
    "a header for another": apply("hdr.head = hdr.tail;", "is tail_t, not head_t"),
    "a list as a header": apply("hdr.tail = { 1, 2 };", "not in the subset"),
    "a width of zero": apply("bit<0> x;", "bit<0> is not in the subset"),
    "a width of one with a sign": apply("int<1> x;", "int<1> is not in the subset"),
    "a width beyond the limit": apply("bit<4096> x;", "is more than 2048"),
    "a width that is not constant": apply("bit<(meta.m)> x;", "a width is a constant number"),
    "a variable without a width": apply("int x = 1;", "only constants have that type"),
    "a constant that is not constant": apply("const bit<8> x = meta.m;", "is not constant"),
    "a constant of another type": top("const bool x = 1;", "is int, not bool"),
    "a type with arguments that has none": apply("head_t<bit<8>> x;", "has no type parameters"),
    "varbit": ({"types": "header v_t {\nvarbit<8> x; //!\n}"}, "the type varbit is not in the subset"),
    "a header stack": ({"headers": "\nhead_t[2] more; //!\n"}, "a header stack is not in the subset"),
    "a header of seven bits": ({"types": "\nheader odd_t { bit<7> x; } //!"}, "has 7 bits, no multiple of 8"),
    "a struct in a header":
        ({"types": "struct s_t { bit<8> a; }\nheader h_t {\ns_t s; //!\n}"}, "not in the subset"),
    "a header in a header": ({"types": "header h_t {\ntail_t t; //!\n}"}, "no type of a header's field"),
    "an error in a header": ({"types": "header h_t {\nerror e; //!\n}"}, "no type of a header's field"),
    "an object as a field":
        ({"types": "struct s_t {\nregister<bit<8>> r; //!\n}"}, "is not the type of a value"),
    "a packet as a variable": apply("packet_in p;", "is not the type of a value"),
    "a generic header": top("header h_t<T> { T x; }", "a type with parameters"),
    # What can be written.
    "a constant that is written":
        ({"top": "const bit<8> x = 1;", "apply": "x = 2; //!"}, "cannot be written"),
    "an in parameter that is written":
        ({"before": "control S(in bit<8> p) { apply {\np = 1; //!\n} }"}, "the direction in"),
    "an action's data that are written": local("action x(bit<8> p) { p = 1; }", "the direction none"),
    "a sum that is written": apply("(meta.m + 1) = 2;", "cannot be written"),
    "a call that is written": apply("hdr.head.isValid() = true;", "cannot be written"),
    "the deparser's headers, written":
        ({"deparser": "\nhdr.head.a = 1; //!\n"}, "the deparser has calls only"),
    "setValid of an in parameter":
        ({"before": "control S(in head_t h) { apply {\nh.setValid(); //!\n} }"}, "the direction in"),
    "a slice of a sum that is written": apply("(meta.m + meta.m)[3:0] = 1;", "cannot be written"),
    # Calls.
    "too few arguments": apply("send();", "send has 1 parameters, not 0"),
    "too many arguments": apply("drop(1);", "drop has 0 parameters, not 1"),
    "an argument of another type": apply("send(meta.m);", "is bit<8>, not bit<9>"),
    "an unknown name of an argument": apply("send(p = 1);", "send has no parameter p"),
    "some arguments with names":
        ({"locals": "action x(bit<8> p, bit<8> q) { }", "apply": "x(p = 1, 2); //!"},
         "all arguments of a call have names, or none"),
    "an argument twice":
        ({"locals": "action x(bit<8> p, bit<8> q) { }", "apply": "x(p = 1, p = 2); //!"}, "p is given twice"),
    "out of what cannot be written":
        ({"locals": "action x(out bit<8> p) { p = 1; }", "apply": "x(meta.m + 1); //!"}, "this cannot be written to"),
    "inout of another type":
        ({"locals": "action x(inout bit<8> p) { p = 1; }", "apply": "x(meta.n); //!"},
         "p is bit<8>, and bit<32>"),
    "a direction behind none":
        local("action x(bit<8> p, in bit<8> q) { }", "without a direction must come last"),
    "a call of a variable": apply("meta.m(1);", "has no method m"),
    "a call of a table":
        ({"locals": "table t { actions = { drop; } }", "apply": "t(); //!"}, "t cannot be called"),
    "a result that is not there": apply("meta.m = drop();", "is not a value"),
    "type arguments of an action": apply("drop<bit<8>>();", "no type parameters"),
    "a function that belongs into the parser":
        apply("verify(true, error.NoMatch);", "verify cannot be called in a control"),
    "a checksum outside of its control":
        apply("update_checksum(true, { hdr.head.a, hdr.head.b }, hdr.head.c, HashAlgorithm.csum16);",
              "cannot be called in a control"),
    "a checksum in the wrong control":
        ({"compute": "\n"
         "verify_checksum(true, { hdr.head.a, hdr.head.b }, hdr.head.c, HashAlgorithm.csum16); //!\n"},
         "cannot be called in"),
    "an assignment among checksums": ({"compute": "\nmeta.m = 1; //!\n"}, "has calls only"),
    "mark_to_drop in the deparser":
        ({"deparser": "\npacket.emit(hdr.head); hdr.head.setInvalid(); //!\n"}, "the direction in"),
    "a condition in the deparser":
        ({"deparser": "\nif (hdr.head.isValid()) { packet.emit(hdr.head); } //!\n"}, "has calls only"),
    "emit of a number": ({"deparser": "\npacket.emit(hdr.head.a); //!\n"}, "emit takes a header"),
    "a hash of a bool":
        apply("hash(meta.n, HashAlgorithm.crc32, 32w0, { meta.flag }, 32w1);", "data are bit<W>"),
    "a hash of a number without a width":
        apply("hash(meta.n, HashAlgorithm.crc32, 32w0, { 1 }, 32w1);", "a number without a width"),
    "a hash with a base without a width":
        apply("hash(meta.n, HashAlgorithm.crc32, 0, { meta.m }, 32w1);", "a number without a width as base"),
    "an algorithm that is not taken":
        apply("hash(meta.n, HashAlgorithm.xor16, 32w0, { meta.n }, 32w1);", "not in the subset"),
    "an algorithm that is unknown":
        apply("hash(meta.n, HashAlgorithm.md5, 32w0, { meta.n }, 32w1);", "has no member md5"),
    "a checksum of 8 bits":
        ({"compute": "\nupdate_checksum(true, { hdr.head.a }, hdr.head.c, HashAlgorithm.csum16); //!\n"},
         "csum16 of 8 bits is not in the subset"),
    "a checksum of another width":
        ({"compute": "\nupdate_checksum(true, { hdr.head.c }, hdr.head.d, HashAlgorithm.csum16); //!\n"},
         "csum16 gives bit<16>"),
}
