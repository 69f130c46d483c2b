"""driver.py: sends the same steps to both servers and says where their answers part.

One step is sent when the one before is answered, so all clients' commands come in one order, the
same one on both servers. Nothing depends on time: whoever sets a deadline that passes at once
(Step.expires) has the driver wait until both servers say that the key is gone.
"""

import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, replace

from resp import Closed, encode
from skep_process import PATIENCE_S

from .differences import listed
from .replies import answers, parts, same
from .script import line, name
from .table import outcome
from .words import DATABASES, SLACK_MS

CLOSED = b"(the connection is closed)\r\n"
NO_ANSWER = b"(no answer)\r\n"
QUEUED = b"+QUEUED\r\n"
NEVER = sys.maxsize
# What tells all of a key, whatever its type: where it is another one the servers say so.
CONTENTS = [(b"GET",), (b"PEXPIRETIME",), (b"TYPE",), (b"HGETALL",), (b"SMEMBERS",),
            (b"LRANGE", b"0", b"-1"), (b"ZRANGE", b"0", b"-1", b"WITHSCORES")]


@dataclass(frozen=True)
class Difference:
    """Step number `step` made the servers differ, in their answers to this command."""

    step: int
    command: tuple
    redis: bytes
    skep: bytes
# Which word of these commands is the cursor.
CURSOR_AT = {"SCAN": 1, "HSCAN": 2, "SSCAN": 2, "ZSCAN": 2}


class Coverage:
    """Counts the outcomes of each command, by Redis's answers."""

    def __init__(self):
        self.commands = 0
        self.answers = defaultdict(Counter)
        self.errors = defaultdict(Counter)

    def note(self, command, redis):
        if redis == QUEUED:
            return
        self.commands += 1
        if redis[:1] == b"-":
            self.errors[name(command)][redis.decode("latin-1").strip()] += 1
        else:
            self.answers[name(command)][outcome(redis)] += 1


class Twins:
    """One client: a connection to each server."""

    def __init__(self, servers):
        self.ends = [server.connect(timeout=PATIENCE_S) for server in servers]
        self.unbind()

    def unbind(self):
        """It watches nothing, and is in no transaction."""
        self.bound_at = NEVER  # how many commands had been sent when it began to
        self.queued = []
        self.expires = False  # something in the queue does

    def close(self):
        for end in self.ends:
            end.close()

    def ask(self, data, count):
        """The pairs of replies to what is sent at once."""
        for end in self.ends:
            end.send(data)
        return [self._pair() for _ in range(count)]

    def say(self, *command):
        """The two replies to one command."""
        return self.ask(encode(*command), 1)[0]

    def ask_each(self, *commands):
        """Each server its own command."""
        for end, command in zip(self.ends, commands):
            end.send(encode(*command))
        return self._pair()

    def _pair(self):
        return tuple(map(read, self.ends))


def read(end):
    try:
        return end.read_reply()[1]
    except Closed:
        return CLOSED
    except TimeoutError:
        return NO_ANSWER


