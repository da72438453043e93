"""Prices of compute time, bytes, memory and errors under which layers mind only themselves and their neighbours."""

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import inf

import numpy as np
from scipy.sparse import coo_array, csr_array

from ddlopt.frontier.codesign.prices.min_sum import Elimination
from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.tables import Floats, Ints, Tables
from ddlopt.models.tolerances import BOUND_MARGIN, ROUNDING


@dataclass(frozen=True)
class Effort:
    """How the ascent goes on, and when it ends."""

    steps: int = 120
    """Each costs one elimination; the ascent ends earlier where it stalls."""
    close: float = 1e-5
    """A step that gains less has stalled: a tenth of the gap at which methods stop by default."""
    ambition: float = 0.5
    """How far above the best bound a step aims at first, as a part of it."""
    patience: int = 6
    """Steps without a gain before the ambition shrinks: a few, as steps of a subgradient need not ascend."""


_EFFORT = Effort()


@dataclass(frozen=True, eq=False)
class Prices:
    """Weights of what an iteration takes at least, see :class:`PricedSum`.

    Parameters
    ----------
    busy, memory : (kinds of servers,) array
        Of compute time; of the part of a server's memory that is taken beyond all of it, in seconds.
    path : float
        Of the time along a path through the layers.
    profile : (layers,) array
        That path: parts of layers, a mixture of paths.
    rows : (rows,) array
        Of the bytes of servers and of all links.
    error : float
        Of the part of the error budget that is taken beyond all of it, in seconds.
    """

    busy: Floats
    path: float
    profile: Floats
    rows: Floats
    memory: Floats
    error: float = 0.0


@dataclass(frozen=True, eq=False)
class PricedBound:
    """What prices prove.

    Parameters
    ----------
    value_s : float
        No plan takes less.
    choices : tuple of int
        Index of each layer's strategy: of those that attained a minimum, the ones with the least bound of their own.
    choices_s : float
        Their own bound for every topology; inf where none kept to the limits.
    prices : Prices
    """

    value_s: float
    choices: tuple[int, ...]
    choices_s: float
    prices: Prices


