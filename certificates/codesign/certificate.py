"""The file of a proof by choices of strategies, read as if an enemy had written it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, ClassVar

import numpy as np

from ddlopt.certificates.codesign.choices import Choices
from ddlopt.certificates.codesign.exact import ExactFigures, Sent, part_of
from ddlopt.certificates.own import OwnCertificate
from ddlopt.certificates.topology import DesignCertificate, check_certificate
from ddlopt.certificates.topology.exact_bounds import exact_lower_bound
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.errors import InfeasibleError, NotApplicableError, RefutedError, SolverError
from ddlopt.models.topology.instance import TopologyInstance

_MOST_SERVERS = 16
"""Beyond, no branch and bound on designs ends."""
_MOST_LAYERS, _MOST_PAIRS = 1000, 10**5
"""Also the most edges; and pairs of strategies along these, each with rows of whole numbers."""
_MOST_CHOICES = 2**40
"""Most are excluded many at a time."""
_MOST_JOBS, _MOST_NUMBERS = 1000, 10**7
"""Of a file."""
_ARRAYS = {
    "words": ("int32", 1),
    "part_words": ("uint32", 1),
    "lengths": ("uint16", 2),
    "prices": ("int64", 2),
    "images": ("int32", 2),
}
_DESIGN = {"unit_exponent", "bound_units", *_ARRAYS}


@dataclass(frozen=True)
class ChoiceCertificate(OwnCertificate):
    r"""A proof that no plan of a co-design instance takes less than ``claim`` seconds.

    The checker goes through all choices of strategies in whole numbers (:class:`.Choices`). What is left by sums is
    excluded one by one. With the compute time of the choice in rational numbers, its job would have to be served with
    less than some y bytes on the busiest link; and either the topology's combinatorial bound says that it is not
    (:func:`~ddlopt.certificates.topology.exact_bounds.exact_lower_bound`), or a job of the file does. Of that job,
    which some choice makes, the file has a branch and bound over designs
    (:mod:`~ddlopt.certificates.topology.check`): no links, rings and routes serve it with v bytes or less. Links
    that serve a job serve any part of it, and λ of everything with λ of the load; so a choice that sends at least λ of
    all that the job does needs more than λ v.

    Bytes count a little less than they are (:data:`~ddlopt.certificates.codesign.exact.ROOM`), as the check of
    plans adds them up in double precision.

    Parameters
    ----------
    jobs : list of dict
        ``choices``, the place of a strategy for each layer, and ``design``, the fields of a
        ``DesignCertificate`` of a topology for the job that they make: ``unit_exponent``,
        ``bound_units`` and the arrays as lists.
    """

    format: ClassVar[str] = "ddlopt choice certificate"
    kind: ClassVar[str] = "choices"
    says: ClassVar[str] = "of the instance, by all choices of strategies and branch and bound for those that are left"

    jobs: list[dict[str, Any]]

    @classmethod
    def fault(cls, data: dict[str, Any]) -> str | None:
        """Whole numbers of their types, and rows of equal lengths."""
        jobs = data["jobs"]
        if not isinstance(jobs, list) or len(jobs) > _MOST_JOBS:
            return f"jobs is a list of at most {_MOST_JOBS}"
        left = _MOST_NUMBERS
        for place, job in enumerate(jobs):
            where = f"jobs[{place}]"
            if not isinstance(job, dict) or set(job) != {"choices", "design"}:
                return f"{where} has choices and a design"
            if not _are_whole(job["choices"], 0, 2**31) or len(job["choices"]) > _MOST_LAYERS:
                return f"{where}.choices has at most {_MOST_LAYERS} places of strategies"
            design = job["design"]
            if not isinstance(design, dict) or set(design) != _DESIGN:
                return f"{where}.design has the fields {sorted(_DESIGN)}"
            if not _are_whole([design["unit_exponent"], design["bound_units"]], -(2**31), 2**31):
                return f"{where}.design has a unit and a bound in whole numbers"
            for name, (kind, dimensions) in _ARRAYS.items():
                wrong, count = _not_an_array(design[name], kind, dimensions)
                left -= count
                if wrong or left < 0:
                    return f"{where}.design.{name} {wrong or f'is beyond {_MOST_NUMBERS} numbers in all'}"
        return None

    def check(self, instance: CodesignInstance, expired: Callable[[], bool]) -> int:
        """Raise RefutedError if a choice is left; how many choices of the first layers were looked at.

        Raises
        ------
        NotApplicableError
            If choices of the instance are not gone through.
        """
        reason = not_gone_through(instance)
        if reason is not None:
            raise NotApplicableError(f"choices are no proof for '{instance.name}': {reason}")
        if self.claim <= 0:
            return 0
        figures = ExactFigures(instance)
        proven: list[tuple[Sent, Fraction]] = []
        for place, job in enumerate(self.jobs):
            if expired():
                return 0
            proven.append(self._proven(place, job, figures, expired))
        choices = Choices(figures, self.claim)
        for chosen in choices.left(expired):
            needed, sent = needed_bytes(figures, chosen, self.claim), figures.sent(chosen)
            if needed <= 0 or any(part_of(sent, smaller) * load >= needed for smaller, load in proven):
                continue
            if least_bytes(figures.job(sent)) < needed and not expired():
                names = ", ".join(layer.strategies[a].name for layer, a in zip(instance.layers, chosen, strict=True))
                told = f"the choice of {names[:200]} is left, so that the claim of {float(self.claim):.12g} s"
                raise RefutedError(f"of '{instance.name}' {told} does not follow")
        return choices.cases + len(proven)

    def _proven(
        self, place: int, job: dict[str, Any], figures: ExactFigures, expired: Callable[[], bool]
    ) -> tuple[Sent, Fraction]:
        """What the job sends, and the bytes that no design carries it with."""
        choices = job["choices"]
        if len(choices) != len(figures.sizes) or any(a >= size for a, size in zip(choices, figures.sizes, strict=True)):
            raise RefutedError(f"jobs[{place}] has other layers or strategies than '{figures.instance.name}'")
        sent = figures.sent(choices)
        topology = figures.job(sent)
        if topology is None:
            raise RefutedError(f"jobs[{place}] sends nothing")
        design = design_of(topology, job["design"])
        try:
            return sent, check_certificate(topology, design, expired=expired).bound_bytes
        except SolverError:
            return sent, Fraction(0)  # the time is up


def needed_bytes(figures: ExactFigures, choices: tuple[int, ...], claim: Fraction) -> Fraction:
    """Bytes on the busiest link from which on a plan with these strategies takes as long as the claim says."""
    compute = figures.compute(choices)
    if compute >= claim:
        return Fraction(0)
    return (claim if figures.instance.overlap == "full" else claim - compute) * figures.rate


def least_bytes(job: TopologyInstance | None) -> Fraction | float:
    """The topology's combinatorial bound on the busiest link, in rational numbers; infinite if no links serve it."""
    if job is None:
        return Fraction(0)
    try:
        return exact_lower_bound(job) * Fraction(job.link_bandwidth_bytes_per_s)
    except InfeasibleError:
        return math.inf


