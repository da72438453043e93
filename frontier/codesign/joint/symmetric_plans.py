"""Strategies together with links of a Cayley graph: one program for each set of its generators."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import highspy
import numpy as np
import pyomo.environ as pyo

from ddlopt.frontier.codesign.joint.candidate import served_by
from ddlopt.frontier.codesign.joint.master import Choices
from ddlopt.frontier.engines.columns import INF, RestrictedMaster
from ddlopt.frontier.topology.symmetric_rings.quotient import Quotient
from ddlopt.frontier.topology.symmetric_rings.search import FINAL, GeneratorSearch, Ports, best_of
from ddlopt.frontier.topology.symmetric_rings.sight import Floats, Ints, products_of_cycles, seen_under, subgroup_of
from ddlopt.frontier.topology.symmetric_rings.symmetric_rings import why_not, written
from ddlopt.frontier.topology.symmetric_rings.ways import CayleyGraph
from ddlopt.frontier.topology.symmetry.cayley import AbelianGroup
from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.formulations.joint_milp import JointStrategyTopology
from ddlopt.models.codesign.formulations.rows.coupling import template_of
from ddlopt.models.codesign.formulations.strategy_bound import StrategyBound
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.job import job_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import SolverError
from ddlopt.models.topology import TopologyDesign
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.backends.matrix import LinearModel, linear_model, load_values
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.balance.balance import Balance
from ddlopt.solvers.topology.balance.path_kernels import seed_kernels

LEAST_SERVERS = 9
"""Up to 8 servers other searches are as good."""
_STRATEGIES = StrategyBound()


@dataclass(frozen=True)
class Effort:
    """What the search for symmetric plans spends."""

    groups: int = 3
    """Groups of translations that are tried; those after the first few make fewer sets of groups symmetric."""
    gain: float = 1e-6
    """Relative gain of the program below which a round of columns is idle."""
    exact_servers: int = 24
    """Servers up to which a program on the links alone ends the search: its flows grow with the square of servers."""
    mip_s: float = 30.0
    """Seconds for whole strategies, at most."""


_EFFORT = Effort()

_DIGITS = 10
"""Of loads, to which they are compared: columns that agree are one."""


class Column(NamedTuple):
    """A ring of a group set, or shortest paths of a pattern: links of each generator for a byte of its share."""

    figure: int
    links: Floats
    ring: Ints | None


class SymmetricPlans:
    """Programs on strategies, rings and routes for generators of one group; HiGHS has one of them at a time.

    Rows of the program are those of :class:`~ddlopt.models.codesign.formulations.strategy_bound.StrategyBound`, then
    that rings and paths carry the bytes of every set and pattern, then the links of each generator.

    Parameters
    ----------
    instance : CodesignInstance
    model : pyomo.ConcreteModel
        Of ``StrategyBound``; several groups may share one.
    linear : LinearModel
        Its arrays.
    group : AbelianGroup
        Server x is its element x. Sets whose groups are no cosets are not used.
    """

    def __init__(
        self, instance: CodesignInstance, model: pyo.ConcreteModel, linear: LinearModel, group: AbelianGroup
    ) -> None:
        self.instance, self.linear, self.group = instance, linear, group
        self.block = model.component(instance.family)
        self.subgroups = [subgroup_of(group, groups) for groups in _groups_of_sets(instance)]
        self.master = RestrictedMaster(
            "strategies, rings and paths", {"threads": 1, "mip_rel_gap": _EFFORT.gain}, linear
        )
        self._set_integer(False)
        column_of = {id(each): place for place, each in enumerate(linear.columns)}
        self.congestion = column_of[id(self.block.congestion)]
        tables = tables_of(instance)
        sets, everybody = len(self.subgroups), np.arange(group.order)
        self.offsets: list[Floats] = []
        for place, weight in enumerate(demand_of(tables).weights.tolist()):
            share = column_of[id(self.block.share[place])]
            self.master.add_row(0.0, 0.0, [share], [-1.0])
            if place >= sets:
                unit = tables.patterns[place - sets].unit.toarray()
                self.offsets.append(unit[everybody[:, None], group.translations.T].mean(axis=0) / weight)
            elif self.subgroups[place] is None:
                self.master.set_bounds(share, 0.0, 0.0)
        self.rows, self.carried = self.master.rows, len(linear.rows)

    def _set_integer(self, integer: bool) -> None:
        kind = highspy.HighsVarType.kInteger if integer else highspy.HighsVarType.kContinuous
        for column in np.flatnonzero(self.linear.integer).tolist():
            self.master.highs.changeColIntegrality(column, kind)

    def begin(self, counts: Ints, columns: Iterable[Column]) -> None:
        """Take out what other generators had; links of each at a server, and columns to begin with."""
        self.master.keep(self.rows, len(self.linear.columns))
        for count in counts.tolist():
            self.master.add_row(-INF, 0.0, [self.congestion], [-float(count)])
        for column in columns:
            self.add(column)

    def add(self, column: Column) -> None:
        """One more ring or tree of paths."""
        used = np.flatnonzero(column.links)
        self.master.add(0.0, [self.carried + column.figure, *(self.rows + used)], [1.0, *column.links[used]])

    def solve(self) -> tuple[float, Floats]:
        """Seconds, and lengths of the generators; infinite where HiGHS gives up."""
        try:
            optimum = self.master.solve()
        except SolverError:
            return np.inf, np.zeros(0)
        lengths = np.maximum(-optimum.duals[self.rows :], 0.0)
        return _STRATEGIES.objective_value(self.instance, optimum.value), lengths

    def whole(self, seconds: float) -> Choices | None:
        """The best whole strategies with the rings and paths that the program has; None if the time was too short."""
        highs = self.master.highs
        self._set_integer(True)
        highs.setOptionValue("time_limit", highs.getRunTime() + seconds)
        highs.run()
        found = None
        if np.isfinite(highs.getInfo().objective_function_value):
            values = np.asarray(highs.getSolution().col_value)[: len(self.linear.columns)]
            load_values(self.linear, np.where(self.linear.integer, np.round(values), values))
            found = _STRATEGIES.read(self.block, self.instance)
        highs.setOptionValue("time_limit", highspy.kHighsInf)
        self._set_integer(False)
        return found


def _groups_of_sets(instance: CodesignInstance) -> list[list[tuple[int, ...]]]:
    tables = tables_of(instance)
    return [[tables.groups[place] for place in places] for places in tables.groups_of]


@dataclass
class SymmetricProgram:
    """The program for some generators: a :class:`~ddlopt.frontier.topology.symmetric_rings.search.Program`."""

    plans: SymmetricPlans
    generators: Ints
    counts: Ints

    def __post_init__(self) -> None:
        self.columns: list[Column] = []
        self._known: set[tuple[int, bytes]] = set()
        self.length: Floats = np.ones(len(self.generators)) / self.counts.sum()

    @cached_property
    def graph(self) -> CayleyGraph:
        """The links."""
        return CayleyGraph(self.plans.group, self.generators)

    def solve(self, rounds: int, kicks: int, enough: float, hopeless: float) -> float:
        """Seconds of an iteration, strategies in parts; as of :meth:`.Quotient.solve`."""
        self.plans.begin(self.counts, self.columns)
        found = np.inf
        for turn in range(rounds):
            if not self._generate(kicks):
                break
            before, (found, length) = found, self.plans.solve()
            if not np.isfinite(found):
                return before
            self.length = length
            if found <= enough or (turn >= 2 and (found > hopeless or before - found <= _EFFORT.gain * found)):
                break
        return found

    def _generate(self, kicks: int) -> bool:
        ways = self.graph.ways(self.length)
        if ways is None:
            return False
        found: list[Column] = []
        for place, subgroup in enumerate(self.plans.subgroups):
            if subgroup is None:
                continue
            known = [each for each in self.columns if each.figure == place]
            best = min(known, key=lambda each: float(each.links @ self.length)).ring if known else None
            for ring in self.graph.rings(ways, self.length, subgroup, best, kicks):
                found.append(Column(place, self.graph.ring_links(ways, ring), ring))
        sets = len(self.plans.subgroups)
        found += [Column(sets + p, parts @ ways.links, None) for p, parts in enumerate(self.plans.offsets)]
        before = len(self.columns)
        for column in found:
            key = column.figure, np.round(column.links, _DIGITS).tobytes()
            if key not in self._known:
                self._known.add(key)
                self.columns.append(column)
                self.plans.add(column)
        return len(self.columns) > before

    def plan(self, seconds: float) -> tuple[Choices, Balance | TopologyDesign, float] | None:
        """Whole strategies, a design for them and its busiest link's bytes; None where they leave an uneven job."""
        self.plans.begin(self.counts, self.columns)
        choices = self.plans.whole(seconds)
        job = None if choices is None else job_of(self.plans.instance, choices)
        sight = None if job is None else seen_under(job, self.plans.group)
        if choices is None or job is None or sight is None:
            return None
        quotient = Quotient(sight, self.generators, self.counts)
        if not np.isfinite(quotient.solve(*FINAL, 0.0, np.inf)):
            return None
        found = written(quotient)
        exact = self._on_links(found.design(), seconds) if job.servers <= _EFFORT.exact_servers else None
        return exact or (choices, found, found.congestion_bytes)

    def _on_links(self, design: TopologyDesign, seconds: float) -> tuple[Choices, TopologyDesign, float] | None:
        """Strategies, rings and routes for links, with the translates of the program's rings, each to any part."""
        instance, move = self.plans.instance, self.plans.group.translations
        rings: dict[frozenset[int], set[tuple[int, ...]]] = defaultdict(set)
        for ring in [column.ring for column in self.columns if column.ring is not None]:
            for translate in move[:, ring].tolist():
                begin = translate.index(min(translate))
                rings[frozenset(translate)].add((*translate[begin:], *translate[:begin]))
        template = template_of(instance)
        assert template is not None
        known = tuple(tuple(sorted(rings[frozenset(each.members)])) for each in template.allreduce_groups)
        if not all(known):
            return None
        formulation = JointStrategyTopology(known, links=design.links)
        model = build_model(instance.family, formulation, instance)
        if Highs().solve(model, Limits(seconds, _EFFORT.gain), 0, warm=False).objective is None:
            return None
        plan = formulation.read(model.component(instance.family), instance)
        served = served_by(instance, plan)
        return None if served is None else (plan.choices(instance), *served)


