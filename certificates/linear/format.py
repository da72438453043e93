"""The file of a proof of a linear formulation's bound: read as if an enemy had written it."""

import itertools
import json
import re
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from ddlopt.models.errors import SolutionError
from ddlopt.models.files import write_whole_packed
from ddlopt.models.reading import is_fraction

FORMAT, VERSIONS = "ddlopt linear certificate", (1, 2, 3)
"""The name of the format, and its versions: in the first no node fixes columns, and only the third has cuts."""
_FIELDS = {"format", "version", "instance", "instance_digest", "method", "model_digest", "claim", "nodes"}
_OF_CUTS = 3
"""The version that has cuts, and a field for them."""
_OPTIONAL = {"cuts", "cutoff"}
"""Fields that only a file of that version has."""
_DIGEST = re.compile("[0-9a-f]{64}")
# What follows keeps a hostile file from taking all memory or hours; honest ones stay far below.
_MOST_NODES = 2_000_000
# Honest searches make some hundred.
_MOST_CUTS = 100_000
# Doubles go down to 2**-1074, and multipliers are rounded to far fewer bits.
_MOST_EXPONENT = 2_000
# Twice the bits of the largest double's square, for multipliers as well as for values of columns.
_LARGEST = 2**4_000
# As many rows or columns as the format can name.
_MOST_INDEX = 2**31


@dataclass(frozen=True)
class LinearCertificate:
    """A proof that no solution of an instance's formulation is better than ``claim``.

    Parameters
    ----------
    instance, instance_digest : str
        Name, which nothing depends on, and SHA-256.
    method : str
        Name of the exact method whose formulation it is, without options.
    model_digest : str
        SHA-256 of the formulation's rows (``ExactModel.digest``).
    claim : Fraction
        B, of the model with what is maximised turned around.
    nodes : list
        The tree: see ``check_tree``. Row numbers behind those of the model are of ``cuts``.
    cuts : list
        Cutting planes: see ``ddlopt.certificates.linear.cuts``.
    cutoff : Fraction or None
        Where there are cuts: at least the claim, see ``program_of``.
    """

    instance: str
    instance_digest: str
    method: str
    model_digest: str
    claim: Fraction
    nodes: list[list[Any]]
    cuts: list[list[Any]] = field(default_factory=list)
    cutoff: Fraction | None = None

    @classmethod
    def from_data(cls, data: Any, origin: str = "certificate") -> Self:
        """From what JSON gives; every type, range and length is looked at."""

        def refuse(what: str) -> SolutionError:
            return SolutionError(f"{origin}: {what}")

        if not isinstance(data, dict) or set(data) - _OPTIONAL != _FIELDS:
            raise refuse(f"is no certificate; expected the fields {', '.join(sorted(_FIELDS))}")
        if data["format"] != FORMAT or type(data["version"]) is not int or data["version"] not in VERSIONS:
            raise refuse(f"format and version are not '{FORMAT}' and 1, 2 or 3")
        if set(data) & _OPTIONAL != (_OPTIONAL if data["version"] == _OF_CUTS else set()):
            raise refuse(f"has cuts and cutoff if and only if its version is {_OF_CUTS}")
        texts = [data[name] for name in ("instance", "instance_digest", "method", "model_digest", "claim")]
        if not all(isinstance(each, str) for each in texts):
            raise refuse("instance, digests, method and claim are texts")
        if not _DIGEST.fullmatch(data["instance_digest"]) or not _DIGEST.fullmatch(data["model_digest"]):
            raise refuse("a digest is 64 hexadecimal digits")
        if not is_fraction(data["claim"]):
            raise refuse("claim is a fraction like -3/4")
        nodes = data["nodes"]
        if not isinstance(nodes, list) or not 1 <= len(nodes) <= _MOST_NODES:
            raise refuse(f"nodes is a list of 1 to {_MOST_NODES}")
        for place, node in enumerate(nodes):
            wrong = _fault(node, data["version"])
            if wrong:
                raise refuse(f"nodes[{place}] {wrong}")
        cuts, cutoff = data.get("cuts", []), data.get("cutoff", data["claim"])
        if not isinstance(cutoff, str) or not is_fraction(cutoff) or Fraction(cutoff) < Fraction(data["claim"]):
            raise refuse("cutoff is a fraction, at least the claim")
        if not isinstance(cuts, list) or len(cuts) > _MOST_CUTS:
            raise refuse(f"cuts is a list of at most {_MOST_CUTS}")
        for place, cut in enumerate(cuts):
            wrong = _fault_of_cut(cut)
            if wrong:
                raise refuse(f"cuts[{place}] {wrong}")
        return cls(
            data["instance"], data["instance_digest"], data["method"], data["model_digest"], Fraction(data["claim"]),
            nodes, cuts, Fraction(cutoff) if cuts else None,
        )  # fmt: skip

    @property
    def text(self) -> str:
        """The file's content."""
        data = {
            "format": FORMAT,
            "version": _OF_CUTS if self.cuts else 2 if any(node[0] == "fix" for node in self.nodes) else 1,
            "instance": self.instance,
            "instance_digest": self.instance_digest,
            "method": self.method,
            "model_digest": self.model_digest,
            "claim": str(self.claim),
        }
        if self.cuts:
            data["cutoff"] = str(self.claim if self.cutoff is None else self.cutoff)
        head = json.dumps(data, ensure_ascii=False, indent=1)[:-2]
        cuts = f',\n "cuts": [\n{_lines(self.cuts)}\n]' if self.cuts else ""
        return f'{head}{cuts},\n "nodes": [\n{_lines(self.nodes)}\n]}}\n'

    def save(self, path: str | Path) -> None:
        """Write the file, packed where its name ends in ``.gz``; it appears whole or not at all."""
        write_whole_packed(path, self.text)


