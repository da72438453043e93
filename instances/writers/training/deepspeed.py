"""The format ``deepspeed``: DeepSpeed's JSON, and that of others read as plans."""

import json
import reprlib
from typing import Any

from ddlopt.instances.writers.training.words import batch_of, copies_of, required, table_of, whole
from ddlopt.models.contracts import Evaluation
from ddlopt.models.deployment.step.instance import StepInstance, StepPlan
from ddlopt.models.errors import OptionError, SolutionError


def deepspeed(instance: StepInstance, solution: StepPlan, evaluation: Evaluation) -> str:
    """An object; DeepSpeed takes stages and experts from the program, which finds them under ``pipeline`` and ``moe``.

    Raises
    ------
    OptionError
        If DeepSpeed has nothing for some part of the plan.
    """
    plan = solution
    if plan.interleaving > 1:
        raise OptionError("DeepSpeed's pipelines are not interleaved; solve with interleaving=1")
    if plan.pipeline > 1 and plan.sharding > 1:
        raise OptionError("DeepSpeed's pipelines shard the optimizer alone; solve with sharding=[0,1]")
    if plan.order != instance.orders[0]:
        raise OptionError(f"DeepSpeed has devices in the order {', '.join(instance.orders[0])} alone")
    data: dict[str, Any] = {
        "train_batch_size": instance.global_batch,
        "train_micro_batch_size_per_gpu": plan.micro_batch,
        "gradient_accumulation_steps": instance.global_batch // (plan.micro_batch * plan.data),
        "bf16": {"enabled": instance.weight_bytes == 2},
        "zero_optimization": {"stage": plan.sharding, "overlap_comm": instance.overlap > 0},
        "tensor_parallel": {"autotp_size": plan.tensor, "sequence_parallel": plan.sequence_parallel},
        "sequence_parallel_size": plan.context,
        "pipeline": {"stages": plan.pipeline},
        "moe": {"ep_size": plan.expert},
        "activation_checkpointing": {"option": plan.option, "number_checkpoints": plan.recomputed},
    }
    return json.dumps(data, indent=2) + "\n"


def read_deepspeed(instance: StepInstance, text: str, origin: str) -> StepPlan:
    """A plan from anybody's file; what does not matter for a plan is passed over.

    Raises
    ------
    SolutionError
        If it is no JSON, or its figures do not make whole copies.
    """
    try:
        data = json.loads(text)
    except ValueError as problem:
        raise SolutionError(f"{origin}: not valid JSON: {problem}") from None
    required(isinstance(data, dict), f"{origin}: expected an object")

    def count(*path: str) -> int:
        found: Any = data
        for key in path:
            found = found.get(key, {}) if isinstance(found, dict) else {}
        return 1 if found == {} else whole(found, f"{origin}: {'.'.join(path)}")

    tensor, context, pipeline = (
        count("tensor_parallel", "autotp_size"),
        count("sequence_parallel_size"),
        count("pipeline", "stages"),
    )
    micro, rounds = count("train_micro_batch_size_per_gpu"), data.get("gradient_accumulation_steps")
    told = data.get("train_batch_size", "auto")
    batch = batch_of(instance.global_batch if told == "auto" else told, instance, f"{origin}: train_batch_size")
    if isinstance(rounds, int) and rounds > 0:
        copies = copies_of(batch, micro * rounds, origin, "samples", "micro-batches times rounds")
    else:
        copies = copies_of(instance.devices, tensor * context * pipeline, origin)
    stage = table_of(data, "zero_optimization", origin).get("stage", 0)
    required(stage in (0, 1, 2, 3), f"{origin}: zero_optimization.stage is {reprlib.repr(stage)}; it is 0 to 3")
    kept = table_of(data, "activation_checkpointing", origin)
    first = instance.blocks[0].ways[0].options[0].name
    number = kept.get("number_checkpoints") or 0
    longest = -(-instance.size // pipeline)
    return StepPlan(
        instance=instance.name,
        tensor=tensor,
        context=context,
        pipeline=pipeline,
        expert=count("moe", "ep_size"),
        data=copies,
        micro_batch=micro,
        sharding=stage,
        sequence_parallel=bool(table_of(data, "tensor_parallel", origin).get("sequence_parallel", False))
        and tensor > 1,
        option=str(kept.get("option", first)),
        recomputed=min(int(number), longest) if isinstance(number, int) else 0,
        order=instance.orders[0],
    )
