"""Where in a program's text something stands, and how a program is refused."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    file: str
    line: int
    column: int

    def __str__(self):
        return f"{self.file}:{self.line}:{self.column}"


class P4Error(Exception):
    """A program, or what it is run with, is refused. The text is one line for a person."""

    def __init__(self, place, message):
        super().__init__(f"{place}: error: {message}" if place else f"error: {message}")
        self.place = place
        self.message = message


def beyond_subset(place, what):
    """The refusal of what a compiler takes and this interpreter does not."""
    return P4Error(place, f"{what} is not in the subset of this interpreter")
