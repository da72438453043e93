"""Bounds on the time of a sample that need no search."""

from fractions import Fraction

from ddlopt.models.deployment.pipeline.instance import LayerOption, PipelineInstance
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import ROUNDING, let_pass_at_most


def pipeline_bound(instance: PipelineInstance) -> float:
    """Seconds below which no plan is.

    The larger of two: every stage is busy for d t times its time of a sample, so k devices take at least what the
    options do with the least device-seconds each (those that fit with one sample in flight); and each layer by itself,
    with the degrees that suit it best.

    Raises
    ------
    InfeasibleError
        If a layer fits on no device, or degrees of it need more devices than there are: every plan has it in some
        stage, where it takes at least what it takes alone.
    """
    return float(exact_pipeline_bound(instance)) * (1 - ROUNDING)


def exact_pipeline_bound(instance: PipelineInstance) -> Fraction:
    """The same in rational numbers."""
    work, longest = Fraction(0), Fraction(0)
    for layer in range(len(instance.layers)):
        offered = _offered(instance, layer)
        work += min(tensor * Fraction(option.time_s) for tensor, option in offered)
        longest = max(longest, min(_alone(instance, tensor, option) for tensor, option in offered))
    return max(work / instance.devices, longest)


def _offered(instance: PipelineInstance, layer: int) -> list[tuple[int, LayerOption]]:
    """Options with their degrees that fit with one sample in flight."""
    menus = [menu for menu in instance.layers[layer].menus if menu.tensor <= instance.devices]
    all_of_them = [(menu.tensor, option) for menu in menus for option in menu.options]
    room = let_pass_at_most(Fraction(instance.memory_bytes))
    found = [pair for pair in all_of_them if _memory(pair[1]) <= room]
    if found:
        return found
    name = instance.layers[layer].name
    if not all_of_them:
        least = instance.layers[layer].menus[0].tensor
        raise InfeasibleError(
            f"'{instance.name}': layer '{name}' needs {least} devices at least, and there are {instance.devices}"
        )
    tensor, option = min(all_of_them, key=lambda pair: _memory(pair[1]))
    raise InfeasibleError(
        f"'{instance.name}': layer '{name}' does not fit: its least memory is {float(_memory(option)):.6g} bytes, by "
        f"'{option.name}' on {tensor} devices, and a device has {instance.memory_bytes:.6g}"
    )


def _memory(option: LayerOption) -> Fraction:
    return Fraction(option.kept_bytes) + Fraction(option.fixed_bytes)


def _alone(instance: PipelineInstance, tensor: int, option: LayerOption) -> Fraction:
    """Least time of a sample with a layer alone in its stage and no transfers."""
    bandwidth = Fraction(instance.bandwidth_bytes_per_s)
    reduced = 4 * Fraction(option.weight_bytes) / instance.micro_batches / bandwidth
    return min(
        (Fraction(option.time_s) + (d - 1) * reduced) / d for d in instance.replicas if d * tensor <= instance.devices
    )
