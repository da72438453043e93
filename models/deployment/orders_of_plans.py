"""Plans of pipelines as orders of micro-batches that are still to be found: what makes a plan's step exact."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm
from typing import Any

from ddlopt.models.contracts import Number
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.deployment.pipeline.instance import LayerOption, PipelineInstance, PipelinePlan, PlanStage
from ddlopt.models.deployment.step.evaluate import ChunkPart, chunk_parts, stage_parts
from ddlopt.models.deployment.step.instance import StepInstance, StepPlan
from ddlopt.models.errors import OptionError

FORWARD_SHARE = 1 / 3
"""Of a time that is forward and backward in one: a backward pass has two products where a forward pass has one."""


def order_instance(
    instance: StepInstance | PipelineInstance,
    plan: StepPlan | PipelinePlan,
    weights: float = 0.0,
    freed: float = 0.0,
    name: str = "",
) -> MicroBatchInstance:
    """The order of micro-batches of a feasible plan, as a problem whose least makespan with a barrier is its step.

    A device is the devices that run one copy of a stage. It computes and sends in turn, as in the plan's own objective,
    so that n times the slowest stage's micro-batch, with what comes after the barrier, is a bound on the step.

    * Of a :class:`StepPlan`: one of its d pipelines, with v chunks a device. What is sent inside a stage is half of it
      in F, half in B; so are messages to neighbours. Messages of copies and the optimizer are behind the barrier.
    * Of a :class:`PipelinePlan`: sample j runs on copy j mod d of a stage with d copies, and stages follow each other
      as numbered. So there is one chain for each way through the copies that no other one is like. A third of a
      layer's time is F, and what is sent half and half; all-reduces are behind the barrier.

    Memory of a device is what a plan leaves to activations that are kept, each held from F on.

    Parameters
    ----------
    instance : StepInstance or PipelineInstance
    plan : StepPlan or PipelinePlan
    weights : float
        Share of what computing takes in a backward pass that is W, a pass of its own; 0: it is within B.
    freed : float
        Share of a micro-batch's memory that B gives back, where W is a pass of its own.
    name : str
        By default that of the instance, with ``-order``.

    Raises
    ------
    OptionError
        If a share is not one.
    """
    for option, share in (("weights", weights), ("freed", freed)):
        if not 0 <= share <= 1:
            raise OptionError(f"{option} is {share:g}; it must be 0 to 1")
    made = _of_step(instance, plan) if isinstance(instance, StepInstance) else _of_pipeline(instance, plan)  # type: ignore[arg-type]
    chunks = [_chunk(part, weights, freed) for part in made.pop("parts")]
    return MicroBatchInstance.from_data(
        {
            "name": name or f"{instance.name}-order",
            "source": f"a plan of '{instance.name}'",
            "chunks": chunks,
            "objective": "barrier",
            **made,
        }
    )


def busiest_s(orders: MicroBatchInstance) -> Fraction:
    """The longest of the devices' work with the optimizer behind it: a bound on the step that any order keeps to."""
    work = [Fraction(each) for each in orders.optimizer_s]
    for chunk in orders.chunks:
        times = (chunk.forward_s, chunk.backward_s, chunk.weights_s or 0.0)
        work[chunk.device] += orders.micro_batches * sum(map(Fraction, times))
    return max(work)


def _chunk(part: dict[str, Any], weights: float, freed: float) -> dict[str, Any]:
    """Times as floats, B cut into two where W is a pass of its own."""
    own = part.pop("computed") * Fraction(weights) if weights else 0
    times = {"backward_s": float(part["backward_s"] - own), "forward_s": float(part["forward_s"])}
    if weights:
        times["weights_s"] = float(own)
    held = float(part["held_bytes"])
    part.pop("computed", None)
    return part | times | {"held_bytes": held, "freed_bytes": held * freed if weights else 0.0}


