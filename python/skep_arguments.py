"""skep_arguments.py: what skep.py raises, what it makes of arguments before the library gets them, and
the structs that it passes.

Where ctypes would make what is too large smaller, cut a string at its first null byte, or read a
number as so many null bytes, these functions raise: TypeError, or InvalidArgument. Each returns what
the library is given. Users of skep import skep, which has all that is meant for them."""

import numbers
import operator
import time
from ctypes import Structure, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

# ---- The structs of include/skep.h ----

class Range(Structure):
    _fields_ = [("lo", c_char_p), ("lo_bytes", c_size_t), ("hi", c_char_p),
                ("hi_bytes", c_size_t), ("flags", c_uint32)]


class Item(Structure):
    _fields_ = [("key", c_void_p), ("key_bytes", c_size_t), ("value", c_void_p),
                ("value_bytes", c_size_t)]


class Key(Structure):
    _fields_ = [("at", c_char_p), ("bytes", c_size_t)]


class Value(Structure):
    _fields_ = [("at", c_void_p), ("bytes", c_size_t)]


class Outcome(Structure):
    _fields_ = [("verdict", c_int), ("code", c_int), ("text", c_char_p), ("detail", c_uint64),
                ("present", c_int), ("more", c_int), ("item_count", c_uint32),
                ("integer", c_int64), ("value", c_void_p), ("value_bytes", c_size_t),
                ("deadline_ms", c_uint64), ("version", c_uint64)]


# ---- Errors ----

class Error(Exception):
    """A call that failed. `detail` is the number that the class speaks of, or 0."""

    def __init__(self, text, detail=0):
        super().__init__(text)
        self.detail = detail


class InvalidArgument(Error, ValueError):
    """The request is wrong; sending it again will fail again."""


class NotSupported(Error):
    """This engine or build cannot do that; another one may."""


class TooLarge(Error):
    """A key, value or batch exceeds a limit; `detail` is the limit in bytes."""


class OutOfMemory(Error):
    """The memory limit is reached; deletes still work; `detail` is the limit."""


class SnapshotTooOld(Error):
    """The snapshot reached its age limit or was revoked; take a new one."""


class Unavailable(Error):
    """The peer, file or device is gone for now; retry with pauses. A write may have been done."""


class Aborted(Error):
    """Nothing of the atomic batch was applied."""


class IoError(Error):
    """The operating system refused; `detail` is the errno."""


class Corrupt(Error):
    """Stored bytes fail their check; `detail` is the offset."""


class Moved(Error):
    """The keys are another server's by the map of ranges; nothing was done; `detail` is the version
    of the map by which this server goes."""


class WrongType(Error):
    """The value at the key is not plain bytes; `detail` is its type."""


ERRORS = [None, InvalidArgument, NotSupported, TooLarge, OutOfMemory, SnapshotTooOld, Unavailable,
           Aborted, IoError, Corrupt, Moved, WrongType]


def error_of(code, text, detail):
    return (ERRORS[code] if code < len(ERRORS) else Error)(text, detail)


# For people they are skep's.
for _kind in [Error, *filter(None, ERRORS)]:
    _kind.__module__ = "skep"


# ---- Arguments ----

UINT32_MAX, UINT64_MAX = 2**32 - 1, 2**64 - 1
NO_LIMIT = UINT32_MAX
DEADLINE_MS_MAX = 2**56 - 1  # kDeadlineMax of skep/batch.h


def as_bytes(text):
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode()
    try:
        return memoryview(text).tobytes()
    except TypeError:
        raise TypeError(f"keys and values are bytes or str, not {type(text).__name__}") from None


def as_pair(text):
    data = as_bytes(text)
    return data, len(data)


def as_number(name, value, least, most):
    """An integer from `least` to `most`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is an integer, not {type(value).__name__}") from None
    if not least <= number <= most:
        raise InvalidArgument(f"{name} is from {least} to {most}, not {number}", most)
    return number


def as_limit(name, value):
    """The largest number stands for no limit, so a limit is below it."""
    return NO_LIMIT if value is None else as_number(name, value, 0, NO_LIMIT - 1)


def as_text(name, value):
    if not isinstance(value, str):
        raise TypeError(f"{name} is a str, not {type(value).__name__}")
    if "\0" in value:
        raise InvalidArgument(f"{name} has a null character")
    return value.encode("utf-8", "surrogateescape")


def one_of(name, value, choices):
    """What `choices`, a dict, has for it."""
    try:
        return choices[value]
    except (KeyError, TypeError):
        known = ", ".join(map(repr, choices))
        raise InvalidArgument(f"{name} is one of {known}, not {value!r}") from None


def as_milliseconds(name, seconds):
    if not isinstance(seconds, numbers.Real):
        raise TypeError(f"{name} is a number of seconds, not {type(seconds).__name__}")
    try:
        return round(seconds * 1000)
    except (OverflowError, ValueError):  # infinite, or no number
        raise InvalidArgument(f"{name} is not a time: {seconds}") from None


def as_deadline(until, ttl=None):
    """0: never. A time before 1970 has passed as well as the first millisecond of it."""
    if until is not None and ttl is not None:
        raise InvalidArgument("a key expires at `until` or after `ttl`, not both")
    if ttl is not None:
        deadline = round(time.time() * 1000) + as_milliseconds("ttl", ttl)
    elif until is not None:
        deadline = as_milliseconds("until", until)
    else:
        return 0
    if deadline > DEADLINE_MS_MAX:
        raise InvalidArgument("the deadline is too late", DEADLINE_MS_MAX)
    return max(1, deadline)
