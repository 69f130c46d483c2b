"""words.py: arguments. Few keys, so that commands meet, or so many that they do not fit into a node
of a tree; values and numbers at every edge.

Deadlines are such that two servers agree whatever the clock says and however slow they are. A
deadline is
  - absolute and far, out of a few, so that equal ones meet: both servers store the same number;
  - relative and far: no two of a stream, and no absolute one, are nearer than SLACK_MS, so the
    order of two deadlines never depends on when the commands arrive;
  - in the past, or a few milliseconds ahead: whoever sends the command then waits until the key is
    gone on both servers.
"""

SLACK_MS = 900_000  # how far apart two servers may read the same relative deadline
STRIDE_MS = 10_000_000
STRIDES = 100_000  # the farthest relative deadline is some thirty years ahead
YEAR_2100_S = 4_102_444_800

FAR_S = [YEAR_2100_S, YEAR_2100_S + 1, 5_000_000_000]
FAR_MS = [1000 * YEAR_2100_S + more for more in (0, 1, 499, 500, 501, 999, 1000)]
ABSOLUTE_MS = frozenset(FAR_MS) | {1000 * s for s in FAR_S}
PAST_S = [1, 1_262_304_000]
PAST_MS = [1, 999, 1_262_304_000_000]

KEYS = [b"a", b"b", b"c", b"d", b"n", b"", b"key:1", b"key:10", b"A", b"\x00\r\n\xff"]
COMMON_KEYS = KEYS[:5]
# Those of collections.py, met by other commands now and then.
COLLECTION_KEYS = [b"h1", b"h2", b"s1", b"s2", b"s3", b"l1", b"l2", b"z1", b"z2", b"lex1", b"lex2"]
MANY_KEYS = [b"key:%d" % i for i in range(300)]
DATABASES = [0, 1, 2]

INT64_MAX = 2**63 - 1
INT64_MIN = -2**63
NUMBERS = [b"0", b"1", b"-1", b"5", b"-7", b"100", b"%d" % INT64_MAX, b"%d" % (INT64_MAX - 1),
           b"%d" % (INT64_MIN + 1), b"%d" % INT64_MIN]
NOT_NUMBERS = [b"abc", b"", b"1.5", b" 1", b"1 ", b"01", b"-0", b"+1", b"%d" % (INT64_MAX + 1),
               b"%d" % (INT64_MIN - 1), b"9" * 40, b"1\x00", b"0x1", b"1e3"]
TEXTS = [b"x", b"yy", b"", b"\x00\r\n\xff", b"hello world", b"z" * 1000, b"a'b\"c\\"]
# What DUMP of Redis 7.0 makes of: x, nothing, hello world, 1000 times z, 5, 300, 70000, 2^63-1.
PAYLOADS = [
    b'\x00\x01x\n\x00"\x80\x86_\xbd\xe8H\xd0',
    b"\x00\x00\n\x00]\x9b\\@\x0f\x7f\xa2\xda",
    b"\x00\x0bhello world\n\x00\x0b\xfcI\xb9\xa6\xc7\xa04",
    b"\x00\xc3\x12C\xe8\x01zz\xe0\xff\x00\xe0\xff\x00\xe0\xff\x00\xe0\xc3\x00\x01zz\n\x00"
    b"9CK\xfa)\xf7T\x9d",
    b"\x00\xc0\x05\n\x00c/_f\x83/\xb3Q",
    b"\x00\xc1,\x01\n\x00\x95Ba\xf2e\x82\\\x10",
    b"\x00\xc2p\x11\x01\x00\n\x00\x01\xa4\x08\xfe\x950\x95\xa5",
    b'\x00\x139223372036854775807\n\x00:e~\x94\x81\xe8_"',
]
# Of two fields; -1, 1 and 300 in an intset; a set of three; a list of three; three members with
# scores, in a listpack and one by one.
PAYLOADS += [
    b"\x10\x13\x13\x00\x00\x00\x04\x00\x81f\x02\x01\x01\x82hi\x03\xc1,\x02\xff\n\x00\xaa\xe3\xc3"
    b"\x8aF\xa8\xc4\x85",
    b"\x0b\x0e\x02\x00\x00\x00\x03\x00\x00\x00\xff\xff\x01\x00,\x01\n\x00\x1fN\xc7\xab\xe2\x94}2",
    b"\x02\x03\x00\x01b\x01a\n\x00\x9d\xab:c\x1b\x06\xe4\xa6",
    b"\x12\x01\x02\x10\x10\x00\x00\x00\x03\x00\x81a\x02\x01\x01\x82bb\x03\xff\n\x00\xdf\n\xf3\x10"
    b"\xbe\x9d\x9e\x9d",
    b"\x11\x1c\x1c\x00\x00\x00\x06\x00\x81b\x02\x84-inf\x05\x81a\x02\x831.5\x04\x07\x01\x02\x01\xff\n"
    b"\x00(\xae|]\x91\x04\x89*",
    b"\x05\x02\x01b\x00\x00\x00\x00\x00\x00\xf0\x7f\xc3\t@A\x01yy\xe04\x00\x01yy\x00\x00\x00\x00\x00\x00"
    b"\xd0?\n\x00\xb3+\xd1$\x8e\xe7\x1f\xe8",
]
PATTERNS = [b"*", b"a", b"a*", b"?", b"key:*", b"key:?", b"*1*", b"[ab]", b"[^a]", b"", b"\\a",
            b"[a-c]", b"key:1", b"nosuch*", b"[", b"\x00*"]
