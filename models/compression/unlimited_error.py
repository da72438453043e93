"""Plans that lose much, where no budget says how much they may."""

from ddlopt.models.compression.forward.instance import ForwardInstance
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.contracts import Instance

ACCEPTED_ERROR = 0.1
"""Error up to which a plan without a budget is taken for an answer: a tenth of the energy of all gradients.

A rule of ours, for errors that are parts of this energy, as those of generators and readers are. Below it are fp16,
quantisation to seven levels and more, and compression of single gradients; above it plans that only work with error
feedback, and at 0.9 and more those that send next to nothing.
"""


def error_is_unlimited(instance: Instance) -> bool:
    """Whether a plan for the instance may lose anything: the time is minimised, without a budget of error."""
    timeline = instance.timeline if isinstance(instance, ForwardInstance) else instance
    return isinstance(timeline, CompressionInstance) and timeline.goal == "time" and timeline.error_budget is None


def told(error: float) -> str:
    """One line on a plan that loses that much, and how to say how much it may."""
    return (
        f"the plan loses {error:.3g} of the gradients and nothing limits it: set error_budget in the instance "
        f"(error_budget_part={ACCEPTED_ERROR:g} of generators and readers)"
    )
