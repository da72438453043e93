"""Writes proofs for placements in registers: an order of the parameters with which the checker's tree ends soon."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, lcm

from ddlopt.certificates.aggregation.registers.certificate import PlacementCertificate, not_placed
from ddlopt.certificates.aggregation.registers.exact_bounds import exact_weights
from ddlopt.models.aggregation.registers.batches import hottest_first
from ddlopt.models.aggregation.registers.instance import Placement, RegisterInstance
from ddlopt.models.errors import RefutedError

_MOST_CASES = 400_000
"""Partial placements, some five seconds: a tree over a formulation wants time as well."""


def prove(
    instance: RegisterInstance, solution: Placement, target: Fraction, expired: Callable[[], bool]
) -> PlacementCertificate | None:
    """The certificate that proves ``target``; None where the tree is too large, or the time is up.

    The hottest parameters are placed first. The claim is the least sum of weights that is no less than the target.
    """
    if not_placed(instance) is not None:
        return None
    unit = lcm(*(weight.denominator for weight in exact_weights(instance).values()))
    claim = Fraction(ceil(target * unit), unit)
    certificate = PlacementCertificate(instance.name, instance.digest, claim, hottest_first(instance))
    try:
        cases = certificate.check(instance, expired, _MOST_CASES)
    except RefutedError:
        return None
    return None if expired() or cases >= _MOST_CASES else certificate
