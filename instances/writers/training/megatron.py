"""The format ``megatron``: flags of Megatron-LM, and those of others read as plans."""

import difflib
import re
import shlex
from itertools import pairwise
from typing import Any

from ddlopt.instances.writers.training.words import batch_of, copies_of, count_of, layout, recompute_words, required
from ddlopt.models.contracts import Evaluation
from ddlopt.models.deployment.step.instance import FULL, ORDERS, StepInstance, StepPlan
from ddlopt.models.errors import OptionError, SolutionError

_SHARDING = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
_SIZES = {
    "tensor": ("--tensor-model-parallel-size",),
    "context": ("--context-parallel-size",),
    "pipeline": ("--pipeline-model-parallel-size",),
    "expert": ("--expert-model-parallel-size",),
    "micro_batch": ("--micro-batch-size",),
}
_BATCH, _LAYOUT, _SEQUENCE = "--global-batch-size", "--pipeline-model-parallel-layout", "--sequence-parallel"
_LAYERS, _CHUNKS = "--num-layers-per-virtual-pipeline-stage", "--num-virtual-stages-per-pipeline-rank"
_ORDER, _OPTIMIZER, _STRATEGY = (
    "--use-tp-pp-dp-mapping",
    "--use-distributed-optimizer",
    "--data-parallel-sharding-strategy",
)
_KIND, _METHOD, _NUMBER, _SELECTIVE = (
    "--recompute-granularity", "--recompute-method", "--recompute-num-layers", "--recompute-activations",
)  # fmt: skip
_READ = (
    *(name for names in _SIZES.values() for name in names), _BATCH, _LAYOUT, _SEQUENCE, _LAYERS, _CHUNKS, _ORDER,
    _OPTIMIZER, _STRATEGY, _KIND, _METHOD, _NUMBER, _SELECTIVE,
)  # fmt: skip
_ALIKE = 0.95
"""Of a flag that is misspelt; those that Megatron-LM has beside ours are less alike."""
_FLAG = re.compile(r"--[a-z][a-z0-9-]*")
_DEVICES = re.compile(r"\bWORLD_SIZE=(\d+)")


def megatron(instance: StepInstance, solution: StepPlan, evaluation: Evaluation) -> str:
    """Lines of a shell script with an array of flags.

    Raises
    ------
    OptionError
        If Megatron-LM has no flag for the order of dimensions.
    """
    if solution.order not in ORDERS:
        raise OptionError(f"order {', '.join(solution.order)} is none that Megatron-LM has")
    flags = [f"{names[0]} {getattr(solution, field)}" for field, names in _SIZES.items()]
    flags.append(f"--global-batch-size {instance.global_batch}")
    flags += ["--expert-tensor-parallel-size 1"] if solution.expert > 1 else []
    flags += ["--sequence-parallel"] if solution.sequence_parallel else []
    flags += ["--use-tp-pp-dp-mapping"] if solution.order == ORDERS[1] else []
    chunks = solution.pipeline * solution.interleaving
    if instance.size % chunks:
        flags.append(f"--pipeline-model-parallel-layout '{layout(instance, chunks)}'")
    elif solution.interleaving > 1:
        flags.append(f"--num-virtual-stages-per-pipeline-rank {solution.interleaving}")
    flags += recompute_words(solution)
    name = next(name for name, level in _SHARDING.items() if level == solution.sharding)
    flags += ["--use-distributed-optimizer"] if solution.sharding else []
    if solution.sharding > 1:
        flags += ["--use-megatron-fsdp", f"--data-parallel-sharding-strategy {name}"]
    if instance.overlap:
        flags += ["--overlap-grad-reduce"] + (["--overlap-param-gather"] if solution.sharding else [])
    lines = [f"WORLD_SIZE={solution.devices}", "PARALLEL_ARGS=(", *(f"    {flag}" for flag in flags), ")"]
    return "\n".join(lines) + "\n"


