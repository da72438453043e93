"""Options, parts and the order of the wire, exactly."""

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.compression.forward.instance import ForwardInstance, ForwardPlan
from ddlopt.models.compression.forward.schedule import plan
from ddlopt.models.compression.forward.units import counted, forward_unit_s
from ddlopt.models.compression.timeline.formulations.overlap_timeline import linear, terms_of
from ddlopt.models.compression.timeline.instance import Option
from ddlopt.models.compression.timeline.units import error_limit, error_unit, excess_room
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import check_range
from ddlopt.models.tolerances import INTEGRALITY_TOL
from ddlopt.models.units import LARGEST_OF_EQUATIONS, check_big_m

_MOST_PARTS = 40
"""Places of parts beyond which the pairs of them, 700 and more, take longer than anybody waits."""


@dataclass(frozen=True)
class ForwardOrder(FormulationBase):
    r"""Which of two parts of different gradients the wire sends first, for every pair.

    Let :math:`x_{iok} = 1` if gradient i takes option o in k parts, each of which lasts
    :math:`p_{iok} = h_{io} + (w_{io} + d_{io}) / k`. It has places :math:`j = 1 .. K` for parts, of which those beyond
    k last no time. Part (i, j) starts at :math:`s_{ij}` and lasts :math:`l_{ij} = \sum_{o,\,k \ge j} p_{iok} x_{iok}`;
    :math:`y = 1` if (i, j) is before (i', j'), where i < i'. With :math:`c_{iok} = k\, p_{iok}` and the tails q,

    .. math::
        \min\ & T \\
        & \textstyle\sum_{o,k} x_{iok} = 1,\qquad
          s_{i1} \ge P_i = R_i + \sum_{g \le i} \sum_{o,k} e_{go} x_{gok},\qquad s_{i,j+1} \ge s_{ij} + l_{ij} \\
        & s_{i'j'} \ge s_{ij} + l_{ij} - M (1 - y),\qquad s_{ij} \ge s_{i'j'} + l_{i'j'} - M y \\
        & T \ge s_{iK} + l_{iK} + q_i,\qquad
          T \ge P_i + q_i + \textstyle\sum_{g \ge i} \sum_{o,k} c_{gok} x_{gok} ,

    M an end that every wire without idling keeps. The last rows are what a wire takes that may be interrupted (see
    :func:`~ddlopt.models.compression.forward.bounds.priority_timeline`); without them the relaxation says nothing of
    the wire. A budget of error is one row.

    Ports
    -----
    ``taken[i, o, k]``
        x, of options whose error by itself is within the budget.
    ``before[i, j, g, h]``
        y, of part (i, j) and part (g, h).
    ``starts[i, j]``
        s in units.
    ``time``
        T in units.
    ``objective``
        T, to be minimised.

    References
    ----------
    Disjunctions: A. S. Manne, "On the job-shop scheduling problem", Operations Research 1960. Options, parts and the
    last rows are ours.
    """

    covers: ClassVar[type[Instance]] = ForwardInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: ForwardInstance) -> str | None:
        """Too many parts."""
        places = instance.size * instance.parts[-1]
        if places > _MOST_PARTS:
            return f"there are up to {places} parts to order, more than {_MOST_PARTS}; use forward-search"
        return None

    def build(self, block: pyo.Block, instance: ForwardInstance) -> None:
        """Fill ``block``."""
        timeline, count, most = instance.timeline, instance.size, instance.parts[-1]
        unit = forward_unit_s(instance)
        menus = [timeline.menus[gradient.menu] for gradient in timeline.gradients]
        least = [min(option.error for option in menu) for menu in menus]
        room = excess_room(timeline)
        fits = [
            (i, o)
            for i, menu in enumerate(menus)
            for o, option in enumerate(menu)
            if room is None or option.error - least[i] <= room
        ]
        keys = [(i, o, k) for i, o in fits for k in instance.parts]
        lasts = {(i, o, k): counted(_part_s(menus[i][o], k) / unit) for i, o, k in keys}
        encode = [[counted(option.encode_s / unit) for option in menu] for menu in menus]
        block.CHOICES = pyo.Set(dimen=3, initialize=keys, doc="(gradient, option, parts)")
        block.PARTS = pyo.Set(dimen=2, initialize=[(i, j) for i in range(count) for j in range(most)])
        pairs = [
            (i, j, g, h)
            for i, g in itertools.combinations(range(count), 2)
            for j, h in itertools.product(range(most), repeat=2)
        ]
        block.PAIRS = pyo.Set(dimen=4, initialize=pairs, doc="parts (i, j), (g, h) with i < g")
        block.taken = pyo.Var(block.CHOICES, domain=pyo.Binary, doc="whether a gradient takes the option in k parts")
        block.before = pyo.Var(block.PAIRS, domain=pyo.Binary, doc="whether the first part is sent before the other")
        block.starts = pyo.Var(block.PARTS, bounds=(0, None), doc="when a part is sent, in units")
        block.time = pyo.Var(bounds=(0, None), doc="in units")
        of = [[key for key in keys if key[0] == i] for i in range(count)]
        encoded = [
            timeline.gradients[i].ready_s / unit
            + sum(encode[g][o] * block.taken[g, o, k] for each in of[: i + 1] for g, o, k in each)
            for i in range(count)
        ]
        length = {(i, j): sum(lasts[key] * block.taken[key] for key in of[i] if key[2] > j) for i, j in block.PARTS}
        sent = [sum(key[2] * lasts[key] * block.taken[key] for key in each) for each in of]
        tails = (instance.tails_s / unit).tolist()
        end = timeline.gradients[-1].ready_s / unit + sum(
            max(each) + max(key[2] * lasts[key] for key in own) for each, own in zip(encode, of, strict=True)
        )
        # A time is about a thousand units.
        check_big_m(end, 1e3, instance.name, "the time of a plan")

        @block.Constraint(range(count), doc="a gradient takes one option in one number of parts")
        def one_is_taken(b: Any, i: int) -> Any:
            return sum(b.taken[key] for key in of[i]) == 1

        @block.Constraint(block.PARTS, doc="a part follows the one before, and the first of them the encoding")
        def parts_follow(b: Any, i: int, j: int) -> Any:
            return b.starts[i, j] >= (encoded[i] if j == 0 else b.starts[i, j - 1] + length[i, j - 1])

        @block.Constraint(block.PAIRS, doc="the other waits for a part that is before it")
        def other_waits(b: Any, i: int, j: int, g: int, h: int) -> Any:
            return b.starts[g, h] >= b.starts[i, j] + length[i, j] - end * (1 - b.before[i, j, g, h])

        @block.Constraint(block.PAIRS, doc="a part waits for the other if it is not before it")
        def part_waits(b: Any, i: int, j: int, g: int, h: int) -> Any:
            return b.starts[i, j] >= b.starts[g, h] + length[g, h] - end * b.before[i, j, g, h]

        @block.Constraint(range(count), doc="the forward pass needs a gradient that is there")
        def forward_waits(b: Any, i: int) -> Any:
            return b.time >= b.starts[i, most - 1] + length[i, most - 1] + tails[i]

        @block.Constraint(range(count), doc="what a wire takes that may be interrupted")
        def wire_is_enough(b: Any, i: int) -> Any:
            return b.time >= encoded[i] + tails[i] + sum(sent[i:])

        if timeline.error_budget is not None:
            excess = np.array([menus[i][o].error - least[i] for i, o, _ in keys]) / error_unit(timeline)
            spent = linear(*terms_of(excess, list(block.taken.values())))
            block.error_budget_is_kept = pyo.Constraint(
                expr=spent <= error_limit(timeline), doc="the error is within its budget"
            )
        check_range(block, instance.name, LARGEST_OF_EQUATIONS)
        block.objective = pyo.Expression(expr=block.time)

    def start(self, block: pyo.Block, instance: ForwardInstance, solution: ForwardPlan) -> None:
        """Options and order of a plan; parts that it does not have come right behind the last that it has."""
        chosen = set(zip(range(instance.size), solution.choices, solution.parts, strict=True))
        for key, variable in block.taken.items():
            variable.set_value(int(key in chosen))
        place: dict[tuple[int, int], tuple[int, int]] = {}
        so_far = [0] * instance.size
        for at, gradient in enumerate(solution.order):
            place[gradient, so_far[gradient]] = (at, 0)
            so_far[gradient] += 1
        for i, j in block.PARTS:
            place.setdefault((i, j), (place[i, so_far[i] - 1][0], j))
        for (i, j, g, h), variable in block.before.items():
            variable.set_value(int(place[i, j] < place[g, h]))

    def read(self, block: pyo.Block, instance: ForwardInstance) -> ForwardPlan:
        """Options and parts that are taken, in the order of the middles of their times on the wire.

        So a part that takes no time is before what starts when it is sent, and after what ends then.

        Raises
        ------
        SolverError
            If a gradient takes something in part, or not one option.
        """
        taken = {}
        for (i, o, k), variable in block.taken.items():
            if INTEGRALITY_TOL < variable.value < 1 - INTEGRALITY_TOL:
                raise SolverError(f"'{instance.name}': gradient {i} takes option {o} {variable.value:g} times")
            if variable.value > 0.5:
                taken[i] = (o, k)
        if len(taken) != instance.size:
            raise SolverError(f"'{instance.name}': {len(taken)} of {instance.size} gradients take an option")
        unit, options = forward_unit_s(instance), instance.timeline.option
        half = {i: _part_s(options(i, o), k) / unit / 2 for i, (o, k) in taken.items()}
        sent = sorted((block.starts[i, j].value + half[i], i, j) for i, j in block.PARTS if j < taken[i][1])
        choices, parts = zip(*(taken[i] for i in range(instance.size)), strict=True)
        return plan(instance, choices, parts, [i for _, i, _ in sent])

    def objective_value(self, instance: ForwardInstance, value: float) -> float:
        """Seconds for as much in units."""
        return value * forward_unit_s(instance)


def _part_s(option: Option, parts: int) -> float:
    return option.launch_s + (option.wire_s + option.decode_s) / parts
