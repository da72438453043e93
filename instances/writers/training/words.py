"""What the formats of training frameworks share."""

import reprlib
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from ddlopt.models.deployment.step.instance import StepInstance, StepPlan
from ddlopt.models.deployment.step.places import chunk_sizes
from ddlopt.models.errors import SolutionError


def required(holds: bool, message: str) -> None:
    """Raise :class:`SolutionError` unless it holds."""
    if not holds:
        raise SolutionError(message)


def whole(value: object, where: str) -> int:
    """A count from a file."""
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    required(number > 0, f"{where} is {reprlib.repr(value)}; expected a whole number of at least 1")
    return number


def count_of(given: Mapping[str, str], names: tuple[str, ...], origin: str, default: int = 1) -> int:
    """The number behind one of these flags."""
    found = next((name for name in names if name in given), None)
    return default if found is None else whole(given[found], f"{origin}: {found}")


def table_of(data: Mapping[str, Any], name: str, origin: str) -> dict[str, Any]:
    """An object inside a file; empty where there is none."""
    found = data.get(name)
    required(found is None or isinstance(found, dict), f"{origin}: {name} is {reprlib.repr(found)}; expected an object")
    return found or {}


def batch_of(value: object, instance: StepInstance, where: str) -> int:
    """A file's samples of a step, which are the instance's."""
    batch = whole(value, where)
    required(batch == instance.global_batch, f"{where} is {batch}, and the instance has {instance.global_batch}")
    return batch


def copies_of(total: int, each: int, origin: str, what: str = "devices", by: str = "the product of the degrees") -> int:
    """How often ``each`` of some devices, or of whatever else, are there."""
    required(total % each == 0, f"{origin}: {total} {what} are no multiple of {each}, {by}")
    return total // each


def layout(instance: StepInstance, chunks: int) -> str:
    """Blocks by chunk in Megatron-LM's letters: E the embedding, t a block, L the loss."""
    sizes = chunk_sizes(instance.size, chunks)
    words = ["t" * size for size in sizes]
    words[0], words[-1] = "E" + words[0], words[-1] + "L"
    return "|".join(_repeated(words))


def _repeated(words: list[str]) -> Iterator[str]:
    """Chunks one by one, equal ones as a product."""
    runs = [(word, len(list(run))) for word, run in groupby(words)]
    for place, (word, count) in enumerate(runs):
        if count > 1 and place < len(runs) - 1:
            yield f"({word}|)*{count - 1}{word}"
        else:
            yield from [word] * count


def recompute_words(plan: StepPlan) -> list[str]:
    """Flags of Megatron-LM for what is made again."""
    if plan.recomputed:
        return ["--recompute-granularity full", "--recompute-method block", f"--recompute-num-layers {plan.recomputed}"]
    if plan.option == "selective":
        return ["--recompute-granularity selective"]
    if plan.option == "full":
        return ["--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1"]
    return []