def symmetric_plan(
    instance: CodesignInstance, known: Sequence[Choices], seed: int, clock: Clock, enough_s: float, trials: int
) -> tuple[Choices, Balance | TopologyDesign, float] | None:
    r"""Strategies with links of a Cayley graph, and rings and routes in all their translates.

    For some generators of a group that takes every set's groups into each other, let :math:`\lambda_c` be the bytes
    over ring (or paths) c, of a set or pattern q(c), and :math:`u_{cg}` its links of generator g. Then

    .. math::
        \min\ C + z \quad \text{s.t.}\quad \sum_{c : q(c) = q} \lambda_c = b_q, \qquad
        \sum_c u_{cg} \lambda_c \le k_g z

    over strategies with compute time C and bytes :math:`b_q`, :math:`k_g` links of g a server. Strategies may be in
    parts, as in a linear program, while generators are exchanged; for the best ones they are made whole. Often many
    choices have the least volume, and few of them fill whole ports: such are found here.

    Parameters
    ----------
    instance : CodesignInstance
    known : sequence of choices
        Of interest; groups of translations are preferred under which all sets that these use are symmetric.
    seed : int
    clock : Clock
    enough_s : float
        An iteration time at which there is nothing left to search for.
    trials : int
        Sets of generators that are judged.

    Returns
    -------
    (choices, design, bytes) or None
        The bytes are those on the busiest link.
        None where none of the jobs known looks the same from every server.
    """
    jobs = [job_of(instance, choices) for choices in known] if instance.servers >= LEAST_SERVERS else []
    if all(job is None or why_not(job) is not None for job in jobs):
        return None
    tables = tables_of(instance)
    used = np.zeros(len(tables.groups_of))
    for choices in known:
        used += tables.bytes_of(choices)[0] > 0
    groups = _groups_of_sets(instance)

    def asymmetric(group: AbelianGroup) -> float:
        return sum(float(used[q]) for q, each in enumerate(groups) if used[q] and subgroup_of(group, each) is None)

    model = build_model(instance.family, _STRATEGIES, instance)
    linear = linear_model(model)
    seed_kernels(seed)
    rng = np.random.default_rng(seed)
    ports = Ports(instance.degree, instance.optics == "duplex", instance.parallel_links)

    def search_of(group: AbelianGroup) -> GeneratorSearch[Any]:
        plans = SymmetricPlans(instance, model, linear, group)
        subgroups = [each for each in plans.subgroups if each is not None]
        return GeneratorSearch(group, subgroups, ports, partial(SymmetricProgram, plans), rng, clock, enough_s)

    chosen = sorted(products_of_cycles(instance.servers), key=asymmetric)[: _EFFORT.groups]
    best, _, _ = best_of([search_of(group) for group in chosen], trials)
    return None if best is None else best.plan(min(_EFFORT.mip_s, max(clock.left_s, 1e-3)))
