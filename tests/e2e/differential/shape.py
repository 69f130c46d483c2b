"""shape.py: what the tables of commands are made of."""

from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Command:
    weight: float
    draw: Callable  # Words -> the arguments
    errors: tuple = ()  # pieces of error texts that a run must have seen
    answers: tuple = ()  # and answers, as outcome() writes them
    has_arity: bool = True  # there is a wrong count of words


NOT_AN_INTEGER = "not an integer or out of range"
SYNTAX = "syntax error"
OVERFLOW = "increment or decrement would overflow"
NO_KEY = "no such key"

NIL_OR_SOME = ("nil", "some")
NO_OR_YES = (":0", ":1")
