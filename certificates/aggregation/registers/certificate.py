"""The file of a proof for placements in registers, read as if an enemy had written it."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, lcm
from typing import Any, ClassVar

import numpy as np

from ddlopt.certificates.aggregation.registers.exact_bounds import exact_weights
from ddlopt.certificates.aggregation.registers.placing_kernel import FOUND, PAUSED, Ints, search
from ddlopt.certificates.own import OwnCertificate, fault_of_order
from ddlopt.models.aggregation.registers.instance import RegisterInstance
from ddlopt.models.errors import NotApplicableError, RefutedError

_LARGEST = 2**50
"""Of all pairs of all batches, weighted: with what one more parameter adds anywhere sums are far below 2^63."""
_MOST_NUMBERS = 2**24
"""Of where each parameter may be at each depth: 128 MB."""
_PORTION = 4_000_000
"""Parameters of batches times arrays that are looked at between two looks at the clock: a fraction of a second."""


@dataclass(frozen=True)
class PlacementCertificate(OwnCertificate):
    """A proof that no placement has fewer than ``claim`` weighted pairs in one array and one batch.

    The checker goes through all placements, parameter by parameter, in whole numbers
    (:mod:`~ddlopt.certificates.aggregation.registers.placing_kernel`), and finds none that costs less. Weights are
    multiplied until they are whole, or rounded down where these would be too large: then placements cost no more than
    they do.

    Parameters
    ----------
    order : list of int
        All parameters; of those with as few arrays left the first is placed next. Any order proves the same, and a
        good one soon.
    """

    format: ClassVar[str] = "ddlopt placement certificate"
    kind: ClassVar[str] = "placements"
    says: ClassVar[str] = "of the instance, by a tree of all placements in whole numbers"

    order: list[int]

    @classmethod
    def fault(cls, data: dict[str, Any]) -> str | None:
        """Whole numbers, each once."""
        return fault_of_order(data["order"], "parameter")

    def check(self, instance: RegisterInstance, expired: Callable[[], bool], most_cases: int | None = None) -> int:
        """Raise RefutedError if a placement is left; how many partial placements were looked at.

        It stops after ``most_cases``, where a search wants no more.

        Raises
        ------
        NotApplicableError
            If the goal is not collisions, or there are too many parameters.
        """
        reason = not_placed(instance)
        if reason is not None:
            raise NotApplicableError(f"placements are no proof for '{instance.name}': {reason}")
        n, arrays = instance.parameters, instance.arrays
        if len(self.order) != n:
            raise RefutedError(f"the order has {len(self.order)} parameters, but there are {n}")
        batches, weights, most = _whole(instance, self.claim)
        if most < 0:
            return 0
        of: list[list[int]] = [[] for _ in range(n)]
        for t, batch in enumerate(batches):
            for i in batch:
                of[i].append(t)
        first = np.cumsum([0, *map(len, of)])
        flat: Ints = np.array([t for own in of for t in own], np.int64)
        chosen, following = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
        free, place, held = np.zeros((n + 1, n, arrays), np.int64), np.full(n, -1), np.zeros(arrays, np.int64)
        count, left = np.zeros((len(batches), arrays), np.int64), np.array([len(batch) for batch in batches], np.int64)
        at, cases, code = np.array([0, 1, 0]), 0, PAUSED
        portion = max(1, _PORTION // ((len(flat) + n) * arrays))
        capacities = np.minimum(np.array(instance.capacities, dtype=object), n).astype(np.int64)
        line = np.array(self.order, np.int64)
        while code == PAUSED and not expired() and (most_cases is None or cases < most_cases):
            at[2] = portion
            code = search(first, flat, weights, capacities, line, most,
                          chosen, following, free, place, held, count, left, at)  # fmt: skip
            cases += portion - int(at[2])
        if code == FOUND:
            told = f"a placement is left, so that the claim of {float(self.claim):.12g} pairs does not follow"
            raise RefutedError(f"of '{instance.name}' {told}")
        return cases


def not_placed(instance: RegisterInstance) -> str | None:
    """Why the placements of an instance are not gone through; None if they may be."""
    if not isinstance(instance, RegisterInstance) or instance.goal != "collisions":
        return "it places parameters in register arrays for few collisions"
    if (instance.parameters + 1) * instance.parameters * instance.arrays > _MOST_NUMBERS:
        return f"{instance.parameters} parameters in {instance.arrays} arrays are too many"
    return None


def _whole(instance: RegisterInstance, claim: Fraction) -> tuple[list[tuple[int, ...]], Ints, int]:
    """Batches, their whole weights, and the most that a placement costs that is better than the claim."""
    exact = exact_weights(instance)
    pairs = {batch: len(batch) * (len(batch) - 1) // 2 for batch in exact}
    total = sum((weight * pairs[batch] for batch, weight in exact.items()), Fraction(0))
    unit = Fraction(lcm(*(weight.denominator for weight in exact.values())))
    if total * unit > _LARGEST:
        unit = _LARGEST / total
    weights = np.array([floor(weight * unit) for weight in exact.values()], np.int64)
    # Where the claim is above what there can be, every placement is better.
    return list(exact), weights, min(max(ceil(claim * unit) - 1, -1), _LARGEST)