def read_megatron(instance: StepInstance, text: str, origin: str) -> StepPlan:
    """A plan from anybody's flags; what does not matter for a plan is passed over.

    Raises
    ------
    SolutionError
        If a flag has no number, or the devices do not make whole copies.
    """
    given = _given(text, origin)
    figures: dict[str, Any] = {field: count_of(given, names, origin) for field, names in _SIZES.items()}
    total = _DEVICES.search(text)
    batch_of(given.get(_BATCH, instance.global_batch), instance, f"{origin}: {_BATCH}")
    devices = int(total[1]) if total else instance.devices
    data = copies_of(devices, figures["tensor"] * figures["context"] * figures["pipeline"], origin)
    return StepPlan(
        instance=instance.name,
        **figures,
        data=data,
        interleaving=_interleaving(instance, given, figures["pipeline"], origin),
        sharding=_sharding(given, origin),
        sequence_parallel=_SEQUENCE in given and figures["tensor"] > 1,
        order=ORDERS[_ORDER in given],
        **_recompute(instance, given, figures["pipeline"], origin),
    )


def _given(text: str, origin: str) -> dict[str, str]:
    """Flags with what follows them."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    try:
        words = [word for line in lines for word in shlex.split(line.rstrip("\\").strip("()"), comments=True)]
    except ValueError as problem:
        raise SolutionError(f"{origin}: cannot be split into flags: {problem}") from None
    words = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    found: dict[str, str] = {}
    for word, behind in pairwise([*words, ""]):
        if _FLAG.fullmatch(word):
            found[word] = "" if behind.startswith("--") else behind
    if not found:
        raise SolutionError(f"{origin}: there are no flags of Megatron-LM, such as --tensor-model-parallel-size 8")
    for flag in sorted(found.keys() - set(_READ)):
        for meant in difflib.get_close_matches(flag, _READ, 1, _ALIKE):
            raise SolutionError(f"{origin}: {flag} is no flag of Megatron-LM; did you mean {meant}?")
    return found


def _interleaving(instance: StepInstance, given: dict[str, str], pipeline: int, origin: str) -> int:
    if _LAYOUT in given:
        chunks = _expanded(given[_LAYOUT]).count("|") + 1
        return copies_of(chunks, pipeline, f"{origin}: {_LAYOUT}", "chunks", "the pipeline's degree")
    if _LAYERS in given:
        each = pipeline * count_of(given, (_LAYERS,), origin)
        return copies_of(instance.size, each, f"{origin}: {_LAYERS}", "blocks", f"what {pipeline} such chunks have")
    return count_of(given, (_CHUNKS,), origin)


def _expanded(text: str) -> str:
    """A layout without repetitions of groups."""
    text = text.replace(",", "")
    text = re.sub(r"\(([^()]*)\)\*(\d+)", lambda found: found[1] * int(found[2]), text)
    return re.sub(r"([EtmL|])\*(\d+)", lambda found: found[1] * int(found[2]), text)


def _sharding(given: dict[str, str], origin: str) -> int:
    word = given.get(_STRATEGY)
    if word is not None:
        required(word in _SHARDING, f"{origin}: sharding strategy '{word}'; there are {', '.join(_SHARDING)}")
        return _SHARDING[word]
    return int(_OPTIMIZER in given)


def _recompute(instance: StepInstance, given: dict[str, str], pipeline: int, origin: str) -> dict[str, Any]:
    kind = given.get(_KIND, "")
    first = instance.blocks[0].ways[0].options[0].name
    if _SELECTIVE in given or kind == "selective":
        return {"option": "selective"}
    if kind != FULL:
        return {"option": first}
    chunk = -(-instance.size // (pipeline * _interleaving(instance, given, pipeline, origin)))
    uniform = given.get(_METHOD, "uniform") == "uniform"
    number = chunk if uniform else count_of(given, (_NUMBER,), origin)
    return {"option": first, "recomputed": min(number, chunk)}
