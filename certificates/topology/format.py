r"""What a certificate of the branch and bound over designs consists of, and its file.

A certificate proves "every design of the instance loads some link with more than :math:`z 2^e` bytes". It is a tree
of cases, cut into *parts*, and the whole-number weights that close the cases; :mod:`.check` says what each step means
and why it is sound. Nothing here knows how a certificate was found, or decides whether it proves anything.

The file is packed by gzip. Unpacked, it is a header, which is one line of JSON that ends with a line feed, and then
five arrays without anything between or after them, little-endian, row by row:

====================  =========  ==================================================================================
array                 type       holds
====================  =========  ==================================================================================
``words``             int32      the parts one after the other
``part_words``        uint32     of how many words each part consists
``lengths``           uint16     for each weight n² arc lengths: that of the arc from s to v at s n + v
``prices``            int64      for each weight n prices of receivers (n² of arcs for duplex optics) and the tax
``images``            int32      for each image the number of a part, and of each server the one it is taken to
====================  =========  ==================================================================================

A *neighbour set* of server s is written as its number, from 0, in the list of the sets of s. The list holds the sets
of d members, then those of d - 1, and so on down to none; sets of one size are in lexicographic order of their members
in increasing order. Members are the other servers; they may repeat if links may be parallel. With one-way optics,
parallel links and forwarding the list ends after the sets of d members.

Words, by value:

===========  ====================  ====================================================================================
word         followed by           means
===========  ====================  ====================================================================================
-1           nothing               ``CLOSED``: the case is refuted by what was applied to it
-2           a server              ``BRANCH``: the case is divided by the neighbour set of the server; for each set its
                                   number and the words of that case follow, and ``END`` after the last
-3           nothing               ``END`` of a branching
-4           a part                ``ELSEWHERE``: the words of that part go on with the case
-5           an image              ``IMAGE``: the case is what an automorphism makes of the case where a part begins
-6           nothing               ``UNCOLOURABLE``: duplex, one design is left, and it cannot be spread over d planes
-10 - i      nothing               weight i is applied to the case, whose words go on
===========  ====================  ====================================================================================

The last part is the root, where nothing is decided. ``ELSEWHERE`` and ``IMAGE`` name parts with smaller numbers than
that of the part they stand in, so that the parts in their order are a proof from its premises to its conclusion. Each
part but the root is named by exactly one ``ELSEWHERE``, and each image by exactly one ``IMAGE``.
"""

import json
import zlib
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import SolutionError
from ddlopt.models.files import replacing
from ddlopt.models.reading import UnreadableError, parsed, read_bytes, refuse_larger, unpacked

# Words of the format; servers are 0 and up, so that commands are negative. They never change.
CLOSED, BRANCH, END, ELSEWHERE, IMAGE, UNCOLOURABLE, FIRST_WEIGHT = -1, -2, -3, -4, -5, -6, -10
MOST_UNITS = 2**30
"""All bytes of the instance together are at most this number of units of 2^e bytes, and so is z."""
# With all units, 2^30, a product of 46 bits: see ``MOST_PRICE``.
MOST_LENGTH = 2**16 - 1
# A length times all units: 2^16 2^30.
MOST_PRICE = 2**46
# A checker's tables have sets times servers entries: 20 megabytes. With 2^46 for a price sums stay below 2^63.
MOST_SERVERS, MOST_LINKS, MOST_SETS = 128, 2048, 20_000
LEAST_EXPONENT, MOST_EXPONENT = -1074, 990
"""Of the unit: z 2^e is then a double-precision number, exactly."""
# More than a search of hours writes; the table of their places takes 128 megabytes.
MOST_PARTS = 2**24

# Of the first line; the version rises when an old checker could no longer read it.
FORMAT, VERSION = "ddlopt topology certificate", 1
_FIELDS = {
    "format": str, "version": int, "instance": str, "instance_digest": str, "servers": int, "price_columns": int,
    "unit_exponent": int, "bound_units": int, "words": int, "parts": int, "weights": int, "images": int,
}  # fmt: skip
# A header is some 300 bytes.
_LONGEST_HEADER = 4096


