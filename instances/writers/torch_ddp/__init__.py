"""The format ``torch-ddp``: a Python file with a communication hook that does a compression plan.

The hook itself is ``compressors.py`` and ``hook.py`` of this folder, which are never imported here: the writer joins
their texts, and puts the plan in.
"""

import ast
from collections.abc import Iterator
from functools import singledispatch
from pathlib import Path
from typing import Any, NamedTuple

from ddlopt.instances.workloads.compression.compressors import kept
from ddlopt.instances.writers.layout import seconds
from ddlopt.models.compression.levels.instance import GradedGradient, LevelInstance, LevelPlan
from ddlopt.models.compression.sfb.instance import SfbInstance, SfbSelection
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan, Gradient, Option
from ddlopt.models.contracts import Evaluation
from ddlopt.models.errors import OptionError

_PLACE = "MESSAGES: list[list[Send]] = []\n"
# Bits of a number that is not compressed.
_WHOLE_BITS = 32


class _Send(NamedTuple):
    """As in ``hook.py``."""

    name: str
    shape: tuple[int, ...] | None
    compressor: str
    amount: int = 0
    scope: str = "all"
    device: str = "gpu"


def torch_ddp(
    instance: CompressionInstance | LevelInstance | SfbInstance,
    solution: CompressionPlan | LevelPlan | SfbSelection,
    evaluation: Evaluation,
) -> str:
    """The text of a Python file.

    Raises
    ------
    OptionError
        If two gradients have one name, or something is to be sent in no bytes.
    """
    messages = list(_messages(instance, solution))
    names = [send.name for each in messages for send in each]
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise OptionError(f"two gradients of '{instance.name}' are named '{twice}'; a hook tells them apart by name")
    text = _hook()
    assert text.count(_PLACE) == 1
    plan = "".join(f"    [\n{''.join(map(_line, each))}    ],\n" for each in messages)
    time = evaluation.details.get("time_s", evaluation.objective)
    told = f"# An iteration takes {seconds(float(time))} by the model that the plan was made for.\n" if time else ""
    return text.replace(_PLACE, f"{told}MESSAGES: list[list[Send]] = [\n{plan}]\n")


def _hook() -> str:
    """Both modules as one: the docstring of the second, all imports but our own, the first, the second."""
    imports, bodies, docstring = dict[str, None](), [], ""
    for module in ("compressors.py", "hook.py"):
        text = (Path(__file__).parent / module).read_text(encoding="utf-8")
        tree, lines = ast.parse(text), text.splitlines()
        nodes = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        ours = [node for node in nodes if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ddlopt")]
        for node in nodes:
            if node not in ours:
                imports |= {ast.unparse(_only(node, name)): None for name in node.names}
        docstring = "\n".join(lines[: tree.body[0].end_lineno])
        bodies.append("\n".join(lines[nodes[-1].end_lineno :]).strip("\n"))
    return "\n\n".join([docstring, "\n".join(sorted(imports)), *(f"\n{body}" for body in bodies)]) + "\n"


def _only(node: ast.Import | ast.ImportFrom, name: ast.alias) -> ast.Import | ast.ImportFrom:
    return ast.ImportFrom(node.module, [name], 0) if isinstance(node, ast.ImportFrom) else ast.Import([name])


def _line(send: _Send) -> str:
    """A line of Python in ASCII, whatever the name is."""
    return f"        Send({send.name!a}, {', '.join(map(ascii, send[1:]))}),\n"


@singledispatch
def _messages(instance: Any, solution: Any) -> Iterator[list[_Send]]:
    raise NotImplementedError(type(instance).__name__)


@_messages.register
def _of_timeline(instance: CompressionInstance, solution: CompressionPlan) -> Iterator[list[_Send]]:
    first = 0
    for size in solution.buckets or (1,) * len(instance.gradients):
        places = range(first, first + size)
        yield [_send(instance.gradients[at], instance.option(at, solution.choices[at])) for at in places]
        first += size


def _send(gradient: Gradient, option: Option) -> _Send:
    amount = 0
    match option.compressor:
        case "top_k" | "dgc" | "random_k":
            amount = kept(option.ratio, gradient.elements)
        case "powersgd":
            amount = option.rank or 1
        case "qsgd":
            amount = option.levels or 1
    return _Send(gradient.name, gradient.shape, option.compressor, amount, option.scope, option.device)


@_messages.register
def _of_levels(instance: LevelInstance, solution: LevelPlan) -> Iterator[list[_Send]]:
    for gradient, level in zip(instance.gradients, solution.levels, strict=True):
        yield [_graded(gradient, level)]


def _graded(gradient: GradedGradient, level: int) -> _Send:
    """Levels that leave nothing out are sent as they are."""
    whole = _Send(gradient.name, gradient.shape, "none")
    if level < (2 if gradient.compressor == "qsgd" else 1):
        raise OptionError(
            f"gradient '{gradient.name}' has level {level} of {gradient.compressor}, with which nothing of it is sent; "
            "a hook sends something of each"
        )
    match gradient.compressor:
        case "powersgd":
            vector = len(gradient.shape) < 2
            return whole if vector else _Send(gradient.name, gradient.shape, "powersgd", level)
        case "qsgd":
            levels = 2 ** (level - 1) - 1
            return whole if level >= _WHOLE_BITS else _Send(gradient.name, gradient.shape, "qsgd", levels)
    everything = Gradient(name=gradient.name, shape=gradient.shape, ready_s=0.0, menu=0).elements
    return whole if level == everything else _Send(gradient.name, gradient.shape, gradient.compressor, level)


@_messages.register
def _of_sfb(instance: SfbInstance, solution: SfbSelection) -> Iterator[list[_Send]]:
    duplicated = set(solution.duplicated)
    for place, operator in enumerate(instance.operators):
        if operator.gradient_bytes:
            yield [_Send(operator.name, None, "sfb" if place in duplicated else "none")]
