"""Aggregation in a tree as an integer program over the next aggregating switch above each switch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.aggregation.tree.instance import AggregatingSwitches, TreeInstance
from ddlopt.models.aggregation.tree.tables import TreeTables, budgets, coupled, tables
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import Rows, covers, linear, term, total, weighted
from ddlopt.models.units import unit_of

# Index of what is above the root; switches are numbered from 0.
DESTINATION = -1
_Terms = list[tuple[float, Any]]


def unit_s(instance: TreeInstance) -> float:
    """Time in which models of a tree count, a power of two: near the longest of a message on a link that it takes."""
    sizes = np.array([job.message_size for job in instance.jobs])[:, None]
    times = np.where(tables(instance).below > 0, sizes * np.array(instance.seconds_per_message), 0.0)
    return unit_of(float(times.max()), parts=1)


def add_switches(block: pyo.Block, instance: TreeInstance, figures: TreeTables) -> None:
    """Add ``aggregates`` with memory and budgets; pairs that save nothing, or have no memory, are left out."""
    pairs = [(job, node) for job, each in enumerate(figures.useful) for node in each.nonzero()[0].tolist()]
    block.PAIRS = pyo.Set(dimen=2, initialize=pairs)
    block.JOBS = pyo.RangeSet(0, len(instance.jobs) - 1)
    block.aggregates = pyo.Var(block.PAIRS, domain=pyo.Binary, doc="1 if the switch aggregates for the job")
    b = block.aggregates
    block.COUPLED = pyo.Set(initialize=coupled(instance, figures.useful))
    of_all, each = budgets(instance, figures.useful)

    rows = Rows()
    for node in block.COUPLED:
        memory = weighted((float(job.memory), b[j, node]) for j, job in enumerate(instance.jobs) if (j, node) in b)
        room = instance.room(node)
        assert room is not None, "a node that is coupled has a limit"
        rows["memory_suffices"][node] = memory <= room
    for j in block.JOBS:
        own = [b[pair] for pair in pairs if pair[0] == j]
        if len(own) > each[j]:
            rows["budget_of_job_holds"][j] = total(own) <= each[j]
    if len(pairs) > of_all:
        rows["budget_holds"][None] = total(b.values()) <= of_all
    rows.add_to(
        block,
        memory_suffices="a switch has the memory that its jobs need",
        budget_of_job_holds="a job has no more switches than its budget",
        budget_holds="all jobs within the budget",
    )


def read_switches(block: pyo.Block, instance: TreeInstance) -> AggregatingSwitches:
    """The switches of each job.

    Raises
    ------
    SolverError
        If one aggregates in part.
    """
    switches: list[list[int]] = [[] for _ in instance.jobs]
    for (job, node), variable in block.aggregates.items():
        value = pyo.value(variable)
        if abs(value - round(value)) > 1e-4:
            raise SolverError(f"switch {instance.label(node)} aggregates for job {job} to the extent of {value:g}")
        if round(value):
            switches[job].append(node)
    return AggregatingSwitches(instance=instance.name, switches=tuple(map(tuple, switches)))


@dataclass(frozen=True)
class TreeAggregation(FormulationBase):
    r"""Each switch and the next one above it that aggregates.

    A switch is *useful* for a job if it has memory for it and two or more messages below it. :math:`A_v` are the useful
    switches above v and the destination, :math:`q` is the next of them, and :math:`P_v` the time of a message from v
    to the destination. For each job, :math:`b_v = 1` if v aggregates, and :math:`y_{va} = 1` if v does not and
    :math:`a \in A_v` is where its messages are added up next:

    .. math::
        b_v + \sum_{a \in A_v} y_{va} = 1, \qquad y_{vq} \le b_q, \qquad y_{va} \le y_{qa} \quad (a \ne q) .

    The right-hand sides, call them :math:`s_{va}`, say that a is next strictly above v; so the one message of a switch
    that aggregates goes to a if :math:`s_{va} - y_{va} = 1`. The time for which links are busy is the sum of

    .. math::
        (P_v - P_a) \bigl(\ell_v\, y_{va} + s_{va} - y_{va}\bigr) \ \text{(useful v)}, \qquad
        (P_v - P_a)\, \ell_v\, s_{va} \ \text{(others)},

    and without budget and memory rows all vertices are integral: it is the linear program of a dynamic program over the
    states (v, a), each of which leads to states of the children (Martin, Rardin, Campbell 1990). So with these rows its
    relaxation is the Lagrangian bound; for one job, the convex hull of the optimum as a function of the budget. For
    congestion, messages :math:`f_{va}` on the link above v on their way to a are these terms, without distances, and
    those of the children; the largest sum over jobs and anchors is minimised.

    Ports
    -----
    ``aggregates[j, v]``
        b, of useful pairs of job and switch.
    ``next_above[j, v, a]``
        y; a is -1 for the destination.
    ``busiest`` : goal congestion
        The largest time of a link, in units of :func:`unit_s`.
    ``objective``
        Time in units of :func:`unit_s`, to be minimised.

    References
    ----------
    The problem: R. Segal, C. Avin, G. Scalosub, "SOAR", CoNEXT 2021. Linear programs of dynamic programs: R. K. Martin,
    R. L. Rardin, B. A. Campbell, "Polyhedral characterization of discrete dynamic programming", Operations Research 38
    (1990). The formulation is ours.
    """

    covers: ClassVar[type[Instance]] = TreeInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def build(self, block: pyo.Block, instance: TreeInstance) -> None:
        """Fill ``block``."""
        figures = tables(instance)
        add_switches(block, instance, figures)
        states = _States(instance, figures)
        block.STATES = pyo.Set(dimen=3, initialize=list(states.all()))
        block.next_above = pyo.Var(block.STATES, bounds=(0, 1), doc="y: where a switch's messages are added up next")
        b, y = block.aggregates, block.next_above

        rows = Rows()
        for j, v in block.PAIRS:
            rows["messages_are_added_up"][j, v] = total([b[j, v], *(y[j, v, a] for a in states.anchors[j][v])]) == 1
        for j, v, a in block.STATES:
            state = states.variable(block, j, v, a)
            if state is not None:
                rows["next_is_inherited"][j, v, a] = term(y[j, v, a]) <= term(state)
        rows.add_to(
            block,
            messages_are_added_up="a switch aggregates, or its messages are added up above it",
            next_is_inherited="what is next above a switch is next above those below it, or nothing is",
        )
        if instance.goal == "utilization":
            self._utilization(block, instance, states)
        else:
            self._congestion(block, instance, states)

    def _utilization(self, block: pyo.Block, instance: TreeInstance, states: "_States") -> None:
        unit, path_s = unit_s(instance), states.figures.path_s
        collected: dict[int, list[Any]] = {}
        constant = 0.0
        for j, job in enumerate(instance.jobs):
            for v in states.nodes(j):
                for a in states.anchors[j][v]:
                    far = job.message_size * (path_s[v] - (0.0 if a == DESTINATION else path_s[a])) / unit
                    more, terms = states.emitted(block, j, v, a)
                    constant += far * more
                    for coefficient, variable in terms:
                        collected.setdefault(id(variable), [0.0, variable])[0] += far * coefficient
        block.objective = pyo.Expression(expr=linear([(each[0], each[1]) for each in collected.values()], constant))

    def _congestion(self, block: pyo.Block, instance: TreeInstance, states: "_States") -> None:
        unit = unit_s(instance)
        flows = [(j, v, a) for j in range(len(instance.jobs)) for v in states.nodes(j) for a in states.anchors[j][v]]
        block.FLOWS = pyo.Set(dimen=3, initialize=flows)
        block.messages = pyo.Var(block.FLOWS, bounds=(0, None), doc="f: on the link above a switch, by where they go")
        f, rows = block.messages, Rows()
        for j, v, a in flows:
            more, terms = states.emitted(block, j, v, a)
            below = total(f[j, c, a] for c in instance.children[v] if (j, c, a) in f)
            rows["messages_are_passed_on"][j, v, a] = weighted(terms) + more + below == term(f[j, v, a])
        block.busiest = pyo.Var(bounds=(0, None), doc="largest time of a link")
        block.LINKS = pyo.Set(initialize=[v for v in instance.order if states.figures.below[:, v].any()])
        for v in block.LINKS:
            busy = weighted(
                (job.message_size * instance.seconds_per_message[v] / unit, f[j, v, a])
                for j, job in enumerate(instance.jobs)
                for a in states.anchors[j][v]
                if (j, v, a) in f
            )
            rows["links_are_bounded"][v] = covers(block.busiest, busy)
        rows.add_to(
            block,
            messages_are_passed_on="a link has what enters at its switch and what comes from below",
            links_are_bounded="no link is busier than the busiest",
        )
        block.objective = pyo.Expression(expr=term(block.busiest).expression)

    def start(self, block: pyo.Block, instance: TreeInstance, solution: AggregatingSwitches) -> None:
        """Set ``aggregates`` and ``next_above``; the rest follows."""
        blue = {(j, v) for j, chosen in enumerate(solution.switches) for v in chosen}
        for pair, variable in block.aggregates.items():
            variable.set_value(int(pair in blue))
        above: dict[tuple[int, int], int] = {}
        for j in range(len(instance.jobs)):
            for v in instance.order:
                up = instance.parents[v]
                above[j, v] = v if (j, v) in blue else DESTINATION if up is None else above[j, up]
        for (j, v, a), variable in block.next_above.items():
            variable.set_value(int((j, v) not in blue and above[j, v] == a))

    def read(self, block: pyo.Block, instance: TreeInstance) -> AggregatingSwitches:
        """The switches of each job."""
        return read_switches(block, instance)

    def objective_value(self, instance: TreeInstance, value: float) -> float:
        """Seconds."""
        return value * unit_s(instance)


class _States:
    """Useful switches above each switch, of each job, and what expressions say that one of them is the next."""

    def __init__(self, instance: TreeInstance, figures: TreeTables) -> None:
        self.instance, self.figures = instance, figures
        self.anchors: list[list[tuple[int, ...]]] = []
        for useful in figures.useful:
            above: list[tuple[int, ...]] = [(DESTINATION,)] * instance.size
            for v in instance.order[1:]:
                up = instance.parents[v]
                assert up is not None
                above[v] = (*above[up], up) if useful[up] else above[up]
            self.anchors.append(above)

    def all(self) -> Iterator[tuple[int, int, int]]:
        """Of useful switches."""
        for j, useful in enumerate(self.figures.useful):
            for v in useful.nonzero()[0].tolist():
                for a in self.anchors[j][v]:
                    yield j, v, a

    def nodes(self, j: int) -> list[int]:
        """Switches that a job's messages reach."""
        return [v for v in self.instance.order if self.figures.below[j, v]]

    def variable(self, block: pyo.Block, j: int, v: int, a: int) -> Any:
        """s: whether a is next strictly above v; None where it always is."""
        anchors = self.anchors[j][v]
        q = anchors[-1]
        if q == DESTINATION:
            return None
        return block.aggregates[j, q] if a == q else block.next_above[j, q, a]

    def emitted(self, block: pyo.Block, j: int, v: int, a: int) -> tuple[float, _Terms]:
        """What leaves v for a, apart from what only passes through: a constant and terms."""
        load, state = float(self.instance.jobs[j].loads[v]), self.variable(block, j, v, a)
        if not self.figures.useful[j, v]:
            if state is None:
                return load, []
            return 0.0, [(load, state)] if load else []
        terms: _Terms = [(load - 1.0, block.next_above[j, v, a])]
        return (1.0, terms) if state is None else (0.0, [*terms, (1.0, state)])


def states_of(instance: TreeInstance) -> int:
    """Number of variables ``next_above``, without making them; for deep trees it grows with the square of the size."""
    figures = tables(instance)
    total = 0
    for useful in figures.useful:
        count = [1] * instance.size
        for v in instance.order[1:]:
            up = instance.parents[v]
            assert up is not None
            count[v] = count[up] + int(useful[up])
        total += sum(each for v, each in enumerate(count) if useful[v])
    return total
