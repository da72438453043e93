"""What a problem's room here has: proofs of a kind that no other problem has, and its bound without rounding."""

import json
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

from ddlopt.models.errors import SolutionError
from ddlopt.models.files import write_whole_packed
from ddlopt.models.reading import is_fraction

_LONGEST_ORDER = 10_000
"""Of a file; trees end with some ten things that are decided."""
_BEYOND = 2**1023
"""Of claims: far from any objective, and messages can still tell them as numbers."""
_SHARED = ("format", "version", "instance", "instance_digest", "claim")


@dataclass(frozen=True)
class OwnCertificate:
    """A proof that no solution of an instance is better than ``claim``; :func:`own_certificate` gives the class.

    A subclass is a frozen dataclass whose further fields are what JSON has, lists as they are read. The problem's room
    among the solvers makes it, in ``prove.py``: ``prove(instance, solution, target, expired)`` returns the best that
    it found, or None.

    Parameters
    ----------
    instance, instance_digest : str
        Name, which nothing depends on, and SHA-256.
    claim : Fraction
        On the instance's objective.

    Attributes
    ----------
    format : str
        By which a file says what it is.
    kind, says : str
        In a word, and of what it holds in a line for people.
    witness : bool
        Whether it names what the combinatorial bound is found by, and is found as soon: a file with less to believe,
        which is written in place of the name of that bound.
    """

    format: ClassVar[str]
    kind: ClassVar[str]
    says: ClassVar[str]
    witness: ClassVar[bool] = False

    instance: str
    instance_digest: str
    claim: Fraction

    @classmethod
    def own_fields(cls, optional: bool) -> tuple[str, ...]:
        """Names of the fields that are not shared: those that every file has, or those with a default, which may lack.

        A file has no optional field that says nothing.
        """
        own = (each for each in fields(cls) if each.name not in _SHARED)
        return tuple(each.name for each in own if optional == (each.default_factory is not MISSING))

    @classmethod
    def fault(cls, data: dict[str, Any]) -> str | None:
        """What is wrong with the form of the own fields: types, ranges and lengths, before anything is calculated."""
        raise NotImplementedError

    def check(self, instance: Any, expired: Callable[[], bool]) -> int:
        """Check the proof in whole or rational numbers, and return how many cases it has.

        Where the time has ``expired`` it may return at once: what it says is not asked then.

        Raises
        ------
        RefutedError
            If it does not prove the claim.
        """
        raise NotImplementedError

    @classmethod
    def from_data(cls, data: Any, origin: str = "certificate") -> Self:
        """From what JSON gives.

        Raises
        ------
        SolutionError
            If a field is missing, or of another type.
        """
        wanted, more = {*_SHARED, *cls.own_fields(optional=False)}, set(cls.own_fields(optional=True))
        if not isinstance(data, dict) or set(data) - more != wanted or data["format"] != cls.format:
            raise SolutionError(f"{origin}: is no {cls.kind} certificate; expected the fields {sorted(wanted)}")
        if type(data["version"]) is not int or data["version"] != 1:
            raise SolutionError(f"{origin}: version is {data['version']!r}; expected 1")
        texts = [data[name] for name in ("instance", "instance_digest", "claim")]
        if not all(isinstance(each, str) for each in texts) or not is_fraction(data["claim"]):
            raise SolutionError(f"{origin}: instance, digest and claim are texts, the claim a fraction like -3/4")
        if abs(Fraction(data["claim"])) >= _BEYOND:
            raise SolutionError(f"{origin}: the claim is beyond what a number can be")
        wrong = cls.fault(data)
        if wrong:
            raise SolutionError(f"{origin}: {wrong}")
        own = {name: each for name, each in data.items() if name not in ("format", "version", "claim")}
        return cls(claim=Fraction(data["claim"]), **own)

    @property
    def text(self) -> str:
        """The file's content."""
        data = {"format": self.format, "version": 1, "instance": self.instance, "instance_digest": self.instance_digest}
        own = {name: getattr(self, name) for name in self.own_fields(optional=False)}
        own |= {name: each for name in self.own_fields(optional=True) if (each := getattr(self, name))}
        return json.dumps(data | {"claim": str(self.claim)} | own, ensure_ascii=False, separators=(",", ":")) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the file, packed where its name ends in ``.gz``; it appears whole or not at all."""
        write_whole_packed(path, self.text)


def fault_of_order(order: Any, thing: str) -> str | None:
    """What is wrong with an order in which things are decided, each once."""
    if not isinstance(order, list) or not 1 <= len(order) <= _LONGEST_ORDER:
        return f"order is a list of 1 to {_LONGEST_ORDER} {thing}s"
    if not all(type(each) is int for each in order) or sorted(order) != list(range(len(order))):
        return f"order has each {thing} from 0 on once"
    return None


def own_certificate(problem: str) -> type[OwnCertificate] | None:
    """The kind of proofs that only one problem has, by its path: ``OWN`` of its room here; None where there is none."""
    room, home = _said_in_room(problem, "OWN")
    if home is None:
        return None
    module, _, name = home.partition(":")
    found: type[OwnCertificate] = getattr(import_module(f"{room}.{module}"), name)
    return found


def exact_bound_of(problem: str) -> Callable[[Any], Fraction] | None:
    """The combinatorial bound of a problem without any rounding, by its path: ``EXACT_BOUND`` of its room here.

    Returns
    -------
    callable or None
        ``exact_bound(instance)``, a bound on the objective of every solution; None where nothing of the bound can be
        recomputed in rational numbers.
    """
    _, home = _said_in_room(problem, "EXACT_BOUND")
    if home is None:
        return None
    module, _, name = home.partition(":")
    found: Callable[[Any], Fraction] = getattr(import_module(module), name)
    return found


def _said_in_room(problem: str, name: str) -> tuple[str, str | None]:
    """The package of a problem's room here, and what it says under a name; None where there is no room, or nothing."""
    room = f"ddlopt.certificates.{problem.replace('/', '.')}"
    try:
        return room, getattr(import_module(room), name, None)
    except ModuleNotFoundError as missing:
        if f"{room}.".startswith(f"{missing.name}."):
            return room, None
        raise  # the room is there, and something that it imports is not