def _lines(several: list[list[Any]]) -> str:
    return ",\n".join(json.dumps(each, separators=(",", ":")) for each in several)


def _fault(node: Any, version: int) -> str | None:
    """What is wrong with the form of a node."""
    match node:
        case ["branch", column, split] if _is_index(column) and _is_whole(split):
            return None
        case ["fix", *_] if version == 1:
            return "fixes columns, which only version 2 does"
        case ["dual" | "farkas" | "fix", exponent, [*rows], [*multipliers]]:
            if type(exponent) is not int or not 0 <= exponent <= _MOST_EXPONENT:
                return f"has an exponent that is not in 0..{_MOST_EXPONENT}"
            return _fault_of_rows(rows, multipliers)
    return 'is neither ["branch", column, v] nor ["dual", "farkas" or "fix", exponent, rows, multipliers]'


def _fault_of_rows(rows: list[Any], multipliers: list[Any]) -> str | None:
    if len(rows) != len(multipliers):
        return f"has {len(rows)} rows and {len(multipliers)} multipliers"
    if not _is_increasing(rows):
        return "has rows that are not in increasing order, each once"
    return None if all(map(_is_whole, multipliers)) else "has a multiplier that is no whole number in range"


def _fault_of_cut(cut: Any) -> str | None:
    """What is wrong with the form of a cut."""
    match cut:
        case ["mir" | "cg", divisor, [*rows], [*multipliers], [*opposite], [*above]]:
            if not _is_whole(divisor) or divisor < 1:
                return "has a divisor that is no positive whole number in range"
            if not _is_increasing(opposite) or not _is_increasing(above):
                return "has opposite rows or columns from above that are not in increasing order, each once"
            return _fault_of_rows(rows, multipliers) or (
                None if set(opposite) <= set(rows) else "has an opposite row that it does not add up"
            )
    return 'is not ["mir" or "cg", divisor, rows, multipliers, opposite rows, columns from above]'


def _is_increasing(several: list[Any]) -> bool:
    return all(map(_is_index, several)) and all(a < b for a, b in itertools.pairwise(several))


def _is_index(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST_INDEX


def _is_whole(value: Any) -> bool:
    return type(value) is int and -_LARGEST < value < _LARGEST