class Driver:
    """Runs one list of steps on two empty servers: Redis and Skep. `allow(command, redis,
    skep, before)` gives the entry of the list by which answers may differ, or None."""

    def __init__(self, servers, coverage=None, allow=listed):
        self.coverage = coverage or Coverage()
        self._allow = allow
        self._said = []  # all commands, as lines
        self._parted = False  # by an entry that says so: nothing more can be compared
        self._servers = servers
        self._clients = {}
        self._control = Twins(servers)

    def __enter__(self):
        self._control.say("FLUSHALL")
        return self

    def __exit__(self, *_):
        for client in [self._control, *self._clients.values()]:
            client.close()

    def run(self, steps):
        """The first difference, or None. At the end all keys, values and deadlines are compared."""
        for at, step in enumerate(steps):
            if found := self._take(step):
                return Difference(at, *found)
            if self._parted:
                return None
        if found := self._compare_contents():
            return Difference(len(steps), *found)
        return None

    def client(self, number):
        if number not in self._clients:
            self._clients[number] = Twins(self._servers)
        return self._clients[number]

    def _take(self, step):
        client = self.client(step.client)
        if step.inline:
            return self._send(client, line(step.commands[0]) + b"\r\n", step)
        # After an EXEC that gives a key a deadline that passes at once the rest has to wait.
        alone = [replace(step, commands=(command,)) for command in step.commands]
        for each in alone if client.expires else [step]:
            data = b"".join(encode(*command) for command in each.commands)
            if found := self._send(client, data, each):
                return found
            if self._parted:
                break
        return None

    def _send(self, client, data, step):
        pairs = client.ask(data, len(step.commands))
        for command, (redis, skep) in zip(step.commands, pairs):
            if found := self._judge(client, command, redis, skep, step.expires):
                return found
            if self._parted:
                return None
        if len(step.commands) == 1:
            return self._follow_up(client, step.commands[0], *pairs[0])
        return None

    def _judge(self, client, command, redis, skep, expires):
        self.coverage.note(command, redis)
        self._said.append(line(command))
        for answer in answers(command, client.queued, redis, skep):
            if not same(*answer):
                entry = self._allow(*answer, self._said[client.bound_at:])
                if entry is None:
                    return answer
                if entry.parts_ways:
                    # Answers that follow in the same transaction cannot be compared either.
                    self._parted = True
                    break
        if redis == QUEUED:
            client.queued.append(command)
            client.expires |= expires
            return None
        if name(command) in ("MULTI", "WATCH"):
            client.bound_at = min(client.bound_at, len(self._said))
        if name(command) == "EXEC":
            for queued, reply in zip(client.queued, parts(redis) or []):
                self.coverage.note(queued, reply)
        if ends_transaction(command, redis):
            expires |= client.expires
            client.unbind()
        if expires:
            self.wait_until_expired()
        return None

    def _follow_up(self, client, command, redis, skep):
        """Asks further what one reply alone does not tell. Returns a difference, or None."""
        if name(command) == "RANDOMKEY" and redis[:1] == skep[:1] == b"$":
            return self._have_their_keys(client, redis, skep)
        if name(command) in CURSOR_AT and redis[:1] == skep[:1] == b"*" and \
                command[CURSOR_AT[name(command)]] == b"0":
            return self._scan_on(client, command, redis, skep)
        return None

    def _have_their_keys(self, client, redis, skep):
        commands = [(b"EXISTS", reply.split(b"\r\n", 1)[1][:-2]) for reply in (redis, skep)]
        a, b = client.ask_each(*commands)
        return None if a == b else (commands[1], a, b)

    def _scan_on(self, client, command, *replies):
        """Follows each server's cursor to its end: the keys found must be the same."""
        found = [scan_whole(end, command, reply) for end, reply in zip(client.ends, replies)]
        redis, skep = (b"*%d\r\n" % len(keys) + b"".join(sorted(keys)) for keys in found)
        return None if redis == skep else (command, redis, skep)

    def wait_until_expired(self):
        """Until no key of either server has a deadline that is near, and none that is past takes
        part in DBSIZE."""
        deadline = time.monotonic() + PATIENCE_S
        while not all(self._is_settled(end) for end in self._control.ends):
            if time.monotonic() > deadline:
                raise AssertionError("a key that should have expired is still there")
            time.sleep(0.001)

    def _is_settled(self, end):
        for database in DATABASES:
            _, keys = end.pipeline(["SELECT", database], ["KEYS", "*"])
            *times, size = end.pipeline(*(["PTTL", key] for key in keys), ["DBSIZE"])
            if any(0 <= ms < SLACK_MS for ms in times) or size != len(keys):
                return False
        return True

    def _compare_contents(self):
        for database in DATABASES:
            self._control.say("SELECT", database)
            keys = self._control.ends[0].call("KEYS", "*")
            commands = [(b"KEYS", b"*"),
                        *((verb, key, *more) for key in keys for verb, *more in CONTENTS)]
            data = b"".join(encode(*command) for command in commands)
            for command, replies in zip(commands, self._control.ask(data, len(commands))):
                if not same(command, *replies):
                    return command, *replies
        return None


def ends_transaction(command, redis):
    return (redis.startswith(b"-EXECABORT") or
            name(command) in ("EXEC", "DISCARD", "RESET") and redis[:1] != b"-")


def scan_whole(end, command, reply):
    """The set of all keys, or of all words, as they came, of a scan that began with this reply."""
    keys = set()
    while reply[:1] == b"*":
        cursor, page = parts(reply)
        keys.update(parts(page))
        cursor = cursor.split(b"\r\n")[1]
        if cursor == b"0":
            return keys
        at = CURSOR_AT[name(command)]
        end.send(encode(*command[:at], cursor, *command[at + 1:]))
        reply = read(end)
    return keys | {reply}
