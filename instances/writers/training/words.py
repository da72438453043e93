"""What the formats of training frameworks share."""

from collections.abc import Iterator, Mapping
from itertools import groupby

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
    required(number > 0, f"{where} is {value!r}; expected a whole number of at least 1")
    return number


def count_of(given: Mapping[str, str], names: tuple[str, ...], origin: str, default: int = 1) -> int:
    """The number behind one of these flags."""
    found = next((name for name in names if name in given), None)
    return default if found is None else whole(given[found], f"{origin}: {found}")


def copies_of(devices: int, each: int, origin: str) -> int:
    """How often some devices are there."""
    required(devices % each == 0, f"{origin}: {devices} are no multiple of {each}, the product of the degrees")
    return devices // each


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