# None is a number: by luck it would be a deadline that passes soon.
JUNK = [b"nosuch", b"", b"NX", b"XX", b"GET", b"EX", b"\xff"] + NOT_NUMBERS


class Words:
    """Draws arguments; `expires` says whether one since the last reset was a deadline that passes
    at once."""

    def __init__(self, rng, many_keys=False):
        self.rng = rng
        self.many_keys = many_keys
        self.expires = False
        self.focus = None  # a key that is drawn more often than others
        self._used_strides = set()

    def chance(self, probability):
        return self.rng.random() < probability

    def pick(self, choices):
        return self.rng.choice(choices)

    def case(self, word):
        return self.pick([word, word, word, word.lower(), word.title()])

    def key(self):
        if self.focus is not None and self.chance(0.7):
            return self.focus
        if self.many_keys and self.chance(0.7):
            return self.pick(MANY_KEYS)
        if self.chance(0.04):
            return self.pick(COLLECTION_KEYS)
        return self.pick(COMMON_KEYS if self.chance(0.8) else KEYS)

    def keys(self):
        return [self.key() for _ in range(self.rng.randrange(1, 4))]

    def value(self):
        return self.pick(TEXTS) if self.chance(0.5) else self.number()

    def pairs(self):
        return [word for key in self.keys() for word in (key, self.value())]

    def number(self):
        if self.chance(0.25):
            return self.pick(NOT_NUMBERS)
        return self.pick(NUMBERS) if self.chance(0.6) else b"%d" % self.rng.randrange(-100, 100)

    def junk(self):
        return self.pick(JUNK)

    def _far(self):
        while (stride := self.rng.randrange(1, STRIDES)) in self._used_strides:
            pass
        self._used_strides.add(stride)
        return stride * STRIDE_MS + self.rng.randrange(1000)

    def seconds(self):
        """For EX and EXPIRE."""
        return b"%d" % (self._far() // 1000) if self.chance(0.85) else self.wrong_time()

    def milliseconds(self):
        """For PX and PEXPIRE."""
        if self.chance(0.1):
            self.expires = True
            return b"%d" % self.rng.randrange(1, 10)
        return b"%d" % self._far() if self.chance(0.85) else self.wrong_time()

    def second(self):
        """For EXAT and EXPIREAT."""
        if self.chance(0.25):
            self.expires = True
            return b"%d" % self.pick(PAST_S)
        return b"%d" % self.pick(FAR_S) if self.chance(0.85) else self.wrong_time()

    def millisecond(self):
        """For PXAT and PEXPIREAT."""
        if self.chance(0.25):
            self.expires = True
            return b"%d" % self.pick(PAST_MS)
        return b"%d" % self.pick(FAR_MS) if self.chance(0.85) else self.wrong_time(None)

    def wrong_time(self, too_late=INT64_MAX):
        """No time, or one that is too early, or too late for its unit and base."""
        if self.chance(0.4):
            return self.pick(NOT_NUMBERS)
        return b"%d" % self.pick([0, -1, -1000, -INT64_MAX, too_late or -1])

    def deadline(self):
        """An option of SET and GETEX with its argument."""
        option, amount = self.pick([(b"EX", self.seconds), (b"PX", self.milliseconds),
                                    (b"EXAT", self.second), (b"PXAT", self.millisecond)])
        return [self.case(option), amount()]
