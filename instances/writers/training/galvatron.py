"""The format ``galvatron``: plans of PKU-DAIR/Hetu-Galvatron, and those of others where all blocks are identical."""

import json
import reprlib
from typing import Any

from ddlopt.instances.writers.training.words import batch_of, copies_of, required, whole
from ddlopt.models.contracts import Evaluation
from ddlopt.models.deployment.step.instance import FULL, StepInstance, StepPlan
from ddlopt.models.deployment.step.places import chunk_sizes
from ddlopt.models.errors import OptionError, SolutionError

_DEFAULTS = {"ddp": 0, "zero2": 2}
_WHOLLY = 3
"""The level of sharding that ``dp_types_enc`` calls 1."""


def galvatron(instance: StepInstance, solution: StepPlan, evaluation: Evaluation) -> str:
    """An object with a number for each block.

    Raises
    ------
    OptionError
        If Galvatron has nothing for some part of the plan.
    """
    plan, first = solution, instance.blocks[0].ways[0].options[0].name
    lacking = {
        "interleaved stages": plan.interleaving > 1,
        "context parallelism": plan.context > 1,
        "experts": plan.expert > 1,
        "an optimizer that is sharded alone; solve with sharding=[0,2,3]": plan.sharding == 1,
        f"the option '{plan.option}'": plan.option not in (first, FULL),
        # They tell no number of copies: it is what the devices leave beside stages and tensor parallelism.
        f"idle devices, but this one uses {plan.devices} of {instance.devices}": plan.devices < instance.devices,
        f"order of devices but {', '.join(instance.orders[0])}": _spread(plan, plan.order)
        != _spread(plan, instance.orders[0]),
        "word on whether sequences are shared": plan.sequence_parallel != _shares(instance, plan.tensor),
    }
    for what, asked in lacking.items():
        if asked:
            raise OptionError(f"Galvatron's plans have no {what}")
    sizes = chunk_sizes(instance.size, plan.pipeline)
    again = [int(plan.option == FULL or place < plan.recomputed) for size in sizes for place in range(size)]
    default = next((name for name, level in _DEFAULTS.items() if level == plan.sharding), "zero2")

    def each(value: object) -> str:
        return ",".join([str(value)] * instance.size)

    data = {
        "pp_deg": plan.pipeline,
        "tp_sizes_enc": each(plan.tensor),
        "tp_consecutive_flags": each(1),
        "dp_types_enc": each(int(plan.sharding == _WHOLLY)),
        "use_sp": each(0),
        "checkpoint": ",".join(map(str, again)),
        "global_bsz": instance.global_batch,
        "chunks": instance.global_batch // (plan.data * plan.micro_batch),
        "pp_division": ",".join(map(str, sizes)),
        "pipeline_type": "pipedream_flush",
        "default_dp_type": default,
        "vtp": plan.tensor,
        "vsp": 0,
        "embed_sdp": int(plan.sharding == _WHOLLY),
    }
    return json.dumps(data, indent=4) + "\n"


def read_galvatron(instance: StepInstance, text: str, origin: str) -> StepPlan:
    """A plan from anybody's file, whose ends are taken to have the degrees of the blocks.

    Raises
    ------
    SolutionError
        If it is no such file, or blocks have unlike degrees, which this problem's plans do not have.
    """
    try:
        data = json.loads(text)
    except ValueError as problem:
        raise SolutionError(f"{origin}: not valid JSON: {problem}") from None
    required(isinstance(data, dict) and "pp_deg" in data, f"{origin}: there is no pp_deg; it is no plan of Galvatron")
    pipeline = whole(data["pp_deg"], f"{origin}: pp_deg")
    tensor = whole(_same(data, "tp_sizes_enc", instance, origin, "1"), f"{origin}: tp_sizes_enc")
    required(_same(data, "use_sp", instance, origin, "0") == "0", f"{origin}: use_sp: Ulysses is not modelled")
    copies = copies_of(instance.devices, tensor * pipeline, origin)
    batch = batch_of(data.get("global_bsz", instance.global_batch), instance, f"{origin}: global_bsz")
    chunks = whole(data.get("chunks", 1), f"{origin}: chunks")
    default = str(data.get("default_dp_type", "ddp"))
    required(
        default in _DEFAULTS, f"{origin}: default_dp_type is {reprlib.repr(default)}; there are {', '.join(_DEFAULTS)}"
    )
    wholly = _same(data, "dp_types_enc", instance, origin, "0") == "1"
    sizes, cuts = chunk_sizes(instance.size, pipeline), str(data.get("pp_division", ""))
    even = sorted(map(str, sizes)) == sorted(cuts.split(","))
    required(
        not cuts or even,
        f"{origin}: stages of {reprlib.repr(cuts)} blocks; plans here have {','.join(map(str, sizes))}",
    )
    return StepPlan(
        instance=instance.name,
        tensor=tensor,
        pipeline=pipeline,
        data=copies,
        micro_batch=copies_of(batch, copies * chunks, origin, "samples", "copies times chunks"),
        sharding=_WHOLLY if wholly else _DEFAULTS[default],
        sequence_parallel=_shares(instance, tensor),
        option=instance.blocks[0].ways[0].options[0].name,
        recomputed=_again(data, instance, sizes, origin),
        order=instance.orders[0],
    )


def _spread(plan: StepPlan, order: tuple[str, ...]) -> list[str]:
    """The kinds of parallelism that the plan has, in an order of devices."""
    return [kind for kind in order if getattr(plan, kind) > 1]


def _shares(instance: StepInstance, tensor: int) -> bool:
    """Whether sequences are shared among devices with a part of each block, as far as the instance knows them."""
    return any(way.sequence_parallel for way in instance.blocks[0].ways if way.tensor == tensor)


def _blocks(data: dict[str, Any], field: str, instance: StepInstance, origin: str, default: str) -> list[str]:
    """What each block has."""
    found = str(data.get(field, ",".join([default] * instance.size))).split(",")
    told = f"{origin}: {field} has {len(found)} blocks, and the instance {instance.size}"
    required(len(found) == instance.size, told)
    return [each.strip() for each in found]


def _same(data: dict[str, Any], field: str, instance: StepInstance, origin: str, default: str) -> str:
    """What all blocks have."""
    found = sorted(set(_blocks(data, field, instance, origin, default)))
    required(len(found) == 1, f"{origin}: {field} has {' and '.join(found)}; plans here have the same for all blocks")
    return found[0]


def _again(data: dict[str, Any], instance: StepInstance, sizes: list[int], origin: str) -> int:
    """How many of every stage are made again; which of them does not matter where blocks are identical."""
    flags = _blocks(data, "checkpoint", instance, origin, "0")
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
    counts = [flags[end - size : end].count("1") for size, end in zip(sizes, ends, strict=True)]
    most = max(counts)
    fits = all(count == min(most, size) for count, size in zip(counts, sizes, strict=True))
    told = f"{origin}: stages make {', '.join(map(str, counts))} blocks again; plans here have as many in each"
    required(fits, told)
    return most
