"""The algorithms of v1model's hash and checksum functions, over bytes."""

import zlib

from .p4types import Bits


def packed(fields):
    """The bytes of fields (width, value), the first in the highest bits; zeros fill the last byte."""
    bits = width = 0
    for each, value in fields:
        bits = bits << each | Bits(each).wrap(value)
        width += each
    fill = -width % 8
    return (bits << fill).to_bytes((width + fill) // 8, "big")


def csum16(data):
    """The complement of the sum of 16-bit words in ones' complement (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total = sum(data[i] << 8 | data[i + 1] for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


ALGORITHMS = {"csum16": csum16, "crc32": zlib.crc32}
