"""Bounds for choices of which some layers' strategies are left open: in parts, and on whole links of a few servers."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pyomo.environ as pyo
from scipy.optimize import linprog

from ddlopt.frontier.codesign.open_layers import Needs, OpenLayers
from ddlopt.models.codesign.formulations.rows.strategy_choice import linear
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import Floats, tables_of
from ddlopt.models.tolerances import BOUND_MARGIN, SOLVER_TOL
from ddlopt.models.topology.hop_bytes import hop_bytes_out, least_hop_bytes

Terms = list[tuple[float, Any]]

_ALL_CUTS = 7
"""Members up to which a ring has to leave each set of them; of larger groups the sets that other groups make."""


@dataclass(frozen=True, eq=False)
class Options:
    """Options of open layers, and what each asks of servers and links at least.

    Parameters
    ----------
    instance : CodesignInstance
    layers : OpenLayers
    """

    instance: CodesignInstance
    layers: OpenLayers

    @property
    def duplex(self) -> bool:
        """Whether links go both ways."""
        return self.instance.optics == "duplex"

    @cached_property
    def capacity(self) -> int:
        """Directions of links."""
        n, d = self.instance.servers, self.instance.degree
        return d * (2 * (n // 2) if self.duplex else n)

    def asked_s(self, needs: Needs) -> tuple[Floats, Floats]:
        """(n,) seconds of computing, and (2 n + 1,) of a link: for what servers send and receive, and for all hops."""
        d, groups = self.instance.degree, tables_of(self.instance).groups
        rings = np.zeros(self.instance.servers)
        for k in np.flatnonzero(needs.rings):
            rings[list(groups[k])] += needs.rings[k]
        hops = least_hop_bytes(needs.traffic, d, self.duplex) + rings.sum()
        sent, received = needs.traffic.sum(axis=1) + rings, needs.traffic.sum(axis=0) + rings
        rows = np.array([*sent / d, *received / d, hops / self.capacity])
        return needs.busy_s, rows / self.instance.link_bandwidth_bytes_per_s

    @cached_property
    def asked(self) -> tuple[Floats, Floats]:
        """The same of all options, (n, options) and (2 n + 1, options)."""
        busy, rows = zip(*map(self.asked_s, self.layers.options), strict=True)
        return np.column_stack(busy), np.column_stack(rows)

    @cached_property
    def of_choices(self) -> Floats:
        """(options, choices) 1 where a choice takes the option."""
        taken = np.zeros((len(self.layers.options), len(self.layers.choices)))
        taken[[option for _, option in self.layers.choices], np.arange(len(self.layers.choices))] = 1.0
        return taken

    @cached_property
    def of_kinds(self) -> Floats:
        """(kinds, choices) 1 where a choice is of the kind."""
        taken = np.zeros((len(self.layers.layers), len(self.layers.choices)))
        taken[[kind for kind, _ in self.layers.choices], np.arange(len(self.layers.choices))] = 1.0
        return taken

    @cached_property
    def prices(self) -> list[tuple[Floats, float]]:
        """Weights of servers and rows that were best for some part, with the least that open layers add by them."""
        return []

    def add_price(self, weights: Floats) -> float:
        """Remember (3 n + 1,) weights, of servers and of rows with sums of 1; returns the least that layers add."""
        of_options = weights @ np.vstack(self.asked)
        of_choices = np.where(self.of_kinds > 0, of_options @ self.of_choices, np.inf)
        self.prices.append((weights, float(of_choices.min(axis=1) @ self.layers.layers)))
        return self.prices[-1][1]


@dataclass(frozen=True, eq=False)
class OpenPart:
    r"""What chosen layers need, and layers that are open.

    With :math:`x_{k o}` layers of kind k that take option o, in parts, servers and links are asked for
    :math:`C_s(x)` seconds of computing, :math:`\sigma_s(x)` bytes sent (or received) and :math:`H(x)` bytes times hops
    at least, all linear in x. No plan takes less than

    .. math:: \min_x \max_s C_s(x) + \tfrac 1B \max\bigl(\max_s \sigma_s(x) / d,\ H(x) / \mathcal{C}\bigr).

    Parameters
    ----------
    chosen : Needs
    options : Options
    """

    chosen: Needs
    options: Options

    @cached_property
    def asked(self) -> tuple[Floats, Floats]:
        """(n,) and (2 n + 1,) seconds as of :meth:`Options.asked_s`."""
        return self.options.asked_s(self.chosen)

    def least_s(self, enough_s: float) -> float:
        """Seconds that no plan takes less than; where they are enough, they need not be the most that is known."""
        asked = np.concatenate(self.asked)
        known = max((float(weights @ asked) + more for weights, more in self.options.prices), default=0.0)
        if known < enough_s:
            weights = self._best_weights(len(asked))
            known = max(known, float(weights @ asked) + self.options.add_price(weights))
        return known

    @cached_property
    def least_compute_s(self) -> float:
        """Seconds that no plan computes less than."""
        weights = self._best_weights(self.options.instance.servers)
        busy = weights @ self.options.asked[0] @ self.options.of_choices
        of_kinds = np.where(self.options.of_kinds > 0, busy, np.inf).min(axis=1)
        return float(weights @ self.asked[0]) + float(of_kinds @ self.options.layers.layers)

    def _best_weights(self, rows: int) -> Floats:
        """(rows,) weights of the first rows, the multipliers of the linear program."""
        n, choices = self.options.instance.servers, len(self.options.layers.choices)
        asked, more = np.concatenate(self.asked)[:rows], np.vstack(self.options.asked)[:rows]
        unit = float(asked.max(initial=0.0)) or 1.0
        limits = np.zeros((rows, choices + 2))
        limits[:, :choices] = more @ self.options.of_choices / unit
        limits[:n, -2] = limits[n:, -1] = -1.0
        kinds = np.hstack([self.options.of_kinds, np.zeros((len(self.options.layers.layers), 2))])
        cost = [0.0] * choices + [1.0, 1.0]
        count = self.options.layers.layers
        answer = linprog(cost, A_ub=limits, b_ub=-asked / unit, A_eq=kinds, b_eq=count, method="highs")
        weights = np.eye(rows)[0] if answer.x is None else np.maximum(-answer.ineqlin.marginals, 0.0)
        for some in (slice(0, n), slice(n, rows)):
            total = weights[some].sum()
            weights[some] = weights[some] / total if total > 0 else 1 / max(1, len(weights[some]))
        return np.asarray(weights)


def links_of_block(part: OpenPart, most_s: float, servers: Sequence[int]) -> pyo.ConcreteModel | None:
    r"""A program that is infeasible if no plan takes at most ``most_s``; None if closed forms say so.

    Let S be servers whose images under some permutations of all, one after the other, are n / \|S\| blocks, and let
    each of these leave what is chosen as it is, and take the options of a kind of layers to those of a kind of as many.
    With z = B (most - least compute), :math:`m_{ij}` links, whole ones at S, :math:`f^s` what s of S sends,
    :math:`g^t` what t of S receives from others, and :math:`h^k_{st}` hop bytes of group k where t follows s on a ring,

    .. math::
        & \textstyle\sum_j m_{ij} \le d, \qquad \sum_i m_{ij} \le d, \qquad
          \sum_s f^s_{ij} + \sum_t g^t_{ij} \le z\, m_{ij} \\
        & f^s \text{ takes } T_{sv}(x) + \textstyle\sum_k h^k_{sv} \text{ from s to v}, \qquad
          g^t \text{ takes } T_{vt}(x) + \sum_k h^k_{vt} \text{ from } v \notin S \text{ to t} \\
        & \textstyle\sum_t h^k_{st} = \sum_t h^k_{ts} = c_k(x), \qquad
          \sum_{s \in U, t \notin U} h^k_{st} \ge c_k(x) \quad \text{for sets } U \text{ of members} \\
        & \textstyle\sum_{ij} f^s_{ij} \ge H_s(x), \qquad
          \sum_{s \in S} \sum_{ij} f^s_{ij} \le \frac{|S|}{n} \mathcal{C} B\, (\text{most} - C_u(x))
          \quad \text{for all } u

    and the rows of :class:`OpenPart`. **Every plan that takes no longer makes it feasible**: its busiest link carries
    at most B (most - C) bytes, all its links together :math:`\mathcal{C}` times that, so that of the blocks one sends
    no more than its part; permutations take that block to S, and the plan to one that takes as long, with the same
    chosen and other open strategies, of which x are the numbers. What others send each other is left out.
    """
    most_s *= 1 + SOLVER_TOL
    z = (most_s - part.least_compute_s) * part.options.instance.link_bandwidth_bytes_per_s
    if z <= 0:
        return None
    return _Program(part, most_s, tuple(servers), z).model


class _Program:
    def __init__(self, part: OpenPart, most_s: float, servers: tuple[int, ...], z: float) -> None:
        self.part, self.most_s, self.own, self.z = part, most_s, servers, z
        self.options, self.instance = part.options, part.options.instance
        self.n, self.chosen = self.instance.servers, part.chosen
        self.groups = tables_of(self.instance).groups
        self.arcs = list(permutations(range(self.n), 2))
        self.model = pyo.ConcreteModel()
        self.model.rows = pyo.ConstraintList()
        self.model.objective = pyo.Objective(expr=0.0)
        self._add_options()
        self._add_links()
        self._add_rings()
        self._add_flows()
        self._add_limits()

    def _row(self, terms: Terms, least: float | None, most: float | None) -> None:
        expression = linear(terms)
        if not isinstance(expression, float):
            self.model.rows.add((least, expression, most))

    def _add_options(self) -> None:
        b, layers = self.model, self.options.layers
        b.layers = pyo.Var(range(len(layers.choices)), bounds=(0, None), doc="layers of a kind that take an option")
        b.option = pyo.Var(range(len(layers.options)), bounds=(0, None), doc="layers that take it")
        for kind, count in enumerate(layers.layers):
            self._row([(1.0, b.layers[c]) for c, (of, _) in enumerate(layers.choices) if of == kind], count, count)
        for option in b.option:
            taken = [(1.0, b.layers[c]) for c, (_, of) in enumerate(layers.choices) if of == option]
            self._row([*taken, (-1.0, b.option[option])], 0, 0)

    def _options(self, values: Sequence[float], sign: float = 1.0) -> Terms:
        """A linear form in the options."""
        return [(sign * value, self.model.option[o]) for o, value in enumerate(values) if value]

    def _add_links(self) -> None:
        b, own, duplex = self.model, set(self.own), self.options.duplex
        most = self.instance.degree if self.instance.parallel_links else 1
        ends = [(i, j) for i, j in self.arcs if i < j or not duplex]

        def domain(_: Any, i: int, j: int) -> Any:
            return pyo.NonNegativeIntegers if i in own or (duplex and j in own) else pyo.NonNegativeReals

        b.link = pyo.Var(ends, domain=domain, bounds=(0, most), doc="links laid")
        for i in range(self.n):
            others = [j for j in range(self.n) if j != i]
            self._row([(1.0, self._link(i, j)) for j in others], None, self.instance.degree)
            if not duplex:
                self._row([(1.0, self._link(j, i)) for j in others], None, self.instance.degree)

    def _link(self, i: int, j: int) -> Any:
        return self.model.link[min(i, j), max(i, j)] if self.options.duplex else self.model.link[i, j]

    def _add_rings(self) -> None:
        b, chosen = self.model, self.chosen.rings / self.z
        options = np.array([each.rings for each in self.options.layers.options]) / self.z
        used = [k for k in range(len(self.groups)) if chosen[k] or options[:, k].any()]
        members = [self.groups[k] for k in used]
        b.hop = pyo.Var(
            [(k, s, t) for k, of in zip(used, members, strict=True) for s, t in permutations(of, 2)],
            bounds=(0, None),
            doc="hop bytes of a group where t follows s, in units of z",
        )
        self.hops: dict[tuple[int, int], list[Any]] = defaultdict(list)
        for (_, s, t), variable in b.hop.items():
            self.hops[s, t].append(variable)
        for place, (k, of) in enumerate(zip(used, members, strict=True)):
            more = self._options(options[:, k].tolist(), -1.0)
            for s in of:
                others = [t for t in of if t != s]
                self._row([*((1.0, b.hop[k, s, t]) for t in others), *more], chosen[k], chosen[k])
                self._row([*((1.0, b.hop[k, t, s]) for t in others), *more], chosen[k], chosen[k])
            pairs = combinations(of, 2) if len(of) > 2 else ()
            for cut in (*pairs, *sets_to_leave(members, place)):
                leaving = [(1.0, b.hop[k, s, t]) for s in cut for t in of if t not in cut]
                self._row([*leaving, *more], chosen[k], None)

    def _add_flows(self) -> None:
        b, own = self.model, set(self.own)
        b.sent = pyo.Var([(s, i, j) for s in self.own for i, j in self.arcs if j != s], bounds=(0, None))
        b.received = pyo.Var([(t, i, j) for t in self.own for i, j in self.arcs if i != t], bounds=(0, None))
        for s in self.own:
            for v in range(self.n):
                if v != s:
                    arriving = [(1.0, b.sent[s, u, v]) for u in range(self.n) if u != v]
                    leaving = [(-1.0, b.sent[s, v, w]) for w in range(self.n) if w not in (s, v)]
                    self._delivers([*arriving, *leaving], s, v)
        for t in self.own:
            for v in range(self.n):
                if v != t:
                    leaving = [(1.0, b.received[t, v, w]) for w in range(self.n) if w != v]
                    arriving = [(-1.0, b.received[t, u, v]) for u in range(self.n) if u not in (t, v)]
                    self._delivers([*leaving, *arriving], v, t, nothing=v in own)
        for i, j in self.arcs:
            load = [(1.0, b.sent[s, i, j]) for s in self.own if s != j]
            load += [(1.0, b.received[t, i, j]) for t in self.own if t != i]
            self._row([*load, (-1.0, self._link(i, j))], None, 0)

    def _delivers(self, balance: Terms, s: int, t: int, nothing: bool = False) -> None:
        """Flows take what s sends to t."""
        if nothing:
            self._row(balance, 0, 0)
            return
        wanted = self._options([float(each.traffic[s, t]) / self.z for each in self.options.layers.options], -1.0)
        wanted += [(-1.0, hop) for hop in self.hops.get((s, t), ())]
        amount = float(self.chosen.traffic[s, t]) / self.z
        self._row([*balance, *wanted], amount, amount)

    def _add_limits(self) -> None:
        b, capacity = self.model, self.options.capacity
        unit_s = self.z / self.instance.link_bandwidth_bytes_per_s
        busy, rows = (
            np.unique(np.column_stack([chosen, more]), axis=0) / unit_s
            for chosen, more in zip(self.part.asked, self.options.asked, strict=True)
        )
        most = self.most_s / unit_s
        share = capacity * len(self.own) / self.n
        sent = [(1 / share, each) for each in b.sent.values()]
        carried = [(1 / capacity, each) for each in (*b.sent.values(), *b.received.values())]
        b.compute = pyo.Var(bounds=(0, most), doc="seconds of computing, in the unit of links")
        self._row([*sent, (1.0, b.compute)], None, most)
        self._row([*carried, (1.0, b.compute)], None, most)
        for chosen, *more in busy.tolist():
            self._row([*self._options(more), (-1.0, b.compute)], None, -chosen)
        for chosen, *more in rows.tolist():
            self._row([*self._options(more), (1.0, b.compute)], None, most - chosen)
        for s in self.own:
            hops = [(-1.0, hop) for (of, _), listed in self.hops.items() if of == s for hop in listed]
            least = [self._hop_bytes(each, s) / self.z for each in self.options.layers.options]
            hops += self._options(least, -1.0)
            chosen = self._hop_bytes(self.chosen, s) / self.z
            flow = [(1.0, b.sent[s, i, j]) for i, j in self.arcs if j != s]
            self._row([*flow, *hops], chosen * (1 - BOUND_MARGIN), None)

    def _hop_bytes(self, needs: Needs, s: int) -> float:
        return hop_bytes_out(needs.traffic[[s]], self.instance.degree, self.options.duplex)


def sets_to_leave(groups: Sequence[tuple[int, ...]], k: int) -> Iterator[tuple[int, ...]]:
    """Three and more members of group k that a ring has to leave; what is left of the others is one of the sets."""
    members = groups[k]
    if len(members) <= _ALL_CUTS:
        for size in range(3, len(members) // 2 + 1):
            yield from combinations(members, size)
        return
    parts = {tuple(sorted(set(members) & set(each))) for each in groups}
    unions = {tuple(sorted({*one, *other})) for one, other in combinations(parts, 2)}
    yield from sorted(some for some in parts | unions if 3 <= len(some) <= len(members) - 3)
