"""Messages on the timeline, exactly: which gradients go together, and with which option."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem
from ddlopt.models.compression.levels.instance import LevelInstance
from ddlopt.models.compression.timeline.candidate_messages import (
    Messages,
    candidate_messages,
    most_messages,
    replacements,
)
from ddlopt.models.compression.timeline.choices import answer_of, as_timeline, is_timeline, plan_of, why_no_wire
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan
from ddlopt.models.compression.timeline.interchangeable_gradients import in_order, interchangeable
from ddlopt.models.compression.timeline.units import LEAST_TIME, error_limit, error_unit, time_limit, time_unit_s
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError, a_or_an
from ddlopt.models.linear import check_range
from ddlopt.models.tolerances import INTEGRALITY_TOL, NEGLIGIBLE_COEFFICIENT
from ddlopt.models.units import LARGEST_OF_EQUATIONS

Rows = list[npt.NDArray[np.int64]]
"""For every gradient the numbers of some messages."""

_LARGEST = 200_000
"""Messages beyond which the model takes longer than anybody waits."""


@dataclass(frozen=True)
class OverlapTimeline(FormulationBase):
    r"""Messages in a row, and how long each lies there encoded before it is sent.

    A *message* a is a run of gradients :math:`f_a .. l_a` with an option: a single gradient, or with fusion a bucket of
    those that offer one label. It takes :math:`e_a` of encoding, :math:`c_a` of the wire, and has the error
    :math:`g_a`. Let :math:`x_a = 1` if it is sent. The recursion of the timeline unfolds to the largest, over all
    messages b that are sent, of

    .. math:: R_{l_b} + \sum_{a \le b} e_a + \sum_{a \ge b} c_a .

    If everything is sent as late as the end T allows, b lies there encoded for T less this. Let :math:`w_i \ge 0` be
    that *wait* of the message with gradient i. From one gradient to the next only the two messages that meet there
    matter, which leaves a balance, as of an inventory:

    .. math::
        \min\ & T = w_1 + \sum_{f_a = 1} (R_{l_a} + e_a)\, x_a + \sum_a c_a x_a \\
        & w_{i+1} = w_i + \sum_{l_a = i} c_a x_a - \sum_{f_a = i + 1} (R_{l_a} - R_i + e_a)\, x_a \\
        & \sum_{f_a = 1} x_a = 1,\qquad \sum_{l_a = i} x_a = \sum_{f_a = i + 1} x_a \\
        & w \ge 0,\quad x_a \in \{0, 1\},

    without big-M and with at most six entries a message. Goal ``error`` minimises :math:`\sum_a g_a x_a` with T
    within its budget; an error budget is one row :math:`\sum_a g_a x_a \le E`.

    *Linear relaxation.* Without fusion, eliminating w gives the rows of the closed form,
    :math:`T \ge R_i + \sum_{k \le i} e_k + \sum_{k \ge i} c_k`, and so does eliminating :math:`F_i` and :math:`D_i`
    from the recursion :math:`F_i \ge R_i + D_i + c_i`, :math:`F_i \ge F_{i-1} + c_i`, :math:`D_i = D_{i-1} + e_i`: the
    three relaxations are equal. The closed form is dense, and the recursion has twice the variables beside x and thrice
    the rows.

    *Left out* are messages that others replace, see
    :func:`~ddlopt.models.compression.timeline.candidate_messages.candidate_messages`.

    *Order.* Networks repeat their layers, and a budget may be spent on any of many gradients of the same figures. Some
    optimal plan compresses the later ones more (:mod:`ddlopt.models.compression.timeline.interchangeable_gradients`).
    With o < p where option o comes before p, neighbours i, j among gradients of the same figures have, for every option
    t,

    .. math:: \sum_{p \ge t} x_{ip} + \sum_{o < t} x_{jo} \le 1 .

    That holds without fusion, and takes nodes off the tree where errors count; elsewhere it only costs time.

    Times are about 1e3 units, and so is what a budget leaves of errors beyond the least that there is.

    *What a host must not couple to.* Which of several messages replaces another: with ``every_message`` none is left
    out but for a budget. With ``ordered``, which of identical gradients is compressed more.

    Parameters
    ----------
    ordered : bool
        Whether to have these rows; not for a host model that tells gradients of the same figures apart.
    every_message : bool
        Whether to have messages that others replace, too.

    Ports
    -----
    ``sent[first, last, option]``
        x; ``option`` is a place in the menu of the first gradient. Gradient i takes it if first <= i <= last; without
        fusion first = last = i.
    ``wait[i]``
        w in units.
    ``time``
        T in units of :func:`~ddlopt.models.compression.timeline.units.time_unit_s`.
    ``excess`` : with an error budget, or goal ``error``
        :math:`\sum g_a x_a` beyond the least error, in units of
        :func:`~ddlopt.models.compression.timeline.units.error_unit`.
    ``objective``
        The time or the error in these units, to be minimised.

    References
    ----------
    Z. Wang et al., "Hi-speed DNN training with Espresso: unleashing the full potential of gradient compression with
    near-optimal usage strategies", EuroSys 2023, for the timeline. The model is ours.
    """

    ordered: bool = True
    every_message: bool = False

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: CompressionProblem) -> str | None:
        """Fusion where there are too many messages."""
        if not is_timeline(instance):
            return f"it chooses how gradients are sent on a timeline, which {a_or_an(instance.kind)} does not have"
        if isinstance(instance, CompressionInstance) and instance.lanes:
            return why_no_wire(instance)
        if isinstance(instance, CompressionInstance) and most_messages(instance) > _LARGEST:
            count = len(candidate_messages(instance, self.every_message).first)
            if count > _LARGEST:
                return f"there are {count} messages to choose from, more than {_LARGEST}; use label-setting"
        return None

    def build(self, block: pyo.Block, instance: CompressionProblem) -> None:
        """Fill ``block``."""
        timeline = as_timeline(instance)
        messages = candidate_messages(timeline, self.every_message)
        starting, ending = (by_gradient(places, timeline.size) for places in (messages.first, messages.last))
        block.MESSAGES = pyo.Set(dimen=3, initialize=messages.keys, doc="(first, last, option)")
        block.GRADIENTS = pyo.Set(initialize=range(timeline.size))
        block.sent = pyo.Var(block.MESSAGES, domain=pyo.Binary, doc="whether the message is sent")
        block.wait = pyo.Var(block.GRADIENTS, bounds=(0, None), doc="how long the gradient's message waits, in units")
        add_row_of_messages(block, starting, ending)
        _add_waits(block, timeline, messages, starting, ending)
        check_range(block, instance.name, LARGEST_OF_EQUATIONS)
        if self._orders(timeline):
            _add_order(block, messages)
        if timeline.goal == "time":
            block.objective = pyo.Expression(expr=block.time.expr)
            if timeline.error_budget is not None:
                _add_excess(block, timeline, messages)
                block.error_budget_is_kept = pyo.Constraint(
                    expr=block.excess.expr <= error_limit(timeline), doc="the error is within its budget"
                )
        else:
            _add_excess(block, timeline, messages)
            block.objective = pyo.Expression(expr=timeline.least_error / error_unit(timeline) + block.excess)
            block.time_budget_is_kept = pyo.Constraint(
                expr=block.time.expr <= time_limit(timeline), doc="the time is within its budget"
            )

    def start(self, block: pyo.Block, instance: CompressionProblem, solution: CompressionAnswer) -> None:
        """The messages of a plan, or those that replace them."""
        timeline, plan = as_timeline(instance), plan_of(instance, solution)
        sizes = plan.buckets or (1,) * timeline.size
        messages = candidate_messages(timeline, self.every_message)
        chosen = replacements(timeline, messages, plan.choices, sizes)
        if sum(last - first + 1 for first, last, _ in chosen) < timeline.size:
            return
        if self._orders(timeline):
            chosen = in_order(messages, chosen)
        for variable in block.sent.values():
            variable.set_value(0)
        for key in chosen:
            block.sent[key].set_value(1)

    def read(self, block: pyo.Block, instance: CompressionProblem) -> CompressionAnswer:
        """The plan of the messages that are sent.

        Raises
        ------
        SolverError
            If the values send some gradient not at all, twice or in part.
        """
        timeline = as_timeline(instance)
        places = [{option.label: place for place, option in enumerate(menu)} for menu in timeline.menus]
        choices: list[int] = []
        sizes = []
        for (first, last, option), variable in block.sent.items():
            if INTEGRALITY_TOL < variable.value < 1 - INTEGRALITY_TOL:
                raise SolverError(f"'{instance.name}': gradients {first}..{last} are sent {variable.value:g} times")
            if variable.value < 0.5:
                continue
            if first != len(choices):
                raise SolverError(f"'{instance.name}': gradient {first} is sent after {len(choices)} others")
            label = timeline.option(first, option).label
            choices += [places[gradient.menu][label] for gradient in timeline.gradients[first : last + 1]]
            sizes.append(last - first + 1)
        if len(choices) != timeline.size:
            raise SolverError(f"'{instance.name}': {len(choices)} of {timeline.size} gradients are sent")
        buckets = tuple(sizes) if timeline.fusion else ()
        return answer_of(instance, CompressionPlan(instance=instance.name, choices=tuple(choices), buckets=buckets))

    def _orders(self, timeline: CompressionInstance) -> bool:
        errors_count = timeline.goal == "error" or timeline.error_budget is not None
        return self.ordered and errors_count and not timeline.fusion

    def objective_value(self, instance: CompressionInstance | LevelInstance, value: float) -> float:
        """Seconds or the error for as much in units."""
        return value * (time_unit_s(instance) if instance.goal == "time" else error_unit(instance))


def add_row_of_messages(block: pyo.Block, starting: Rows, ending: Rows) -> None:
    """Messages follow each other without a gap; ``block`` has ``GRADIENTS`` and ``sent``."""
    sent = list(block.sent.values())

    @block.Constraint(block.GRADIENTS, doc="a message starts at the first gradient, and wherever another ends before")
    def messages_follow_each_other(b: Any, i: int) -> Any:
        before = ending[i - 1] if i else ()
        coefficients = [1.0] * len(starting[i]) + [-1.0] * len(before)
        return linear(coefficients, [sent[k] for k in (*starting[i], *before)]) == (0.0 if i else 1.0)


def _add_waits(
    block: pyo.Block, timeline: CompressionInstance, messages: Messages, starting: Rows, ending: Rows
) -> None:
    """``time`` and the balance of waits."""
    sent, wait = list(block.sent.values()), list(block.wait.values())
    unit_s = time_unit_s(timeline)
    before = np.concatenate(([0.0], timeline.ready_s[:-1]))
    encoded = (timeline.ready_s[messages.last] - before[messages.first] + messages.encode_s) / unit_s
    occupation = messages.occupation_s / unit_s

    @block.Constraint(range(1, timeline.size), doc="a wait shrinks by what is encoded, and grows by what is sent")
    def waits_are_balanced(b: Any, i: int) -> Any:
        numbers = (*ending[i - 1], *starting[i])
        figures = np.concatenate((occupation[ending[i - 1]], -encoded[starting[i]]))
        coefficients, variables = terms_of(figures, [sent[k] for k in numbers], LEAST_TIME)
        return linear([*coefficients, 1.0, -1.0], [*variables, wait[i - 1], wait[i]]) == 0.0

    coefficients, variables = terms_of(occupation + np.where(messages.first == 0, encoded, 0.0), sent, LEAST_TIME)
    block.time = pyo.Expression(expr=linear([*coefficients, 1.0], [*variables, wait[0]]), doc="in units")


def _add_order(block: pyo.Block, messages: Messages) -> None:
    sent = list(block.sent.values())
    rows = []
    for group in interchangeable(messages):
        before = group.comes_before
        for t in np.flatnonzero(before.any(axis=0)):
            late, early = [t, *np.flatnonzero(before[t])], np.flatnonzero(before[:, t])
            rows += [
                [sent[k] for k in (*here[late], *there[early])]
                for here, there in zip(group.messages, group.messages[1:], strict=False)
            ]

    @block.Constraint(range(len(rows)), doc="of gradients of the same figures, later ones are compressed no less")
    def later_ones_are_compressed_more(b: Any, row: int) -> Any:
        return linear([1.0] * len(rows[row]), rows[row]) <= 1.0


def _add_excess(block: pyo.Block, timeline: CompressionInstance, messages: Messages) -> None:
    terms = terms_of(messages.excess / error_unit(timeline), list(block.sent.values()))
    block.excess = pyo.Expression(expr=linear(*terms), doc="error beyond the least, in units")


def by_gradient(places: npt.NDArray[np.int64], count: int) -> Rows:
    """For every gradient the numbers of the messages whose place it is."""
    order = np.argsort(places, kind="stable")
    return np.split(order, np.searchsorted(places[order], np.arange(1, count)))


def terms_of(
    coefficients: npt.NDArray[np.float64], variables: Sequence[Any], least: float = NEGLIGIBLE_COEFFICIENT
) -> tuple[list[float], list[Any]]:
    """Those that are not negligible."""
    kept = np.flatnonzero(np.abs(coefficients) > least)
    return coefficients[kept].tolist(), [variables[k] for k in kept.tolist()]


def linear(coefficients: list[float], variables: list[Any]) -> LinearExpression:
    """The sum of products."""
    return LinearExpression(linear_coefs=coefficients, linear_vars=variables, constant=0.0)
