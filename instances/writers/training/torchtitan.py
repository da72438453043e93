"""The format ``torchtitan``: tables of a TOML file that torchtitan takes, and those of others read as plans."""

import tomllib
from typing import Any

from ddlopt.instances.writers.training.words import batch_of, copies_of, required, table_of, whole
from ddlopt.models.contracts import Evaluation
from ddlopt.models.deployment.step.instance import FULL, StepInstance, StepPlan
from ddlopt.models.errors import OptionError, SolutionError

_DEGREES = {
    "tensor": "tensor_parallel_degree",
    "context": "context_parallel_degree",
    "pipeline": "pipeline_parallel_degree",
    "expert": "expert_parallel_degree",
}


def torchtitan(instance: StepInstance, solution: StepPlan, evaluation: Evaluation) -> str:
    """The tables ``parallelism``, ``training`` and ``activation_checkpoint``; comments say where the plan differs.

    Raises
    ------
    OptionError
        If torchtitan has nothing for the order of devices.
    """
    plan = solution
    blocks = -(-instance.size // (plan.pipeline * plan.interleaving))
    if plan.order != instance.orders[0]:
        raise OptionError(f"torchtitan has devices in the order {', '.join(instance.orders[0])} alone")
    notes = []
    if plan.sharding == 1:
        notes.append("# torchtitan shards gradients wherever it shards the optimizer: sharding 2, and the plan has 1.")
    if plan.recomputed and blocks // (blocks // plan.recomputed) != plan.recomputed:
        every = blocks // plan.recomputed
        done = blocks // every
        notes.append(
            f"# torchtitan recomputes every n-th block: {done} of {blocks}, and the plan has {plan.recomputed}."
        )
    chunks = _chunks(instance, plan.pipeline, blocks)
    if plan.interleaving > 1 and chunks != plan.interleaving:
        notes.append(
            f"# torchtitan makes {chunks} chunks a device of {blocks} blocks each, the plan {plan.interleaving}."
        )
    rounds = instance.global_batch // (plan.micro_batch * plan.data)
    replicated = plan.sharding == 0
    parallelism: dict[str, Any] = {
        "data_parallel_replicate_degree": plan.data if replicated else 1,
        "data_parallel_shard_degree": 1 if replicated else plan.data,
        **{key: getattr(plan, field) for field, key in _DEGREES.items()},
        "fsdp_reshard_after_forward": "always" if plan.sharding == 3 else "never",
    }
    if plan.pipeline > 1:
        parallelism["pipeline_parallel_schedule"] = "Interleaved1F1B" if plan.interleaving > 1 else "1F1B"
        parallelism["pipeline_parallel_microbatch_size"] = plan.micro_batch
        parallelism["pipeline_parallel_layers_per_stage"] = blocks
    local = plan.micro_batch * (rounds if plan.pipeline > 1 else 1)
    training = {"local_batch_size": local, "global_batch_size": instance.global_batch}
    tables = {"parallelism": parallelism, "training": training, "activation_checkpoint": _recompute(plan, blocks)}
    return "\n".join([*notes, *(f"[{name}]\n{_lines(table)}" for name, table in tables.items())])


def _chunks(instance: StepInstance, pipeline: int, blocks: int) -> int:
    """Of a device, if a chunk has ``blocks`` blocks."""
    return max(1, -(-instance.size // (pipeline * blocks)))


def _recompute(plan: StepPlan, blocks: int) -> dict[str, str]:
    if plan.option == FULL or plan.recomputed == blocks:
        return {"mode": "full"}
    if plan.recomputed:
        return {"mode": "selective", "selective_ac_option": str(blocks // plan.recomputed)}
    return {"mode": "selective", "selective_ac_option": "op"} if plan.option == "selective" else {"mode": "none"}


def _lines(table: dict[str, Any]) -> str:
    return "".join(
        f"{key} = " + (f'"{value}"' if isinstance(value, str) else str(value)) + "\n" for key, value in table.items()
    )


def read_torchtitan(instance: StepInstance, text: str, origin: str) -> StepPlan:
    """A plan from anybody's file; what does not matter for a plan is passed over.

    Raises
    ------
    SolutionError
        If it is no TOML, or its degrees do not make whole copies.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise SolutionError(f"{origin}: not valid TOML: {problem}") from None
    required(isinstance(data.get("parallelism"), dict), f"{origin}: there is no table [parallelism]")
    table, training = data["parallelism"], table_of(data, "training", origin)
    if training.get("global_batch_size", -1) != -1:
        batch_of(training["global_batch_size"], instance, f"{origin}: training.global_batch_size")
    figures: dict[str, Any] = {
        name: whole(table.get(key, 1), f"{origin}: parallelism.{key}") for name, key in _DEGREES.items()
    }
    replicated = whole(table.get("data_parallel_replicate_degree", 1), f"{origin}: data_parallel_replicate_degree")
    sharded = table.get("data_parallel_shard_degree", -1)
    model = figures["tensor"] * figures["context"] * figures["pipeline"]
    if sharded == -1:
        sharded = copies_of(instance.devices, model * replicated, origin)
    required(1 in (replicated, sharded), f"{origin}: copies both replicated and sharded are not modelled")
    local = whole(training.get("local_batch_size", training.get("batch_size", 1)), f"{origin}: local_batch_size")
    micro = whole(table.get("pipeline_parallel_microbatch_size", 1), f"{origin}: pipeline_parallel_microbatch_size")
    reshard = str(table.get("fsdp_reshard_after_forward", "default"))
    deep = reshard == "always" or (reshard == "default" and figures["pipeline"] == 1)
    interleaving = 1
    if "interleaved" in str(table.get("pipeline_parallel_schedule", "")).lower():
        own = table.get("pipeline_parallel_layers_per_stage", -(-instance.size // (2 * figures["pipeline"])))
        interleaving = _chunks(instance, figures["pipeline"], whole(own, f"{origin}: layers_per_stage"))
    blocks = -(-instance.size // (figures["pipeline"] * interleaving))
    return StepPlan(
        instance=instance.name,
        **figures,
        data=replicated * whole(sharded, f"{origin}: data_parallel_shard_degree"),
        micro_batch=micro if figures["pipeline"] > 1 else local,
        interleaving=interleaving,
        sharding=0 if sharded == 1 else 3 if deep else 2,
        sequence_parallel=figures["tensor"] > 1,
        order=instance.orders[0],
        **_option(instance, table_of(data, "activation_checkpoint", origin), blocks),
    )


def _option(instance: StepInstance, table: dict[str, Any], blocks: int) -> dict[str, Any]:
    first = instance.blocks[0].ways[0].options[0].name
    mode, which = str(table.get("mode", "selective")), str(table.get("selective_ac_option", "op"))
    if mode == FULL:
        return {"option": first, "recomputed": blocks}
    if mode == "selective" and which.isdigit():
        return {"option": first, "recomputed": blocks // max(1, int(which))}
    return {"option": "selective" if mode == "selective" else first}
