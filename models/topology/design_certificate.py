r"""What a branch and bound over designs has proved, and a small program that checks it in whole numbers.

Every design of load z satisfies, for all arc lengths :math:`\ell \ge 0` (see
:func:`~ddlopt.models.topology.metric.metric_bound`),

.. math:: \sum_{st} T_{st}\, \mathrm{dist}_\ell(s, t) \le z \sum_{ij} x_{ij} \ell_{ij} .

A *neighbour set* of a server are the far ends of the links that leave it. A node of the search tree allows each server
some of its sets. Lengths, with prices :math:`\pi` of which designs can pay at most P, refute the node if

.. math::
    \sum_s \min_{N \text{ allowed for } s} V_s(N) > P, \qquad
    V_s(N) = \sum_t T_{st}\, \underline{\mathrm{dist}}(s, t; N) - \sum_{v \in N} (z\, \ell_{sv} - \pi_{sv}) ,

as the left-hand side then exceeds the right-hand side in every design of the node. A set that makes the sum too large
by itself is in no design better than z and is struck off. The distances are lower bounds: over all arcs still possible,
except that the undecided neighbours of s together reach at most d others each over one arc. An all-reduce group adds,
for each member, the bytes of one hop times the distance to the nearest other member; once all servers are decided, a
group of few members adds the shortest ring instead.

Prices: :math:`\pi_{sv} = \mu_v` of links into v, of which there are at most d (exactly d where all ports are in use, so
that the sign is free); for duplex optics :math:`\pi_{sv} = -\pi_{vs}`, and a tax on every link where n is odd, as each
plane then leaves a server out.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import SolutionError
from ddlopt.models.topology.design_replay import replay
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.neighbour_sets import (
    ALIKE,
    MOST_PRICE,
    UNCOLOURABLE,
    UNITS,
    Ints,
    Task,
    task_of,
    unit_of,
)

_FAULTS = {
    1: "the words end in the middle of a node",
    2: "a word names weights, a part or a server that is not there",
    3: "a node is called closed that its weights do not refute",
    4: "a branching leaves out a neighbour set that is still possible",
    5: "a part is used twice, or within itself",
    6: "a word has no meaning here",
    7: "a branching is on a server that is decided already",
    8: "a design is called uncolourable while servers are undecided",
}


@dataclass(frozen=True)
class DesignCertificate:
    """A proof that every design of an instance loads some link with at least ``bound_bytes``.

    Parameters
    ----------
    bound_bytes : float
        What is claimed.
    words : (many,) int32 array
        The tree, in parts. A node is a list of weights, each as ``WEIGHTS`` minus its number, which are applied one
        after the other, and then ``CLOSED``: it is refuted; ``BRANCH``, a server, for each of its sets the number of
        the set and the node below, and ``END``; ``ELSEWHERE`` and the number of the part that goes on with the node;
        ``ALIKE`` and the number of an entry of ``alike``; or ``UNCOLOURABLE``: the one design left has no planes.
    parts : (parts,) array
        Where each part begins; part 0 is the root.
    lengths : (weights, n * n) uint16 array
    prices : (weights, n + 1) array, or (weights, n * n + 1) for duplex optics
        Of servers, or of arcs; last the tax on every link.
    alike : (entries, n + 1) array
        The number of a part, and a permutation of the servers, an automorphism of the instance that takes what was
        branched on in that part to what was branched on here.
    """

    bound_bytes: float
    words: npt.NDArray[np.int32]
    parts: Ints
    lengths: npt.NDArray[np.uint16]
    prices: Ints
    alike: Ints

    @property
    def size_bytes(self) -> int:
        """Memory of all arrays."""
        return sum(each.nbytes for each in (self.words, self.parts, self.lengths, self.prices, self.alike))


@dataclass(frozen=True)
class Checked:
    """What a check has looked at: nodes of the tree, weights applied, nodes that are images of others."""

    nodes: int
    applications: int
    images: int
    skipped_parts: int = field(default=0)

    @property
    def complete(self) -> bool:
        """Whether nothing was left out; otherwise this was a sample and proves nothing."""
        return self.skipped_parts == 0


def check_certificate(
    instance: TopologyInstance, certificate: DesignCertificate, sample: float = 1.0, seed: int = 0
) -> Checked:
    """Check that the certificate proves its bound, in whole numbers, with nothing of the search.

    Parameters
    ----------
    sample : float
        Part of the tree's parts to look at; below 1 the check is a spot check that can find faults but proves nothing.
    seed : int
        Of the choice of those parts.

    Raises
    ------
    SolutionError
        If it does not.
    """
    task = task_of(instance)
    z = ceil(Fraction(float(certificate.bound_bytes)) / unit_of(instance))
    if not 0 < z <= UNITS:
        raise SolutionError(f"the certificate claims {certificate.bound_bytes:g} bytes, more than there are in all")
    lengths, prices = _weights(task, certificate)
    skip = np.random.default_rng(seed).random(len(certificate.parts)) >= sample
    skip[:1] = False
    decided = np.full((len(certificate.parts), instance.servers), -2, np.int64)
    images = np.full((len(certificate.alike), instance.servers), -2, np.int64)
    leaves = np.full((int((certificate.words == UNCOLOURABLE).sum()), instance.servers), -1, np.int64)
    counts = np.zeros(5, np.int64)
    words = certificate.words.astype(np.int64)
    fault = replay(
        task, z, words, certificate.parts, lengths, prices, certificate.alike, skip, decided, images, leaves, counts
    )
    if fault:
        raise SolutionError(f"the certificate is wrong near word {counts[4]}: {_FAULTS[fault]}")
    _check_images(instance, task, certificate, decided, images, bool(skip.any()))
    for leaf in leaves[: counts[3]]:
        if _colourable(task.options[np.arange(len(leaf)), leaf], task.degree):
            raise SolutionError("the certificate is wrong: a design is called uncolourable that is not")
    return Checked(int(counts[0]), int(counts[1]), int(counts[2]), int(skip.sum()))


def _weights(task: Task, certificate: DesignCertificate) -> tuple[Ints, Ints]:
    """Lengths (weights, n, n) and prices (weights, n * n + 1), checked for what makes them valid."""
    n, many = len(task.bytes), len(certificate.lengths)
    prices = certificate.prices
    if certificate.lengths.shape != (many, n * n) or prices.shape != (many, (n * n if task.duplex else n) + 1):
        raise SolutionError("the certificate's lengths or prices do not fit the instance")
    if np.abs(prices).max(initial=0) > MOST_PRICE or prices[:, -1].min(initial=0) < 0:
        raise SolutionError("the certificate has a price out of range")
    if task.duplex:
        square = prices[:, :-1].reshape(many, n, n)
        if (square + square.transpose(0, 2, 1)).any():
            raise SolutionError("the certificate's prices of the two directions of a duplex link do not cancel out")
        arcs = square
    else:
        if not task.exact and prices[:, :-1].min(initial=0) < 0:
            raise SolutionError("the certificate has a negative price of links that a design need not have")
        arcs = np.repeat(prices[:, None, :-1], n, axis=1)
    whole = np.concatenate([arcs.reshape(many, n * n), prices[:, -1:]], axis=1)
    return certificate.lengths.astype(np.int64).reshape(many, n, n), np.ascontiguousarray(whole)


def _check_images(
    instance: TopologyInstance, task: Task, certificate: DesignCertificate, decided: Ints, images: Ints, sampled: bool
) -> None:
    """Every node that is called an image must be one, under an automorphism, of a part that is proved itself."""
    n, groups = instance.servers, sorted((g.members, g.gradient_bytes) for g in instance.allreduce_groups)
    for (part, *order), here in zip(certificate.alike.tolist(), images.tolist(), strict=True):
        if here[0] == -2:
            continue
        if not 0 <= part < len(decided) or sorted(order) != list(range(n)):
            raise SolutionError("the certificate is wrong: an image is not that of a part by a permutation")
        origin = decided[part].tolist()
        if origin[0] == -2:
            if sampled:
                continue
            raise SolutionError("the certificate is wrong: an image is that of a part that is not in the tree")
        if certificate.words[certificate.parts[part]] == ALIKE:
            raise SolutionError("the certificate is wrong: an image is that of another image")
        traffic = instance.traffic_bytes
        moved = sorted((tuple(sorted(order[v] for v in members)), size) for members, size in groups)
        if not np.array_equal(traffic[np.ix_(order, order)], traffic) or moved != groups:
            raise SolutionError("the certificate is wrong: a permutation changes the instance")
        for s, k in enumerate(origin):
            there = here[order[s]]
            if (k < 0) != (there < 0):
                raise SolutionError("the certificate is wrong: an image decides other servers")
            if k >= 0:
                ends = sorted(order[v] if v >= 0 else -1 for v in task.options[s, k].tolist())
                if ends != sorted(task.options[order[s], there].tolist()):
                    raise SolutionError("the certificate is wrong: an image has other links")


def _colourable(ends: Ints, degree: int) -> bool:
    """Whether duplex links, given as the ends at every server, can be spread over ``degree`` matchings: tries all."""
    links = [(s, v) for s, row in enumerate(ends.tolist()) for v in row if s < v]
    used: list[set[int]] = [set() for _ in ends]

    def place(number: int) -> bool:
        if number == len(links):
            return True
        s, v = links[number]
        for colour in range(degree):
            if colour not in used[s] and colour not in used[v]:
                used[s].add(colour)
                used[v].add(colour)
                if place(number + 1):
                    return True
                used[s].discard(colour)
                used[v].discard(colour)
        return False

    return place(0)
