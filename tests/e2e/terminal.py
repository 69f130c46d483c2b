"""terminal.py: a program on a terminal of its own, and what a person would see there."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from skep_process import PATIENCE_S, end_with_parent

COLUMNS = 100
CONTROL = re.compile(r"\x1b\[([?\d;]*)([A-Za-z@])|\x1b[=>78]|\x1b\([A-Z0-9]")


class Screen:
    """The lines of a terminal that never scrolls. What it does not know it passes over."""

    def __init__(self):
        self.lines = [""]
        self.row = self.column = 0

    def text(self):
        return "\n".join(line.rstrip() for line in self.lines)

    def put(self, text):
        while text:
            if found := CONTROL.match(text):
                text = text[found.end():]
                if found.group(2):
                    self._control(found.group(2), found.group(1))
            else:
                self._character(text[0])
                text = text[1:]

    def _character(self, c):
        if c == "\n":
            self.row += 1
        elif c == "\r":
            self.column = 0
        elif c == "\b":
            self.column = max(0, self.column - 1)
        elif c >= " ":
            line = self._line()
            self.lines[self.row] = line[:self.column] + c + line[self.column + 1:]
            self.column += 1

    def _line(self):
        while len(self.lines) <= self.row:
            self.lines.append("")
        return self.lines[self.row].ljust(self.column)

    def _control(self, what, number):
        count = int(number) if number.isdigit() else 1
        line = self._line()
        if what == "A":
            self.row = max(0, self.row - count)
        elif what == "B":
            self.row += count
        elif what == "C":
            self.column += count
        elif what == "D":
            self.column = max(0, self.column - count)
        elif what == "G":
            self.column = count - 1
        elif what in "KJ":
            self.lines[self.row] = line[:self.column]
            if what == "J":
                del self.lines[self.row + 1:]
        elif what == "P":
            self.lines[self.row] = line[:self.column] + line[self.column + count:]
        elif what == "@":
            self.lines[self.row] = line[:self.column] + " " * count + line[self.column:]


def take_terminal():
    """In a child: standard input is its terminal, whose signals it gets also where a shell that runs the
    test in its background ignores them; and it ends with the test."""
    end_with_parent()
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    def __init__(self, command, environment):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        self.popen = subprocess.Popen(
            [str(word) for word in command], stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, env=environment,
            preexec_fn=take_terminal)
        os.close(slave)
        self.screen = Screen()

    def type(self, text):
        os.write(self.master, text.encode())

    def wait_for(self, pattern):
        """Waits until the screen, to its end, has the pattern."""
        deadline = time.monotonic() + PATIENCE_S
        while not re.search(pattern + r"\Z", self.screen.text()):
            if not self._read(deadline):
                raise AssertionError(f"no {pattern!r} at the end of:\n{self.screen.text()}")

    def echoes(self):
        """Whether the terminal itself shows what is typed: no editor does."""
        return bool(termios.tcgetattr(self.master)[3] & termios.ECHO)

    def end(self):
        """Waits for the end of the program; its exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(deadline):
            pass
        return self.popen.wait(PATIENCE_S)

    def close(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        os.close(self.master)

    def _read(self, deadline):
        """Reads output. False: there is none any more, or it takes too long."""
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([self.master], [], [], left)[0]:
            return False
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:  # the program has ended
            return False
        self.screen.put(data.decode(errors="replace"))
        return bool(data)
