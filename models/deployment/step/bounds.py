"""A bound on the time of a step that needs no search."""

from fractions import Fraction

from ddlopt.models.deployment.step.instance import StepBlock, StepInstance
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import ROUNDING


def step_bound(instance: StepInstance) -> float:
    """Seconds below which no step is: what devices compute, spread over all of them.

    Raises
    ------
    InfeasibleError
        If no degrees fit all blocks on this number of devices.
    """
    return float(exact_step_bound(instance)) * (1 - ROUNDING)


def exact_step_bound(instance: StepInstance) -> Fraction:
    """The same in rational numbers.

    A replica of t c p devices takes at least n times the mean over stages of what a micro-batch computes, which is the
    time of all blocks with their fastest options over p, and n d b = N.
    """
    parts = (instance.embedding, *instance.blocks, instance.head)
    tables = [_fastest(part) for part in parts]
    common = set.intersection(*(set(table) for table in tables))
    if not common:
        raise InfeasibleError(f"'{instance.name}': no choice of degrees and micro-batch is offered by all blocks")
    works = []
    for key in common:
        tensor, context, samples, _ = key
        if tensor * context > instance.devices or instance.global_batch % samples:
            continue
        times = (table[key] * part.count for table, part in zip(tables, parts, strict=True))
        time = sum(times, Fraction(0))
        works.append(time * tensor * context * instance.global_batch / (samples * instance.devices))
    if not works:
        whole = [key for key in common if instance.global_batch % key[2] == 0]
        told = f"no micro-batch that all blocks have divides {instance.global_batch} samples"
        if whole:
            least = min(tensor * context for tensor, context, _, _ in whole)
            told = f"the least degrees that all blocks have need {least} devices, and there are {instance.devices}"
        raise InfeasibleError(f"'{instance.name}': {told}")
    return min(works)


def _fastest(block: StepBlock) -> dict[tuple[int, int, int, bool], Fraction]:
    """Least time of a micro-batch by degrees, whatever the degree of experts."""
    found: dict[tuple[int, int, int, bool], Fraction] = {}
    for way in block.ways:
        key = (way.tensor, way.context, way.micro_batch, way.sequence_parallel)
        time = min(Fraction(option.forward_s) + Fraction(option.backward_s) for option in way.options)
        found[key] = min(time, found.get(key, time))
    return found