def _of_step(instance: StepInstance, plan: StepPlan) -> dict[str, Any]:
    stages = stage_parts(instance, plan, exact=True)
    parts: list[ChunkPart] = chunk_parts(instance, plan)
    p = plan.pipeline
    limit = Fraction(instance.memory_bytes)
    memory = []
    for device, stage in enumerate(stages):
        own = list(parts[device::p])
        rest = sum((value for kind, value in stage.memory.items() if kind != "activations"), Fraction(0))
        left = limit - rest - sum((part.kept_once_bytes for part in own), Fraction(0))
        # A plan that fits within a tolerance may lack a byte for one micro-batch.
        memory.append(float(max(left, sum((part.held_bytes for part in own), Fraction(0)))))
    return {
        "parts": [
            {
                "name": f"stage {place % p}" + (f", chunk {place // p}" if len(parts) > p else ""),
                "device": place % p,
                "forward_s": part.forward_s,
                "backward_s": part.backward_s,
                "computed": part.computed_backward_s,
                "held_bytes": part.held_bytes,
            }
            for place, part in enumerate(parts)
        ],
        "edges": _chain(len(parts)),
        "memory_bytes": memory,
        "micro_batches": instance.global_batch // (plan.micro_batch * plan.data),
        "optimizer_s": [float(stage.end_s) for stage in stages],
    }


def _chain(count: int, first: int = 0) -> list[dict[str, int]]:
    return [{"maker": one, "user": other} for one, other in pairwise(range(first, first + count))]


def _of_pipeline(instance: PipelineInstance, plan: PipelinePlan) -> dict[str, Any]:
    copies = [stage.replicas for stage in plan.stages]
    # Samples that differ by the greatest common divisor meet on some copy; others have copies of their own.
    ways = range(0, lcm(*copies), gcd(*copies))
    device_of: dict[tuple[int, int], int] = {}
    for stage, count in enumerate(copies):
        for way in ways:
            device_of.setdefault((stage, way % count), len(device_of))
    own = [_stage(instance, stage) for stage in plan.stages]
    behind = [sum(copies[stage:]) for stage in range(len(copies))]
    memory: list[float] = [0.0] * len(device_of)
    ends = [0.0] * len(device_of)
    for (stage, _), device in device_of.items():
        part = own[stage]
        left = Fraction(instance.memory_bytes) - part["fixed"]
        flying = -(-behind[stage] // copies[stage])
        memory[device] = float(max(left, part["held_bytes"] * flying))
        ends[device] = float(part["end_s"])
    parts: list[dict[str, Any]] = []
    edges: list[dict[str, int]] = []
    for way in ways:
        edges += _chain(len(copies), len(parts))
        for stage, part in enumerate(own):
            named = f"stage {stage}" + (f", way {way}" if len(ways) > 1 else "")
            kept = {key: part[key] for key in ("forward_s", "backward_s", "computed", "held_bytes")}
            parts.append({"name": named, "device": device_of[stage, way % copies[stage]], **kept})
    return {
        "parts": parts,
        "edges": edges,
        "memory_bytes": memory,
        "micro_batches": instance.micro_batches // lcm(*copies),
        "optimizer_s": ends,
    }


def _stage(instance: PipelineInstance, stage: PlanStage) -> dict[str, Number]:
    """Times of a sample on a copy, and memory."""
    bandwidth, d, share = Fraction(instance.bandwidth_bytes_per_s), stage.replicas, Fraction(FORWARD_SHARE)
    options = dict(zip(stage.layers, _options(instance, stage), strict=True))
    moved = Fraction(0)
    for edge in instance.edges:
        if (edge.maker in options) != (edge.user in options):
            there = edge.user in options
            option = options[edge.user if there else edge.maker]
            more = dict(option.gathered).get(edge.maker, 0.0) if there else dict(option.scattered).get(edge.user, 0.0)
            moved += Fraction(edge.size_bytes) + Fraction(more)
    work = sum((Fraction(option.time_s) for option in options.values()), Fraction(0))
    weights = sum((Fraction(option.weight_bytes) for option in options.values()), Fraction(0))
    return {
        "forward_s": work * share + moved / bandwidth,
        "backward_s": work * (1 - share) + moved / bandwidth,
        "computed": work * (1 - share),
        "held_bytes": sum((Fraction(option.kept_bytes) for option in options.values()), Fraction(0)),
        "fixed": sum((Fraction(option.fixed_bytes) for option in options.values()), Fraction(0)),
        "end_s": 4 * (d - 1) * weights / (d * bandwidth),
    }


def _options(instance: PipelineInstance, stage: PlanStage) -> Iterator[LayerOption]:
    for layer, name in zip(stage.layers, stage.options, strict=True):
        yield next(option for option in instance.layers[layer].menu(stage.tensor) if option.name == name)
