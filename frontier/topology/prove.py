"""Writes proofs for all-to-all traffic: links with few hops, with their lengths from a routing."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil

from ddlopt.certificates.topology.hops.certificate import HopCertificate
from ddlopt.certificates.topology.hops.listing import Listing, bytes_beyond, not_listed
from ddlopt.frontier.topology.hop_enumeration import Search
from ddlopt.models.errors import RefutedError
from ddlopt.models.topology import TopologyDesign, TopologyInstance
from ddlopt.solvers.heuristic import Asked

_MOST_DIGRAPHS = 20_000
"""Of a file: some 10 MB."""
_MOST_SETS = 10**9
"""Tried in some ten minutes, for which a checker has to wait as well."""


def prove(
    instance: TopologyInstance, solution: TopologyDesign, target: Fraction, expired: Callable[[], bool]
) -> HopCertificate | None:
    """The certificate that proves ``target``; None where digraphs are too many, or the time is up."""
    if not_listed(instance) is not None:
        return None
    n, d, duplex = instance.servers, instance.degree, instance.optics == "duplex"
    seconds = target - (0 if instance.overlap == "full" else Fraction(instance.compute_s))
    wanted = seconds * Fraction(instance.link_bandwidth_bytes_per_s)
    hop = bytes_beyond(instance, 2) - bytes_beyond(instance, 0)
    excess = ceil(2 * (wanted - bytes_beyond(instance, -1)) / hop) - 1
    if excess < 0:
        return None
    search = Search(instance, Asked(expired))
    proofs: dict[bytes, tuple[list[list[int]], list[list[int]]]] = {}
    listing = Listing(n, d, excess, duplex)
    for key, heads in listing.digraphs(expired):
        if key not in proofs:
            # Lengths are improved until they prove this load; a better design met on the way is of no interest.
            search.best_bytes = float(wanted) + 2 * search.gap_bytes(float(target))
            _, links, lengths = search.proof(heads)
            proofs[key] = links.tolist(), lengths.tolist()
        if len(proofs) > _MOST_DIGRAPHS or listing.sets_tried > _MOST_SETS:
            return None
    if expired():
        return None
    heads_of, lengths_of = ([each[part] for each in proofs.values()] for part in (0, 1))
    certificate = HopCertificate(instance.name, instance.digest, target, excess, heads_of, lengths_of)
    try:
        certificate.check(instance, expired)
    except RefutedError:
        return None
    return None if expired() else certificate
