"""streams.py: random streams of steps, the same ones from the same seed.

A stream is made of pieces: one command, a pipeline, a transaction with other clients' commands in
between, a counter at the edge of its range. Now and then a command has something wrong in it.
"""

import random
import re

from .joins import JOIN_COMMANDS, hll_spoil, sort_fill
from .script import Step, name
from .table import COMMANDS
from .words import FAR_MS, INT64_MAX, INT64_MIN, MANY_KEYS, Words

CLIENTS = [1, 2, 3, 4]
PIPELINE_MAX = 12
LONG_PIPELINE_MAX = 200


class Stream:
    def __init__(self, seed):
        rng = random.Random(seed)
        self.words = Words(rng, many_keys=rng.random() < 0.1)
        self.steps = []
        self._client = 1
        self._bound = set()  # clients that may be in a transaction or watch keys
        # In half of the streams all clients speak RESP3 from the beginning.
        if rng.random() < 0.5:
            for client in CLIENTS:
                self._say(client, b"HELLO", b"3")
        if self.words.many_keys:
            self._fill()

    # Some of the many keys begin with a deadline.
    def _fill(self):
        words = self.words
        for i in range(0, len(MANY_KEYS), PIPELINE_MAX):
            keys = MANY_KEYS[i:i + PIPELINE_MAX]
            self._say(1, b"MSET", *(word for key in keys for word in (key, b"v" * 300)))
            self._say(1, b"PEXPIREAT", words.pick(keys), b"%d" % words.pick(FAR_MS))

    def piece(self):
        """Adds one piece; several clients take turns, each for some time."""
        words = self.words
        if words.chance(0.3):
            self._client = words.pick(CLIENTS)
        kind = words.rng.random()
        if kind < 0.08:
            self._pipeline(self._client)
        elif kind < 0.16:
            self._transaction(self._client)
        elif kind < 0.18:
            self._overflow(self._client)
        elif kind < 0.21:
            self._watch(self._client)
        elif kind < 0.23:
            self._several(words.pick([sort_fill, hll_spoil])(words))
        else:
            self._one(self._client)

    def _one(self, client, rare=False):
        words = self.words
        words.expires = False
        command = self._command(client, rare)
        inline = words.chance(0.03)
        self._add(client, [command], inline, words.expires)

    # No deadline passes inside a pipeline: whether a later command still finds the key is luck.
    def _pipeline(self, client):
        words = self.words
        commands = []
        length_max = LONG_PIPELINE_MAX if words.chance(0.02) else PIPELINE_MAX
        for _ in range(words.rng.randrange(2, length_max)):
            words.expires = False
            command = self._command(client)
            if not words.expires:
                commands.append(command)
        if commands:
            self._add(client, commands)

    # The watched keys are few, so that what comes in between often meets one.
    def _transaction(self, client):
        words = self.words
        watched = []
        for _ in range(words.pick([0, 0, 1, 1, 2])):
            watched = words.keys()
            self._say(client, b"WATCH", *watched)
        words.focus = words.pick(watched) if watched else None
        self._meanwhile([client, *CLIENTS])
        self._say(client, b"MULTI")
        for _ in range(words.rng.randrange(6)):
            self._one(client)
            self._meanwhile([other for other in CLIENTS if other != client])
        self._say(client, words.pick([b"EXEC"] * 8 + [b"DISCARD"]))
        words.focus = None

    # Which commands count as a change of a watched key.
    def _watch(self, client):
        words = self.words
        words.focus = words.key()
        self._say(client, b"WATCH", words.focus)
        self._one(words.pick(CLIENTS), rare=True)
        self._say(client, b"MULTI")
        self._say(client, b"EXEC")
        words.focus = None

    def _overflow(self, client):
        words = self.words
        key = words.key()
        verb, edge = words.pick([(b"INCR", INT64_MAX), (b"INCRBY", INT64_MAX),
                                 (b"DECR", INT64_MIN), (b"DECRBY", INT64_MIN)])
        self._say(client, b"SET", key, b"%d" % edge)
        self._say(client, verb, key, *([words.number()] if verb.endswith(b"BY") else []))

    def _several(self, commands):
        for command in commands:
            self._say(self._client, *command)

    def _say(self, client, *command):
        self._note(client, command)
        self._add(client, [command])

    def _add(self, client, commands, inline=False, expires=False):
        self.steps.append(Step(client, tuple(commands), inline, expires))

    def _note(self, client, command):
        if name(command) in ("MULTI", "WATCH"):
            self._bound.add(client)
        elif name(command) in ("EXEC", "DISCARD", "RESET") and len(command) == 1:
            self._bound.discard(client)

    def _meanwhile(self, clients):
        while self.words.chance(0.3):
            self._one(self.words.pick(clients))

    # Some are as often one command as any other, so that a run sees each in all its ways.
    def _command(self, client, rare=False):
        words = self.words
        rare = rare or words.chance(0.2)
        wanted = words.pick(NAMES) if rare else words.rng.choices(NAMES, WEIGHTS)[0]
        if client in self._bound:
            wanted = NOT_QUEUED.get(wanted, wanted)
        command = [words.case(wanted.encode()), *COMMANDS[wanted].draw(words)]
        if words.chance(0.5 if rare else 0.02):
            spoil(words, command)
        # Redis draws as often as a negative count says, and answers nobody meanwhile.
        if name(command) in ("HRANDFIELD", "SRANDMEMBER", "ZRANDMEMBER"):
            command = [re.sub(rb"^-\d{4,}$", b"-3", word) for word in command]
        self._note(client, command)
        return tuple(command)


# What a transaction of Skep refuses (differences.py has the examples), and what comes instead.
NOT_QUEUED = {"SELECT": "FLUSHDB", "FLUSHALL": "FLUSHDB"}
# Words of JUNK that are times.
LONG_TIMEOUTS = {b"1e3", b"-0", b"01", b"+1", b"0x1", b"1.5"}
NAMES = list(COMMANDS)
WEIGHTS = [command.weight for command in COMMANDS.values()]


def spoil(words, command):
    """Makes the command one that is probably wrong."""
    # Without its count it takes a member that is luck, and the servers part ways.
    if name(command) == "SPOP":
        return
    kind = words.rng.random()
    if kind < 0.4:
        del command[max(1, words.pick([1, len(command) - 1])):]
    elif kind < 0.8:
        command += [words.junk() for _ in range(words.pick([1, 2]))]
    elif kind < 0.95:
        command[words.rng.randrange(len(command))] = words.junk()
    else:
        command[0] = words.pick([b"NOSUCH", b"", b"GETT", b"\x00\r\n"])
    # Nobody is to wait for longer than a moment.
    if name(command).startswith("B") and COMMANDS.get(name(command)) in JOIN_COMMANDS.values():
        command[1:] = [b"0.001" if word in LONG_TIMEOUTS else word for word in command[1:]]
    # No score is minus zero (collections.py).
    if name(command).startswith("Z"):
        command[:] = [b"0" if word == b"-0" else word for word in command]


def stream(seed, commands):
    """Steps with at least so many commands."""
    made = Stream(seed)
    done = count = 0
    while count < commands:
        made.piece()
        count += sum(len(step.commands) for step in made.steps[done:])
        done = len(made.steps)
    return made.steps