class PricedSum:
    r"""A lower bound on the iteration time that is a sum over layers and edges, and its minimum over all strategies.

    With :math:`\mu, \nu, \pi, \epsilon \ge 0` and :math:`\sum \mu = \sum \nu = 1` (``overlap="full"``: all of μ and ν
    together are 1), every plan with gradient bytes and bytes of patterns m has

    .. math::
        T \ge \textstyle\sum_s \mu_s\, busy_s + \mu_0\, path + \sum_r \nu_r (R m)_r
            + \sum_s \pi_s \bigl(\frac{memory_s}{M} - 1\bigr) + \epsilon \bigl(\frac{error}{E} - 1\bigr) ,

    where R are the rows of :class:`~ddlopt.models.codesign.formulations.strategy_bound.StrategyBound` (without what a
    server receives beyond what it sends): what a server sends or receives over its d links, and bytes times hops over
    all links. Each term of the right-hand side is of one layer's strategy or of two along an edge, so that dynamic
    programming minimises it (:class:`~ddlopt.frontier.codesign.prices.min_sum.Elimination`).

    Attributes
    ----------
    kinds : (kinds, sets of servers) array
        Which sets a server is in; servers in the same ones are of one kind. ``servers`` says how many there are.
    rows : (rows, figures) array
        R: seconds that the busiest link needs at least for each byte; bytes times hops come last.
    """

    def __init__(self, tables: Tables) -> None:
        instance, demand = tables.instance, demand_of(tables)
        self.tables, self.demand = tables, demand
        self.set_of, runs = _server_sets(tables)
        kinds, self.servers = np.unique(runs, axis=0, return_counts=True)
        self.kinds: Floats = kinds.astype(np.float64)
        self.starts = [0, *accumulate(tables.sizes)]
        self.layer_of = np.repeat(np.arange(len(tables.sizes)), tables.sizes)
        self.times = np.concatenate(tables.compute_s)
        limit = instance.most_memory_bytes
        self.memory = None if limit == inf else np.concatenate(tables.memory_bytes) / limit
        # A strategy that loses more than the budget by itself is taken by nobody.
        lost, most = np.concatenate(tables.errors), instance.most_error
        self.excluded = lost > most
        self.errors = lost / most if 0 < most < inf else np.zeros(len(lost))
        self.own = _own_figures(tables)
        self.rows: Floats = (
            np.vstack([demand.server_rows, demand.hop_bytes / demand.capacity]) / instance.link_bandwidth_bytes_per_s
        )
        self.moving = [e for e, moves in enumerate(tables.moves) if (moves >= 0).any() and tables.edge_bytes[e] > 0]
        self.elimination = Elimination(tables.sizes, [instance.edges[e] for e in self.moving])

    def first_prices(self) -> Prices:
        """Compute time averaged over the servers, and bytes times hops."""
        part = 0.5 if self.tables.instance.overlap == "full" else 1.0
        rows = np.zeros(len(self.rows))
        rows[-1] = part
        busy = part * self.servers / self.servers.sum()
        return Prices(busy, 0.0, np.zeros(len(self.tables.sizes)), rows, np.zeros(len(self.kinds)))

    def minimum(self, prices: Prices) -> tuple[float, tuple[int, ...]]:
        """Lower bound in seconds, and the strategies that attain it."""
        figure_s = prices.rows @ self.rows
        costs = self.times * ((prices.busy @ self.kinds)[self.set_of] + prices.path * prices.profile[self.layer_of])
        costs += self.own @ figure_s
        if self.memory is not None:
            costs += self.memory * (prices.memory @ self.kinds)[self.set_of]
        costs += self.errors * prices.error
        costs[self.excluded] = inf
        pattern_s = np.append(figure_s[len(self.tables.groups_of) :], 0.0)
        tables = [self.tables.edge_bytes[e] * pattern_s[self.tables.moves[e]] for e in self.moving]
        found = self.elimination.minimum([costs[a:b] for a, b in pairwise(self.starts)], tables)
        return found.value - float(prices.memory.sum()) - prices.error, found.choices

    def at(self, choices: tuple[int, ...]) -> tuple[Prices, float]:
        """What each price is a weight of, for a choice; and the choice's own bound in seconds."""
        tables, instance = self.tables, self.tables.instance
        places = np.array(self.starts[:-1]) + np.array(choices)
        sets = self.kinds.shape[1]
        busy = self.kinds @ np.bincount(self.set_of[places], self.times[places], sets)
        figures = np.concatenate(tables.bytes_of(choices))
        time = instance.iteration_time_s(tables.compute_of(choices), self.demand.least_bytes(figures))
        memory = np.zeros(len(self.kinds))
        if self.memory is not None:
            memory = self.kinds @ np.bincount(self.set_of[places], self.memory[places], sets) - 1
        error = float(self.errors[places].sum()) - 1 if self.errors.any() else 0.0
        time = time if tables.fits(choices) else inf
        profile = _longest_path(tables, self.times[places])
        path = float(profile @ self.times[places])
        return Prices(busy, path, profile, self.rows @ figures, memory, error), time

    def ascended(self, prices: Prices, slope: Prices, missing_s: float, scale_s: float) -> Prices:
        """Prices one step further up, by Polyak's rule: to where a linear function would have gained ``missing_s``."""
        bearing = slope.memory * scale_s if self.memory is not None else np.zeros(len(self.kinds))
        bearing = np.where((bearing < 0) & (prices.memory <= 0), 0.0, bearing)
        lost = 0.0 if slope.error < 0 and prices.error <= 0 else slope.error * scale_s
        compute = np.append(prices.busy, prices.path), np.append(slope.busy, slope.path)
        parts = [compute, (prices.rows, slope.rows)]
        if self.tables.instance.overlap == "full":
            parts = [(np.concatenate([a, b]), np.concatenate([c, d])) for (a, c), (b, d) in [parts]]
        steepness = sum(float(((up - up.mean()) ** 2).sum()) for _, up in parts) + float((bearing**2).sum())
        steepness += lost**2
        size = sum(float((up**2).sum()) for _, up in parts) + float((bearing**2).sum()) + lost**2
        if steepness <= ROUNDING**2 * size:  # what is left is rounding, along which a step would lead nowhere
            return prices
        step = missing_s / steepness
        moved = np.concatenate([_to_simplex(at + step * up) for at, up in parts])
        kinds = len(self.kinds)
        return Prices(
            busy=moved[:kinds],
            path=float(moved[kinds]),
            profile=slope.profile if prices.path == 0 else (prices.profile + slope.profile) / 2,
            rows=moved[kinds + 1 :],
            memory=np.maximum(prices.memory + step * bearing * scale_s, 0),
            error=max(0.0, prices.error + step * lost * scale_s),
        )


