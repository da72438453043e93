"""What the library proves of an instance, beside what a run did: its bound, and by what evidence."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ddlopt.analysis import tables
from ddlopt.instances import index
from ddlopt.instances.library import certificates
from ddlopt.models.contracts import Instance
from ddlopt.solvers.contracts import Result, Status, relative_gap

_EXACT = ("certificate", "combinatorial")


@dataclass(frozen=True)
class Known:
    """What the library has of an instance.

    Parameters
    ----------
    name : str
    objective, bound : float or None
        Of the best known solution, and the best bound on every one.
    exact : bool
        Whether the library has a proof of the bound that is checked in whole numbers.
    """

    name: str
    objective: float | None
    bound: float | None
    exact: bool


def known(instance: Instance | str) -> Known | None:
    """What the library has of an instance, or of one with a digest; None if it is not in it."""
    return _by_digest().get(instance if isinstance(instance, str) else instance.digest)


@cache
def _by_digest() -> Mapping[str, Known]:
    proofs = certificates.entries()
    return {
        listed.digest: Known(listed.name, listed.objective, listed.bound, _is_exact(proofs.get(listed.name), listed))
        for listed in index.read().instances.values()
    }


def _is_exact(entry: Mapping[str, object] | None, listed: index.Listed) -> bool:
    return entry is not None and entry["instance_digest"] == listed.digest and entry["evidence"] in _EXACT


def status_text(result: Result, known: Known | None) -> str:
    """The status in words; an optimum that the library proves exactly is not called one in floating point."""
    proven = (
        known is not None
        and known.exact
        and result.status is Status.OPTIMAL
        and (relative_gap(result.objective, known.bound, result.sense) or 0.0) <= index.PROVEN
    )
    told = tables.status_text(result)
    return "optimal (exact certificate in the library)" if proven and "floating" in told else told
