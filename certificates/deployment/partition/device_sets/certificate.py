r"""The proof that every partition has a load of at least a claim: cases, each with prices of blocks.

**Why.** Let loads be below T, and in a case let :math:`\pi_b` be prices of blocks b with
:math:`\text{load}(S) - \pi(S) \ge -\sigma` for each set S that an accelerator may have, and
:math:`\pi(S) \le \tau` for each set that a processor may have, :math:`\sigma, \tau \ge 0`. The sets of a partition have
every block once, so that with k accelerators and l processors their loads add up to at least
:math:`\pi(V) - k \sigma - l \tau` on accelerators. If that is at least k T, or above 0 where k = 0, there is no such
partition.

That no set has less is seen by labels: sets of the first blocks of a walk, of which of those that end in the same state
one with no more load, memory and value stands for the others. With multipliers :math:`\alpha, \beta \ge 0` of what is
left of load and memory, a label dies if nothing that follows can bring it below :math:`-\sigma`.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.certificates.deployment.partition.device_sets.cases import (
    ONE,
    Case,
    DeviceSets,
    Figures,
    device_sets,
    figures_of,
    refuses_sets,
)
from ddlopt.certificates.own import OwnCertificate
from ddlopt.models.deployment.partition.contraction import contracted
from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.models.errors import RefutedError

MULTIPLIER_ONE = 2**10
"""Unit of multipliers."""
_MOST_NODES = 100_000
"""Of a file: honest ones have some hundreds."""
_LARGEST = 2**80
"""Of a number: honest ones are some times the limit."""

Label = tuple[int, int, int]
"""Load, memory and value so far."""


@dataclass(frozen=True)
class SetsCertificate(OwnCertificate):
    """A proof that no partition has all loads below ``claim``, in seconds.

    Parameters
    ----------
    nodes : list
        The cases, each before its parts (:meth:`~.cases.Case.parts`): ``["pair", a, b]``, ``["kind", a]``, or
        ``["leaf", prices, σ, τ, [α, β], [α, β]]`` with the prices of groups by their first blocks, in units of
        1 / ``ONE`` of the claim, and the multipliers for accelerators and for processors. Blocks are those of
        :func:`~ddlopt.models.deployment.partition.contraction.contracted`.
    """

    format: ClassVar[str] = "ddlopt device sets certificate"
    kind: ClassVar[str] = "device sets"
    says: ClassVar[str] = "of the instance, by prices of nodes for the sets that a device may have, in whole numbers"

    nodes: list[list[Any]]

    @classmethod
    def fault(cls, data: dict[str, Any]) -> str | None:
        """Types, ranges and lengths."""
        nodes = data["nodes"]
        if not isinstance(nodes, list) or not 1 <= len(nodes) <= _MOST_NODES:
            return f"nodes is a list of 1 to {_MOST_NODES}"
        for place, node in enumerate(nodes):
            if not _is_node(node):
                return f"nodes[{place}] is none of pair, kind and leaf, with whole numbers below 2^80"
        return None

    def check(self, instance: PartitionInstance, expired: Callable[[], bool]) -> int:
        """Raise RefutedError unless every case is closed; their number."""
        if self.claim <= 0:
            return 0
        reason = refuses_sets(instance)
        if reason is not None:
            raise RefutedError(f"a proof by device sets does not fit '{instance.name}': {reason}")
        blocks = contracted(instance)
        figures = figures_of(instance, blocks.members, self.claim)
        open_cases = [Case(tuple(range(blocks.count)))]
        for node in self.nodes:
            if expired():
                return 0
            if not open_cases:
                raise RefutedError("there are nodes after the last case")
            case = open_cases.pop()
            if node[0] == "leaf":
                _close(figures, case, node[1:], expired)
            else:
                open_cases += case.parts(node)
        if open_cases and not expired():
            raise RefutedError("the nodes end before the last case")
        return len(self.nodes)


def _close(figures: Figures, case: Case, leaf: Sequence[Any], expired: Callable[[], bool]) -> None:
    prices, accelerator, processor, *multipliers = leaf
    if len(prices) != len(case.groups):
        raise RefutedError(f"a leaf has {len(prices)} prices for {len(case.groups)} groups of blocks")
    counts = figures.accelerators, figures.processors
    # A set whose load is below the claim has less than ONE.
    if sum(prices) - counts[0] * accelerator - counts[1] * processor <= counts[0] * (ONE - 1):
        raise RefutedError("the prices of a leaf do not add up to the claim")
    for kind, (count, least) in enumerate(zip(counts, (accelerator, processor), strict=True)):
        sets = device_sets(figures, case, processors=bool(kind)) if count else None
        if count and sets is None:
            raise RefutedError("the sets of a case have too many states")
        if sets is not None and has_set_below(sets, prices, -least, multipliers[kind], expired):
            raise RefutedError("a set of blocks is worth more than a leaf says")


def has_set_below(
    sets: DeviceSets, prices: Sequence[int], cut: int, multipliers: Sequence[int], expired: Callable[[], bool]
) -> bool:
    """Whether some set has a value, its counted load less its prices, below ``cut``.

    Parameters
    ----------
    prices : sequence of int
        By group.
    multipliers : (int, int)
        Of load and memory, in units of 1 / ``MULTIPLIER_ONE``.
    """
    own = [prices[group] for group in sets.walk.line]
    alpha, beta = multipliers
    pairs = (alpha, beta), (0, 0), (2 * alpha, beta), (alpha, 2 * beta), (alpha // 2, beta // 2)
    hopes = [(a, b, _least_to_go(sets, own, a, b)) for a, b in pairs]
    labels: dict[int, list[Label]] = {0: [(0, 0, 0)]}
    for place, (after, moved) in enumerate(zip(sets.walk.after, sets.walk.moved, strict=True)):
        if expired():
            return False
        time, memory = sets.time[place], sets.memory[place]
        found: dict[int, list[Label]] = {}
        for state, here in labels.items():
            for inside in (0, 1) if time is not None else (0,):
                then = after[state][inside]
                if then < 0:
                    continue
                more = moved[state][inside] + (time if inside and time is not None else 0)
                gain = sets.counted * more - (own[place] if inside else 0)
                fetched = memory if inside else 0
                reached = found.setdefault(then, [])
                for load, used, value in here:
                    label = load + more, used + fetched, value + gain
                    if label[0] <= ONE and label[1] <= ONE and _may_fall(label, cut, hopes, place + 1, then):
                        reached.append(label)
        labels = {state: _undominated(each) for state, each in found.items()}
    return any(value < cut for here in labels.values() for _, _, value in here)


def _may_fall(
    label: Label, cut: int, hopes: Sequence[tuple[int, int, list[list[int | None]]]], place: int, state: int
) -> bool:
    load, used, value = label
    for alpha, beta, least in hopes:
        rest = least[place][state]
        if rest is None:
            return False
        if MULTIPLIER_ONE * (value - cut) + rest >= alpha * (ONE - load) + beta * (ONE - used):
            return False
    return True


def _least_to_go(sets: DeviceSets, prices: Sequence[int], alpha: int, beta: int) -> list[list[int | None]]:
    """The least value of what may follow, with prices of load and memory, times ``MULTIPLIER_ONE``; None: nothing."""
    least: list[list[int | None]] = [[0] * (1 + max(map(max, sets.walk.after[-1])))]
    for place in reversed(range(len(prices))):
        time, rest, here = sets.time[place], least[0], list[int | None]()
        for after, moved in zip(sets.walk.after[place], sets.walk.moved[place], strict=True):
            worth = []
            for inside in (0, 1) if time is not None else (0,):
                then = rest[after[inside]] if after[inside] >= 0 else None
                if then is not None:
                    load = moved[inside] + (time if inside and time is not None else 0)
                    own = MULTIPLIER_ONE * prices[place] - beta * sets.memory[place] if inside else 0
                    worth.append(then + (MULTIPLIER_ONE * sets.counted + alpha) * load - own)
            here.append(min(worth, default=None))
        least.insert(0, here)
    return least


def _undominated(labels: list[Label]) -> list[Label]:
    """Without those that another has no more load, memory and value than."""
    kept: list[Label] = []
    # Of those kept so far, which have no more load: memory ascending, and the least value up to there, descending.
    memory, least = list[int](), list[int]()
    for label in sorted(labels):
        _, used, value = label
        place = bisect_right(memory, used)
        if place and least[place - 1] <= value:
            continue
        first = place - 1 if place and memory[place - 1] == used else place
        end = place
        while end < len(least) and least[end] >= value:
            end += 1
        memory[first:end], least[first:end] = [used], [value]
        kept.append(label)
    return kept


def _is_whole(value: Any) -> bool:
    return type(value) is int and abs(value) < _LARGEST


def _are_whole(values: Any, least: int | None = None) -> bool:
    return isinstance(values, list) and all(_is_whole(each) and (least is None or each >= least) for each in values)


def _is_node(node: Any) -> bool:
    if not isinstance(node, list) or not node:
        return False
    if node[0] != "leaf":
        return len(node) == {"pair": 3, "kind": 2}.get(str(node[0])) and _are_whole(node[1:])
    if len(node) != 6 or not _are_whole(node[1]) or not _are_whole(node[2:4], 0):
        return False
    return all(_are_whole(each, 0) and len(each) == 2 for each in node[4:])