def best_prices(tables: Tables, steps: int = _EFFORT.steps) -> PricedBound:
    """The best bound of ``steps`` steps of subgradient ascent; each of them is valid.

    They start from compute time and bytes times hops averaged over all servers. A step aims a little above the best
    bound so far, at most at what a choice is known to need; where some steps have not improved it, half as far, and
    from the best prices again.
    """
    priced = PricedSum(tables)
    prices = priced.first_prices()
    best = PricedBound(-inf, (), inf, prices)
    best_slope, ambition, idle = prices, _EFFORT.ambition, 0
    for _ in range(steps):
        value_s, choices = priced.minimum(prices)
        slope, choices_s = priced.at(choices)
        idle = 0 if value_s > best.value_s * (1 + _EFFORT.close) else idle + 1
        if value_s > best.value_s:
            best, best_slope = replace(best, value_s=value_s, prices=prices), slope
        if choices_s < best.choices_s or not best.choices:
            best = replace(best, choices=choices, choices_s=choices_s)
        if best.value_s >= (1 - _EFFORT.close) * best.choices_s:
            break
        if idle == _EFFORT.patience:
            ambition, idle = ambition / 2, 0
            prices, slope, value_s = best.prices, best_slope, best.value_s
        above_s = (1 + ambition) * best.value_s if best.value_s > 0 else ambition * best.choices_s
        target_s = min(best.choices_s, above_s)
        if not 0 < target_s < inf:
            break
        prices = priced.ascended(prices, slope, target_s - value_s, target_s)
    return replace(best, value_s=max(0.0, best.value_s * (1 - BOUND_MARGIN)))


def _server_sets(tables: Tables) -> tuple[Ints, Floats]:
    """(choices,) number of the set of servers of every layer's every strategy, and (n, sets) who is in it."""
    number: dict[bytes, int] = {}
    members: list[Ints] = []
    places = []
    for servers in (each for of_layer in tables.runs_on for each in of_layer):
        place = number.setdefault(servers.tobytes(), len(number))
        if place == len(members):
            members.append(servers)
        places.append(place)
    runs = np.zeros((tables.instance.servers, len(members)))
    for place, servers in enumerate(members):
        runs[servers, place] = 1
    return np.array(places), runs


def _own_figures(tables: Tables) -> csr_array:
    """(choices, figures) bytes that strategies reduce and send by themselves."""
    strategies = [own for of_layer in tables.own for own in of_layer]
    entries = [(row, figure, amount) for row, own in enumerate(strategies) for figure, amount in own.items()]
    rows, columns, amounts = zip(*entries, strict=True) if entries else ((), (), ())
    shape = (len(strategies), len(tables.groups_of) + len(tables.patterns))
    return csr_array(coo_array((amounts, (rows, columns)), shape=shape, dtype=np.float64))


def _longest_path(tables: Tables, times: Floats) -> Floats:
    """(layers,) 1 for those on a path of the longest time."""
    before: dict[int, list[int]] = {}
    for source, target in tables.instance.edges:
        before.setdefault(target, []).append(source)
    done = np.zeros(len(times))
    last: dict[int, int | None] = {}
    for layer in tables.instance.order:
        last[layer] = max(before.get(layer, ()), key=done.__getitem__, default=None)
        previous = last[layer]
        done[layer] = times[layer] + (0.0 if previous is None else done[previous])
    on_path = np.zeros(len(times))
    step: int | None = int(done.argmax())
    while step is not None:
        on_path[step] = 1
        step = last[step]
    return on_path


def _to_simplex(point: Floats) -> Floats:
    """The nearest point with non-negative coordinates that add up to 1."""
    descending = -np.sort(-point)
    excess = (np.cumsum(descending) - 1) / np.arange(1, len(point) + 1)
    shift = excess[np.flatnonzero(descending > excess)[-1]]
    return np.asarray(np.maximum(point - shift, 0))
