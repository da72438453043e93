r"""The check of a certificate of the branch and bound over designs, as if an enemy had written it.

What is proved
--------------
Bytes are counted in units of :math:`2^e`, rounded down; z is the bound in units. A *case* is given by the neighbour
sets of some servers (its *decisions*); it *holds* if no design with these sets has load at most z, where the load is
that of the busiest link. The root has no decisions. If it holds, every design loads some link with more than
:math:`z 2^e` bytes. For the filled designs of :func:`.statement.statement_of` this says that some best one does.

For each case on the way the check keeps a table of the sets that are *left* for each server, such that

    every design with the decisions of the case and load at most z uses sets that are left.                (*)

At the root all sets are left. (*) stays true as a set is struck off by

``propagate``
    s with this set would have c > 0 links to v, and with the fewest that all others can have, more than d enter v; or,
    duplex, no set that is left for v has exactly c links to s.

weights
    Let D be a design as in (*), :math:`x_{ij}` its numbers of links, :math:`\ell \ge 0` the lengths. Each byte goes
    over a way that is no shorter than the distance in D, and a link carries at most z; a group's rings, whose shares
    add up to one, visit each member and leave it for another one. So

    .. math:: \sum_{st} T_{st}\,\mathrm{dist}_D(s, t) + \sum_g c_g R_g \le z \sum_{ij} x_{ij} \ell_{ij},

    where :math:`R_g` is the length of the shortest ring in D, and at least the sum over members of the distance to the
    nearest other one. Receivers' prices: :math:`\sum_v \pi_v (\sum_s x_{sv} - d) \le 0`, as :math:`\pi \ge 0` and no
    receiver has more than d links, or exactly d if designs are filled, where any sign will do. Prices of duplex arcs:
    :math:`\sum_{sv} x_{sv} \pi_{sv} = 0`, as x is symmetric and :math:`\pi` antisymmetric. Tax: as for prices, with the
    most links that a design has. Summed over servers, with N_s the set of s in D,

    .. math:: \sum_s V_s(N_s) - d \sum_v \pi_v - \tau L \le 0, \qquad
              V_s(N) = \sum_t T_{st}\,\underline{\mathrm{dist}}(s, t; N)
                       + \sum_{v \in N} (\pi_{sv} + \tau - z \ell_{sv}).

    Thus if the sum with the least :math:`V_s` of all sets that are left is positive there is no D, and the case holds;
    if it is positive with one server's set fixed, D does not use this set.

    :math:`\underline{\mathrm{dist}}` is at most the distance in D: distances over all arcs of sets that are left are.
    A way from s begins with a link to a v in N. If v has one set left its further way is at least the distance from v.
    Otherwise v = t, or v goes on to some u with an arc v → u, and from u if u is not t; with u = t the way is
    *short*. A server has d links, so that at most d times the number of such v targets of s have a short way; the sum
    is taken with those many short ways that make it least. Where there is no way a length below any that could stand
    there is taken (2^28). If a pair that must be joined has none there is no D.

Steps
-----
``CLOSED``
    Some server has no set left, or weights refuted the case: by (*) it holds. So do all cases with more decisions.
``BRANCH``
    Every design has some set of the server, by (*) one that is left; each such set must be among the cases below.
``UNCOLOURABLE``
    Every server has one set left, so that D is known; by exhaustive search its links cannot be spread over d matchings.
``ELSEWHERE``
    The case goes on in another part, with its decisions and its table. Each part is met once, at one case.
``IMAGE``
    An automorphism, which keeps traffic, groups and thereby all that a load depends on, takes the decisions at the
    beginning of part p to the ones here. A design of this case with load at most z would be taken, backwards, to one
    of that case. So this case holds if that one does. Tables are not compared, and need not be.

Every case holds under the condition that those of the parts that it names hold. A part names smaller ones only; so
part 0 holds, then part 1, and so on to the root: whatever the file says, the argument cannot go in a circle.

Arithmetic: integers. :mod:`.kernels` says why 64 bits suffice for all that passes :func:`_validated`; what is sent is
read from the instance as exact rationals; nothing is a floating-point number, except that traffic under a permutation
is compared as what it is.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.certificates.topology.colouring import TooLongError, colourable
from ddlopt.certificates.topology.format import (
    LEAST_EXPONENT,
    MOST_EXPONENT,
    MOST_PARTS,
    MOST_PRICE,
    MOST_UNITS,
    DesignCertificate,
)
from ddlopt.certificates.topology.statement import Flags, Ints, Statement, statement_of
from ddlopt.models.errors import RefutedError, SolutionError, SolverError
from ddlopt.models.topology.instance import TopologyInstance

_SLICE = 3e8
"""Steps of the innermost loops between two moments at which an interruption is noticed: a fraction of a second."""
_NUMBERS = 2**20
"""Numbers held at a time where images are compared."""


@dataclass(frozen=True)
class Checked:
    """What was proved, and what was looked at for it.

    Parameters
    ----------
    bound_bytes : Fraction
        Every design loads some link with more than this.
    bound_s : Fraction
        No design's iteration is shorter.
    nodes, applications, images : int
        Cases, weights applied to cases, cases that are images of others.
    """

    bound_bytes: Fraction
    bound_s: Fraction
    nodes: int
    applications: int
    images: int
    kind = "design"

    @property
    def bound(self) -> Fraction:
        """On the objective of every solution: ``bound_s``."""
        return self.bound_s


def check_certificate(
    instance: TopologyInstance,
    certificate: DesignCertificate,
    time_s: float = math.inf,
    expired: Callable[[], bool] | None = None,
) -> Checked:
    """Check that a certificate proves its bound for an instance; it returns only if it does.

    Parameters
    ----------
    time_s : float
        Seconds after which the check is given up, up to one more.
    expired : callable, optional
        Whether somebody else's time is up, after which it is given up as well.

    Raises
    ------
    RefutedError
        If it does not, or is no certificate at all.
    SolutionError
        If it is for another instance.
    SolverError
        If the time is up, so that nothing is known.
    NotApplicableError
        If the instance is larger than certificates can speak of.
    """
    if certificate.instance_digest != instance.digest:
        raise SolutionError(
            f"the certificate is for another instance (digest {str(certificate.instance_digest)[:12]!r}…), "
            f"not for '{instance.name}' (digest {instance.digest[:12]}…)"
        )
    exponent, z = _figures(certificate)
    from ddlopt.certificates.topology import kernels

    clock = _Clock(time_s, expired)
    statement = statement_of(instance, exponent)
    tables = _validated(certificate, statement)
    _check_automorphisms(instance, tables.images, clock)
    walked = _Walk(statement, z, tables, clock)
    walked.run(kernels)
    _check_images(statement, tables.images, walked, clock)
    bound = z * Fraction(2) ** exponent
    compute, moved = Fraction(instance.compute_s), bound / Fraction(instance.link_bandwidth_bytes_per_s)
    seconds = max(compute, moved) if instance.overlap == "full" else compute + moved
    return Checked(bound, seconds, walked.nodes, walked.applications, walked.shown_images)


class _Clock:
    """Gives up when the time is up."""

    def __init__(self, time_s: float, expired: Callable[[], bool] | None) -> None:
        self._time_s, self._until, self._expired = time_s, time.perf_counter() + time_s, expired

    def look(self) -> None:
        if time.perf_counter() > self._until or (self._expired is not None and self._expired()):
            told = f"the check of the certificate was given up after {self._time_s:g} s"
            raise SolverError(f"{told}: nothing is proved, and nothing refuted")


@dataclass(frozen=True)
class _Tables:
    """The arrays of a certificate: own copies of them, each of the type, shape and range that it must have."""

    words: npt.NDArray[np.int32]
    begin: Ints
    lengths: npt.NDArray[np.uint16]
    prices: Ints
    images: npt.NDArray[np.int32]


def _figures(certificate: DesignCertificate) -> tuple[int, int]:
    """Exponent of the unit, and z."""
    exponent, z = certificate.unit_exponent, certificate.bound_units
    if type(exponent) is not int or not LEAST_EXPONENT <= exponent <= MOST_EXPONENT:
        raise RefutedError(f"the certificate's unit is not 2^e with e from {LEAST_EXPONENT} to {MOST_EXPONENT}")
    if type(z) is not int or not 1 <= z <= MOST_UNITS:
        raise RefutedError(f"the certificate's bound is not a whole number of units from 1 to {MOST_UNITS}")
    return exponent, z


def _array(certificate: DesignCertificate, name: str, kind: str, columns: int | None) -> npt.NDArray[Any]:
    """A copy, in C order, of an array that has exactly this type and shape."""
    given = getattr(certificate, name)
    if type(given) is not np.ndarray or given.dtype != np.dtype(kind):
        raise RefutedError(f"the certificate's {name} are not an array of type {kind}")
    # Judged is the copy, which nobody else can change.
    table = np.array(given, dtype=kind, order="C", copy=True)
    if table.ndim != (1 if columns is None else 2):
        raise RefutedError(f"the certificate's {name} have {table.ndim} dimensions")
    if columns is not None and table.shape[1] != columns:
        raise RefutedError(f"the certificate's {name} have {table.shape[1]} columns; the instance needs {columns}")
    return table


def _validated(certificate: DesignCertificate, statement: Statement) -> _Tables:
    """The arrays, as far as they can be judged one by one."""
    n, many = statement.sets.shape[:2]
    words = _array(certificate, "words", "int32", None)
    part_words = _array(certificate, "part_words", "uint32", None)
    lengths = _array(certificate, "lengths", "uint16", n * n)
    prices = _array(certificate, "prices", "int64", (n * n if statement.duplex else n) + 1)
    images = _array(certificate, "images", "int32", n + 1)
    parts = len(part_words)
    if not 1 <= parts <= MOST_PARTS:
        raise RefutedError(f"the certificate has {parts} parts; it needs 1 to {MOST_PARTS}")
    begin = np.concatenate([np.zeros(1, np.int64), np.cumsum(part_words, dtype=np.int64)])
    if part_words.min() < 1 or begin[-1] != len(words):
        raise RefutedError("the certificate's parts do not make up its words")
    if words.max() >= max(n, many, parts, len(images)):
        raise RefutedError("the certificate has a word that is out of range")
    if len(prices) != len(lengths):
        raise RefutedError(f"the certificate has {len(lengths)} rows of lengths, but {len(prices)} of prices")
    _check_prices(statement, prices)
    if len(images):
        if images[:, 0].min() < 0 or images[:, 0].max() >= parts:
            raise RefutedError("the certificate has an image of a part that is not there")
        if not np.array_equal(np.sort(images[:, 1:], axis=1), np.broadcast_to(np.arange(n), (len(images), n))):
            raise RefutedError("the certificate has an image whose servers are no permutation")
    return _Tables(words, begin, lengths, prices, images)


def _check_prices(statement: Statement, prices: Ints) -> None:
    if not len(prices):
        return
    if prices.min() < -MOST_PRICE or prices.max() > MOST_PRICE or prices[:, -1].min() < 0:
        raise RefutedError("the certificate has a price out of range")
    if statement.duplex:
        n = len(statement.sets)
        square = prices[:, :-1].reshape(len(prices), n, n)
        if (square + square.transpose(0, 2, 1)).any():
            raise RefutedError("the certificate's prices of the two directions of a duplex link do not cancel out")
    elif not statement.filled and prices[:, :-1].min() < 0:
        raise RefutedError("the certificate has a negative price of links that a design need not have")


def _slices(rows: int, width: int) -> Iterator[slice]:
    """Rows that are looked at together, where each takes ``width`` numbers."""
    step = max(1, _NUMBERS // width)
    for first in range(0, rows, step):
        yield slice(first, first + step)


def _check_automorphisms(instance: TopologyInstance, images: npt.NDArray[np.int32], clock: _Clock) -> None:
    """Every permutation must leave traffic and groups as they are; all else is the same for all servers."""
    orders = np.unique(images[:, 1:], axis=0).astype(np.int64)
    traffic = instance.traffic_bytes
    groups = sorted((group.members, group.gradient_bytes) for group in instance.allreduce_groups)
    for rows in _slices(len(orders), traffic.size):
        clock.look()
        order = orders[rows]
        if not (traffic[order[:, :, None], order[:, None, :]] == traffic).all():
            raise RefutedError("the certificate has an image by a permutation that changes the traffic")
    for line in orders.tolist() if groups else []:
        clock.look()
        if sorted((tuple(sorted(line[v] for v in members)), size) for members, size in groups) != groups:
            raise RefutedError("the certificate has an image by a permutation that changes the all-reduce groups")


def _check_images(statement: Statement, images: npt.NDArray[np.int32], walked: "_Walk", clock: _Clock) -> None:
    """The decisions of each image must be those at the beginning of its part, taken along the permutation."""
    servers = np.arange(len(statement.sets))
    for rows in _slices(len(images), statement.sets[:, 0].size):
        clock.look()
        order, there = images[rows, 1:].astype(np.int64), walked.there[rows]
        origin = walked.begun[walked.slot[images[rows, 0]]]
        here = np.take_along_axis(there, order, axis=1)
        if ((origin < 0) != (here < 0)).any():
            raise RefutedError("the certificate has an image that decides other servers")
        # An idle port, -1, takes the last column, and stays idle.
        taken_to = np.concatenate([order, np.full((len(order), 1), -1)], axis=1)
        ends = statement.sets[servers, np.maximum(origin, 0)]
        moved = np.sort(np.take_along_axis(taken_to, ends.reshape(len(order), -1), axis=1).reshape(ends.shape), axis=2)
        shown = np.sort(statement.sets[order, np.maximum(here, 0)], axis=2)
        if ((moved != shown).any(axis=2) & (origin >= 0)).any():
            raise RefutedError("the certificate has an image with other links")


class _Walk:
    """The replay of the tree: room for the kernels, and what they left in it."""

    def __init__(self, statement: Statement, z: int, tables: _Tables, clock: _Clock) -> None:
        self.statement, self.tables, self.clock = statement, tables, clock
        n, many, _ = statement.sets.shape
        parts, images = len(tables.begin) - 1, len(tables.images)
        self.figures = np.array([z, statement.most_links, statement.forwarding, statement.duplex], dtype=np.int64)
        self.allowed = np.ones((n + 1, n, many), dtype=np.bool_)
        self.covered: Flags = np.zeros((n + 1, many), dtype=np.bool_)
        self.closed: Flags = np.zeros(n + 1, dtype=np.bool_)
        self.row, self.taken = np.full(n + 1, -1, dtype=np.int64), np.full((n + 1, n), -1, dtype=np.int64)
        self.frames = np.zeros((parts, 3), dtype=np.int64)
        self.read, self.shown = np.zeros(parts, dtype=np.bool_), np.zeros(images, dtype=np.bool_)
        origins = np.unique(tables.images[:, 0])
        self.slot: Ints = np.full(parts, -1, dtype=np.int64)
        self.slot[origins] = np.arange(len(origins))
        self.begun: Ints = np.full((len(origins), n), -1, dtype=np.int64)
        self.there: Ints = np.full((images, n), -1, dtype=np.int64)
        self.nodes = self.applications = self.shown_images = 0

    def run(self, kernels: Any) -> None:
        """Walk through the whole tree."""
        statement, tables = self.statement, self.tables
        n, many, d = statement.sets.shape
        state = np.zeros(kernels.STATES, dtype=np.int64)
        state[kernels.PART] = len(tables.begin) - 2
        state[kernels.PLACE] = tables.begin[-2]
        state[kernels.NODES] = 1
        self.read[-1] = True
        self.closed[0] = not kernels.propagate(self.allowed[0], statement.links_in, d, statement.duplex)
        budget = max(1, int(_SLICE / (n * many * (n * (d + 2) + 10) + n**3)))
        answer = kernels.MORE
        while answer in (kernels.MORE, kernels.COLOUR):
            self.clock.look()
            state[kernels.BUDGET] = budget
            answer = kernels.walk(
                state, tables.words, tables.begin, tables.lengths, tables.prices, tables.images, statement.demand,
                statement.joined, statement.member, statement.hop, statement.sets, statement.links_in, self.figures,
                self.allowed, self.covered, self.closed, self.row, self.taken, self.frames, self.read, self.slot,
                self.begun, self.shown, self.there,
            )  # fmt: skip
            if answer == kernels.COLOUR:
                self._colour(int(state[kernels.DEPTH]))
        if answer != kernels.DONE:
            where = f"word {state[kernels.PLACE] - 1} of {len(tables.words)}"
            raise RefutedError(f"the certificate is wrong near {where}: {kernels.FAULTS[answer]}")
        if not (self.read.all() and self.shown.all()):
            raise RefutedError("the certificate has a part or an image that its tree does not name")
        self.nodes, self.applications = int(state[kernels.NODES]), int(state[kernels.APPLICATIONS])
        self.shown_images = int(state[kernels.IMAGES])

    def _colour(self, depth: int) -> None:
        """Refuse a design, the only one left, that can be spread over the planes."""
        sets = self.statement.sets
        chosen = self.allowed[depth].argmax(axis=1)
        ends = sets[np.arange(len(sets)), chosen].tolist()
        links = tuple((s, v) for s, row in enumerate(ends) for v in row if s < v)
        try:
            if colourable(links, self.statement.degree):
                raise RefutedError("the certificate is wrong: a design is called uncolourable that is not")
        except TooLongError as problem:
            raise RefutedError(f"the certificate calls a design uncolourable that is too large: {problem}") from None
