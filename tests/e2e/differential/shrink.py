"""shrink.py: the smallest list of steps that still makes the servers differ (delta debugging)."""

from dataclasses import replace

from .driver import NO_ANSWER, Driver
from .script import line, name, show

TRIES_MAX = 3000
WORD_BYTES_MAX = 30


class Shrinker:
    def __init__(self, servers, difference, driver):
        self._servers = servers
        self._driver = driver
        self._wanted = name(difference.command)
        self._tries = 0

    def differs(self, steps):
        """The difference if it is in the answers to the same command; else None."""
        self._tries += 1
        if self._tries > TRIES_MAX:
            return None
        with self._driver(self._servers) as driver:
            found = driver.run(steps)
        return found if found and name(found.command) == self._wanted else None

    def keep_if_differs(self, steps, simpler):
        return simpler if simpler != steps and self.differs(simpler) else steps

    def without_chunks(self, steps):
        """Takes away ever smaller pieces, down to single steps, until none can go."""
        size = max(1, len(steps) // 2)
        while True:
            before = steps
            for at in range(len(steps) - size, -size, -size):
                at = max(at, 0)
                steps = self.keep_if_differs(steps, steps[:at] + steps[at + size:])
            if size == 1 and steps == before:
                return steps
            size = max(1, size // 2)

    def simplify(self, steps):
        """Pipelines become single commands, lines become arrays, all clients become one, long words
        become short."""
        alone = [replace(step, commands=(command,), inline=False)
                 for step in steps for command in step.commands]
        steps = self.keep_if_differs(steps, alone)
        for at, step in enumerate(steps):
            if len(step.commands) > 1:
                steps = self._without_commands(steps, at)
        steps = self.keep_if_differs(steps, [replace(step, client=1) for step in steps])
        return self.keep_if_differs(steps, [shorten(step) for step in steps])

    def _without_commands(self, steps, at):
        for i in range(len(steps[at].commands) - 1, -1, -1):
            commands = steps[at].commands[:i] + steps[at].commands[i + 1:]
            if commands:
                fewer = [*steps[:at], replace(steps[at], commands=commands), *steps[at + 1:]]
                steps = self.keep_if_differs(steps, fewer)
        return steps


def shorten(step):
    return replace(step, commands=tuple(tuple(word[:WORD_BYTES_MAX] for word in command)
                                        for command in step.commands))


def shrink(servers, steps, difference, driver=Driver):
    """Fewer steps, and the difference they make to this driver. Neither waiting for answers that never
    come is repeated, nor a difference looked for that the same steps do not make again."""
    print(difference, flush=True)  # a test that is ended while it shrinks the steps has told it
    steps = steps[:difference.step + 1]
    shrinker = Shrinker(servers, difference, driver)
    if NO_ANSWER in (difference.redis, difference.skep) or not shrinker.differs(steps):
        return steps, difference
    steps = shrinker.without_chunks(steps)
    steps = shrinker.without_chunks(shrinker.simplify(steps))
    with driver(servers) as made:
        return steps, made.run(steps) or difference


def report(steps, difference):
    """The steps and what they come to, for people."""
    command = line(difference.command).decode("latin-1")
    when = "" if difference.step < len(steps) else "at the end "
    return (f"{show(steps)}\n\n{when}redis answers {command}:\n{difference.redis!r}\n"
            f"{when}skep answers {command}:\n{difference.skep!r}")
