"""What frameworks do: gradients as they are ready, or the one that is needed first, in parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.compression.forward.instance import ForwardInstance, ForwardPlan
from ddlopt.models.compression.forward.schedule import Rule, plan, planned, sent_by, served
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers import chain
from ddlopt.solvers.compression.timeline.exact import opened
from ddlopt.solvers.compression.trivial_plans import Nothing
from ddlopt.solvers.contracts import Limits, Result
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

STEPS = "compression/forward-search"
"""Whose steps choose options: the kind is ``options``, and they give ``make(timeline, limits, seed)``, a result."""
_SHARE = 0.5
"""Part of the time that is left for the model of a timeline, where there is no such step."""


def chosen_on(timeline: CompressionInstance, clock: Clock, seed: int) -> Result:
    """Options of a timeline: what the first step finds in the time that is left, or else its model in part of it."""
    for step in chain.steps(STEPS, "options"):
        found: Result = step.make(timeline, Limits(clock.part()), seed)
        return found
    return opened("highs").solve(timeline, Limits(clock.part(_SHARE)), seed)


@dataclass(frozen=True)
class _Scheduler(Heuristic, uses=()):
    """Options first, as on the timeline without a forward pass, then parts and the order.

    Parameters
    ----------
    compressed : bool
        Whether gradients take the options that are best if nobody waited for the end but the step itself; if not, they
        are sent as they are.
    """

    covers: ClassVar[type] = ForwardInstance

    compressed: bool = False

    def kernels_for(self, instance: ForwardInstance) -> tuple[str, ...]:
        """Those of the steps that choose options."""
        return chain.kernels_of_steps(STEPS, instance) if self.compressed else ()

    def choices(self, instance: ForwardInstance, seed: int, clock: Clock) -> tuple[int, ...]:
        """Places of options."""
        if self.compressed:
            found = chosen_on(instance.timeline, clock, seed).solution
            if found is None:
                raise NoSolutionError(f"no options were found for '{instance.name}' in its time")
        else:
            found, _ = Nothing().answer(instance.timeline, seed, clock, None)
        assert isinstance(found, CompressionPlan)
        return found.choices

    def answer(self, instance: ForwardInstance, seed: int, clock: Clock, start: Any) -> Answer[ForwardPlan]:
        """See :class:`~ddlopt.solvers.heuristic.Heuristic`."""
        return self.scheduled(instance, self.choices(instance, seed, clock)), {}

    def scheduled(self, instance: ForwardInstance, choices: Sequence[int]) -> ForwardPlan:
        """Parts and order for options."""
        raise NotImplementedError


def by_rule(instance: ForwardInstance, choices: Sequence[int], parts: Sequence[int], rule: Rule) -> ForwardPlan:
    """The answer in which the wire sends by the rule."""
    _, order = served(instance, sent_by(instance, choices), parts, rule)
    return plan(instance, choices, parts, order)


@dataclass(frozen=True)
class Wfbp(_Scheduler, uses=()):
    """Wait-free backpropagation: whole gradients in the order of the backward pass, as PyTorch sends them.

    With ``compressed`` no plan in this order is faster: the time is the timeline's and the whole forward pass.

    References
    ----------
    H. Zhang et al., "Poseidon: An efficient communication architecture for distributed deep learning on GPU clusters",
    USENIX ATC 2017.
    """

    name: ClassVar[str] = "wfbp"

    def scheduled(self, instance: ForwardInstance, choices: Sequence[int]) -> ForwardPlan:
        """Parts and order for options."""
        return by_rule(instance, choices, (1,) * instance.size, "ready")


@dataclass(frozen=True)
class P3(_Scheduler, uses=()):
    """P3: slices of at most 50 000 numbers, and of those encoded the one that is needed first.

    Slices of a gradient are equal here, and as many as the instance allows at most; the paper's last slice may be
    smaller. The paper sends to parameter servers, without compression.

    Parameters
    ----------
    slice_elements : int
        Numbers of a slice, before compression: the paper's choice.

    References
    ----------
    A. Jayarajan et al., "Priority-based parameter propagation for distributed DNN training", MLSys 2019.
    """

    name: ClassVar[str] = "p3"

    slice_elements: int = 50_000

    def scheduled(self, instance: ForwardInstance, choices: Sequence[int]) -> ForwardPlan:
        """Parts and order for options."""
        needed = [-(-gradient.elements // self.slice_elements) for gradient in instance.timeline.gradients]
        parts = [next((k for k in instance.parts if k >= least), instance.parts[-1]) for least in needed]
        return by_rule(instance, choices, parts, "needed")


@dataclass(frozen=True)
class ByteScheduler(_Scheduler, uses=()):
    """ByteScheduler: the gradient needed first, in parts of one length, the best of those that are tried.

    The paper tunes the size of parts and the credit, how much may be on its way at once, by Bayesian optimisation of
    measured steps. Here the length is the longest gradient's time on the wire, halved up to ten times, and the credit
    one part, as a wire without latency between parts needs no more.

    References
    ----------
    Y. Peng et al., "A generic communication scheduler for distributed DNN training acceleration", SOSP 2019.
    """

    name: ClassVar[str] = "bytescheduler"

    def scheduled(self, instance: ForwardInstance, choices: Sequence[int]) -> ForwardPlan:
        """Parts and order for options."""
        return planned(instance, choices)