@dataclass(frozen=True)
class DesignCertificate:
    """A proof that every design of an instance loads some link with more than ``bound_units`` · 2^``unit_exponent``.

    Parameters
    ----------
    instance : str
        Its name, which nothing depends on.
    instance_digest : str
        Its SHA-256, as ``ddlopt show`` prints it.
    unit_exponent, bound_units : int
        e and z.
    words : (many,) int32 array
    part_words : (parts,) uint32 array
    lengths : (weights, n * n) uint16 array
    prices : (weights, n + 1) int64 array, or (weights, n * n + 1) for duplex optics
    images : (images, n + 1) int32 array
        What the arrays hold is said at the top of :mod:`ddlopt.certificates.topology.format`.
    """

    instance: str
    instance_digest: str
    unit_exponent: int
    bound_units: int
    words: npt.NDArray[np.int32]
    part_words: npt.NDArray[np.uint32]
    lengths: npt.NDArray[np.uint16]
    prices: npt.NDArray[np.int64]
    images: npt.NDArray[np.int32]

    @property
    def bound(self) -> Fraction:
        """What is claimed, in bytes on the busiest link, exactly."""
        return self.bound_units * Fraction(2) ** self.unit_exponent

    @property
    def bound_bytes(self) -> float:
        """The same as a floating-point number, which has it exactly."""
        return float(self.bound)

    @property
    def size_bytes(self) -> int:
        """Memory of all arrays."""
        return sum(getattr(self, name).nbytes for name in _ARRAYS)

    def save(self, path: str | Path) -> None:
        """Write the file; it appears whole or not at all.

        Raises
        ------
        OptionError
            If it cannot be written.
        """
        header = {
            "format": FORMAT,
            "version": VERSION,
            "instance": self.instance[:200],
            "instance_digest": self.instance_digest,
            "servers": self.images.shape[1] - 1,
            "price_columns": self.prices.shape[1],
            "unit_exponent": int(self.unit_exponent),
            "bound_units": int(self.bound_units),
            "words": len(self.words),
            "parts": len(self.part_words),
            "weights": len(self.lengths),
            "images": len(self.images),
        }
        with replacing(path) as temporary, temporary.open("wb") as file:
            pack = zlib.compressobj(6, wbits=31)
            file.write(pack.compress(json.dumps(header).encode() + b"\n"))
            for name, kind in _ARRAYS.items():
                file.write(pack.compress(np.ascontiguousarray(getattr(self, name), kind).tobytes()))
            file.write(pack.flush())

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a file, which nobody vouches for; see :mod:`.check` for whether it proves anything.

        Raises
        ------
        SolutionError
            If it is not a regular file, or not a certificate of this version, whole and with nothing after it.
        """
        try:
            content = read_bytes(path)
            content = content if Path(path).suffix == ".gz" else unpacked(content)
            line, _, arrays = content.partition(b"\n")
            if len(line) > _LONGEST_HEADER or len(line) == len(content):
                raise _MalformedError("its header does not end")
            return cls._of(_header(line), arrays)
        except _MalformedError as problem:
            raise SolutionError(f"{path}: is no certificate: {problem}") from None
        except UnreadableError as problem:
            raise SolutionError(f"{path}: cannot be read: {problem}") from None

    @classmethod
    def _of(cls, header: dict[str, Any], content: bytes) -> Self:
        n, columns = header["servers"], header["price_columns"]
        many, parts, weights, images = (header[name] for name in ("words", "parts", "weights", "images"))
        shapes = ((many,), (parts,), (weights, n * n), (weights, columns), (images, n + 1))
        sizes = [int(np.prod(shape, dtype=object)) * np.dtype(kind).itemsize
                 for shape, kind in zip(shapes, _ARRAYS.values(), strict=True)]  # fmt: skip
        refuse_larger(sum(sizes))
        missing = sum(sizes) - len(content)
        if missing:
            raise _MalformedError(
                f"{missing} bytes are missing at its end" if missing > 0 else "something follows its end"
            )
        ends = list(accumulate(sizes))
        arrays: dict[str, Any] = {
            name: np.frombuffer(content[end - size : end], kind).astype(kind[1:], copy=False).reshape(shape)
            for (name, kind), size, end, shape in zip(_ARRAYS.items(), sizes, ends, shapes, strict=True)
        }
        names = ("instance", "instance_digest", "unit_exponent", "bound_units")
        return cls(*(header[name] for name in names), **arrays)


_ARRAYS = {"words": "<i4", "part_words": "<u4", "lengths": "<u2", "prices": "<i8", "images": "<i4"}


class _MalformedError(Exception):
    """What is wrong with a file."""


def _header(line: bytes) -> dict[str, Any]:
    """The fields of the first line, each of the right type and none twice; counts are not negative."""
    try:
        header = parsed(line.decode("ascii"))
    except ValueError as problem:
        raise _MalformedError(f"its first line is not JSON: {problem}") from None
    if not isinstance(header, dict):
        raise _MalformedError("its first line is not a JSON object")
    if header.get("format") != FORMAT:
        raise _MalformedError(f"its format is not '{FORMAT}'")
    if header.get("version") != VERSION:
        raise _MalformedError(f"it is not of version {VERSION}, the only one that is read")
    if header.keys() != _FIELDS.keys():
        raise _MalformedError(f"its header must have these fields: {', '.join(_FIELDS)}")
    for name, kind in _FIELDS.items():
        if type(header[name]) is not kind:
            raise _MalformedError(f"{name} in its header is not {'text' if kind is str else 'a whole number'}")
    for name in ("servers", "price_columns", "words", "parts", "weights", "images"):
        if not 0 <= header[name] < 2**40:
            raise _MalformedError(f"{name} in its header is out of range")
    return header
