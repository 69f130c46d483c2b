#!/usr/bin/env python3
"""Goal: whatever text a program, its tables or its packets have, the answer is an answer or a P4Error, never another
exception, and comes at once.
Method: random bytes; the tokens of right programs, shuffled; right programs with a few tokens or bytes dropped,
doubled, swapped or replaced. Mutants that are still programs get packets. A failure prints the program."""

import json
import os
import random
import unittest

from interpreter import budget
from interpreter.check import check
from interpreter.lexer import decode, tokens
from interpreter.runtime import load
from interpreter.source import P4Error
from interpreter.switch import Switch
from p4_testing import FAT_BTREE, head, text_of

SEED = int(os.environ.get("SKEP_SEED", random.SystemRandom().randrange(1 << 32)))
ROUNDS = int(os.environ.get("SKEP_P4_FUZZ_ROUNDS", 100))

RICH = text_of(
    top="typedef bit<8> byte_t; const byte_t kOne = 1; enum e_t { A, B } error { Odd }",
    states="""state start { packet.extract(hdr.head); verify(hdr.head.b < 200, error.Odd);
              transition select(hdr.head.a, packet.lookahead<bit<8>>()) {
              (kOne, _): more; (2 .. 5, 7 &&& 0xf): more; default: accept; } }
              state more { packet.extract(hdr.tail); meta.m = hdr.head.a; transition accept; }""",
    before="""control S(in bit<8> x, inout bit<32> y) { bit<32> z = 1;
              action add(bit<32> much) { y = y + much * 2 |+| z; }
              table t { key = { x : range; y : ternary; } actions = { add; NoAction; } size = 8;
                        const entries = { (1 .. 9, _) : add(5); (_, 7 &&& 15) : NoAction(); } }
              apply { if (t.apply().hit) { z = 2; } else return; y = (z << 3) ^ y; } }""",
    locals="""S() s; register<bit<32>>(4) r; counter(4, CounterType.bytes) c; direct_counter(CounterType.packets) d;
              table u { key = { hdr.head.c : lpm; hdr.head.a : exact; } actions = { send; drop; set_d; }
                        default_action = send(3); counters = d; }""",
    apply="""bit<32> x; s.apply(hdr.head.a, hdr.head.d); r.read(x, 1); r.write(1, x + 1); c.count(x);
             switch (u.apply().action_run) { drop: { exit; } send: set_d: { meta.flag = !meta.flag; } default: { } }
             if (hdr.tail.isValid() && meta.m >= 2 || meta.flag) { hdr.tail.x = hdr.tail.y[11:4] ++ 8w3; }
             hash(x, HashAlgorithm.crc32, 32w0, { hdr.head.a, x }, 32w100);
             hdr.head.d = meta.flag ? x : ~hdr.head.d;""",
    compute="update_checksum(true, { hdr.head.a, hdr.head.b }, hdr.head.c, HashAlgorithm.csum16);")
CONFIG = {"tables": {"Ingress.u": {"entries": [
    {"match": {"hdr.head.c": [0x1200, 8], "hdr.head.a": 1}, "action": "Ingress.set_d",
     "parameters": {"value": 5}}]}},
    "registers": {"Ingress.r": {"1": 3}}}


def folder_of_fat_btree(name):
    with open(os.path.join(os.path.dirname(FAT_BTREE), name), "rb") as f:
        return f.read()


def words_of(text):
    found, _ = tokens(text, "x.p4", folder_of_fat_btree)
    return [token.text for token in found[:-1]]


class Fuzz(unittest.TestCase):
    def setUp(self):
        self.rng = random.Random(SEED)
        self.programs = 0

    def try_text(self, text):
        try:
            program = check(text, "x.p4", folder_of_fat_btree)
            self.programs += 1
            budget.text(budget.of(program))
            switch = Switch(program)
            for packet in (head(1, 2, 0x1234, 5) + b"\x17tail", head(2, 9) + b"\x07more", b"short", b""):
                switch.process(packet)
        except P4Error:
            pass
        except Exception as problem:
            raise AssertionError(f"seed {SEED}\n{text}") from problem

    def test_bytes(self):
        for _ in range(ROUNDS):
            data = self.rng.randbytes(self.rng.randrange(60))
            try:
                text = decode(data, "x.p4")
            except P4Error:
                text = data.decode("latin-1")
            self.try_text(text)

    def test_words_in_any_order(self):
        words = words_of(RICH) + ["&&&", "..", "...", "{", "}", "(", ")", "9w1", "0b1", "int<8>", "@name"]
        for _ in range(ROUNDS):
            self.try_text("#include <v1model.p4>\n" + " ".join(self.rng.choices(words, k=self.rng.randrange(40))))

    def change(self, words):
        at, other = (self.rng.randrange(len(words)) for _ in range(2))
        kind = self.rng.randrange(8)
        if kind == 0:
            del words[at]
        elif kind == 1:
            words.insert(at, words[other])
        elif kind == 2:
            words[at], words[other] = words[other], words[at]
        else:  # a name for a name, a number for a number, a mark for a mark
            alike = [word for word in words if (word[0].isalpha(), word[0].isdigit()) == (
                words[at][0].isalpha(), words[at][0].isdigit())]
            words[at] = self.rng.choice(alike)

    def test_programs_with_other_words(self):
        words = words_of(RICH)
        for _ in range(3 * ROUNDS):
            mutant = list(words)
            for _ in range(self.rng.randrange(1, 3)):
                self.change(mutant)
            self.try_text("#include <core.p4>\n#include <v1model.p4>\n" + " ".join(mutant))
        self.assertGreater(self.programs, ROUNDS // 100)

    def test_programs_with_other_bytes(self):
        with open(FAT_BTREE, encoding="utf-8") as f:
            texts = [RICH, f.read()]
        for i in range(ROUNDS):
            text = list(texts[i % 10 == 0])
            for _ in range(self.rng.randrange(1, 4)):
                text[self.rng.randrange(len(text))] = chr(self.rng.choice((self.rng.randrange(32, 127), 10, 0xe9)))
            self.try_text("".join(text))

    def test_tables_with_other_words(self):
        program = check(RICH, "x.p4")
        values = ["0", "1", "-1", "[]", "{}", "[1, 2]", "null", "true", '"x"', "1e9", "9" * 20, '"0x10"']
        load(Switch(program), CONFIG)
        words = json.dumps(CONFIG).replace("[", " [ ").replace("{", " { ").replace("}", " } ").split()
        loaded = 0
        for _ in range(3 * ROUNDS):
            mutant = list(words)
            for _ in range(self.rng.randrange(1, 3)):
                at = self.rng.randrange(len(mutant))
                mutant[at] = self.rng.choice(values + words) + self.rng.choice(("", ","))
            try:
                config = json.loads(" ".join(mutant))
            except ValueError:
                continue
            loaded += 1
            try:
                load(Switch(program), config)
            except P4Error:
                pass
            except Exception as problem:
                raise AssertionError(f"seed {SEED}\n{config}") from problem
        self.assertGreater(loaded, ROUNDS // 20)


if __name__ == "__main__":
    unittest.main()