def design_of(job: TopologyInstance, fields: dict[str, Any]) -> DesignCertificate:
    """The certificate of a job, from the fields in a file."""
    n = job.servers
    columns = {"lengths": n * n, "prices": (n * n if job.optics == "duplex" else n) + 1, "images": n + 1}
    arrays = {name: np.array(fields[name], kind) for name, (kind, _) in _ARRAYS.items()}
    # A list of no rows does not say how long they are.
    arrays |= {name: np.zeros((0, many), _ARRAYS[name][0]) for name, many in columns.items() if not fields[name]}
    return DesignCertificate(job.name, job.digest, fields["unit_exponent"], fields["bound_units"], **arrays)


def fields_of(design: DesignCertificate) -> dict[str, Any]:
    """The fields as a file has them."""
    arrays = {name: getattr(design, name).tolist() for name in _ARRAYS}
    return {"unit_exponent": int(design.unit_exponent), "bound_units": int(design.bound_units)} | arrays


def not_gone_through(instance: CodesignInstance) -> str | None:
    """Why choices of an instance are not gone through; None if they may be."""
    if instance.servers > _MOST_SERVERS:
        return f"{instance.servers} servers are too many"
    if len(instance.layers) > _MOST_LAYERS or len(instance.edges) > _MOST_LAYERS:
        return f"{len(instance.layers)} layers and {len(instance.edges)} edges are too many"
    sizes = [len(layer.strategies) for layer in instance.layers]
    if sum(sizes) + sum(sizes[i] * sizes[j] for i, j in instance.edges) > _MOST_PAIRS:
        return "there are too many pairs of strategies along edges"
    many = prod(sizes)
    return f"{float(many):.3g} choices are too many" if many > _MOST_CHOICES else None


def _are_whole(values: Any, low: int, high: int) -> bool:
    return isinstance(values, list) and all(type(each) is int and low <= each < high for each in values)


def _not_an_array(values: Any, kind: str, dimensions: int) -> tuple[str, int]:
    """What is wrong with an array, and how many numbers it has."""
    rows = values if dimensions == 2 else [values]
    limits = np.iinfo(kind)
    fits = isinstance(rows, list) and all(_are_whole(row, int(limits.min), int(limits.max) + 1) for row in rows)
    if not fits or len({len(row) for row in rows}) > 1:
        return f"is no array of type {kind} with {dimensions} dimensions", 0
    return "", sum(map(len, rows))
