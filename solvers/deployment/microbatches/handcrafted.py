"""The orders of the papers, as words of kinds; what they need of an instance is looked at, its times are not."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ddlopt.models.deployment.microbatches.evaluate import evaluate_order
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.deployment.microbatches.simple_order import one_forward_one_backward, with_weights
from ddlopt.models.deployment.microbatches.ticks import B, F, Kind, Ticks, W, exact_ticks, order_of
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.deployment.microbatches.timing import value
from ddlopt.solvers.heuristic import Clock, Heuristic

Word = list[Kind]


class Handcrafted(Heuristic, uses=()):
    """An order that a paper gives."""

    covers: ClassVar[type[MicroBatchInstance]] = MicroBatchInstance

    def answer(self, instance: MicroBatchInstance, seed: int, clock: Clock, start: Any) -> Any:
        """The order.

        Raises
        ------
        NoSolutionError
            If it does not fit into the memory.
        """
        ticks = exact_ticks(instance)
        best: list[Word] = []
        least: Fraction | None = None
        for words in self.candidates(ticks):
            found = value(ticks, tuple(map(tuple, words)))
            if least is None or (found is not None and found < least):
                best, least = words, found
            if clock.expired:
                break
        solution = order_of(ticks, best)
        for broken in evaluate_order(instance, solution).violations:
            if broken.kind == "memory suffices":
                told = f"{broken.where} needs {float(broken.lhs):.6g} bytes and has {float(broken.rhs):.6g}"
                raise NoSolutionError(f"the order does not fit into the memory: {told}")
            raise NoSolutionError(f"the order cannot run: {broken}")
        return solution, {}

    def words(self, ticks: Ticks) -> list[Word]:
        """Of every device."""
        raise NotImplementedError

    def candidates(self, ticks: Ticks) -> Iterator[list[Word]]:
        """Words of which the best are the answer."""
        yield self.words(ticks)


def one_each(instance: Any) -> str | None:
    """Why an instance has not one chunk on every device, in one chain."""
    if len(instance.chains) > 1:
        return "it needs one chain of chunks"
    if len(instance.chunks) > instance.devices:
        return "it needs one chunk a device"
    return None


@dataclass(frozen=True)
class GPipe(Handcrafted):
    """All F, then all B, each with its W right behind it; chunk by chunk where a device has several.

    References
    ----------
    Y. Huang et al., "GPipe: Efficient training of giant neural networks using pipeline parallelism", NeurIPS 2019.
    """

    name: ClassVar[str] = "gpipe"

    def words(self, ticks: Ticks) -> list[Word]:
        """Of every device."""
        n = ticks.instance.micro_batches
        words: list[Word] = [[] for _ in ticks.on]
        longest = max(map(len, ticks.instance.chains))
        for place in range(longest):
            for chain in ticks.instance.chains:
                if place < len(chain):
                    words[ticks.device[chain[place]]] += [(chain[place], F)] * n
        for place in reversed(range(longest)):
            for chain in ticks.instance.chains:
                if place < len(chain):
                    words[ticks.device[chain[place]]] += with_weights(ticks, chain[place]) * n
        return words


@dataclass(frozen=True)
class OneFOneB(Handcrafted):
    """1F1B: on the i-th of p devices p - i + 1 F first, then B and F in turn; W right behind its B.

    Parameters
    ----------
    capped : bool
        No more F first than fit into the memory.

    References
    ----------
    D. Narayanan et al., "PipeDream: Generalized pipeline parallelism for DNN training", SOSP 2019; S. Fan et al.,
    "DAPPLE: A pipelined data parallel approach for training large models", PPoPP 2021.
    """

    capped: bool = False

    name: ClassVar[str] = "1f1b"

    def refuses(self, instance: Any) -> str | None:
        """Several chunks a device, several chains."""
        return one_each(instance)

    def words(self, ticks: Ticks) -> list[Word]:
        """Of every device."""
        words: list[Word] = [[] for _ in ticks.on]
        room = ticks.room if self.capped else None
        for device, word in one_forward_one_backward(ticks, ticks.instance.chains[0], room):
            words[device] = word
        return words


@dataclass(frozen=True)
class Interleaved(Handcrafted):
    """Interleaved 1F1B: chunks go around the devices v times, p micro-batches at a time on each chunk.

    On device i the first 2 (p - i - 1) + (v - 1) p passes are F, then F and B in turn, then B; W right behind its B.

    References
    ----------
    D. Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021.
    """

    name: ClassVar[str] = "interleaved-1f1b"

    def refuses(self, instance: Any) -> str | None:
        """Chunks that do not go around; a number of micro-batches that is no multiple of the devices'."""
        if len(instance.chains) > 1:
            return "it needs one chain of chunks"
        places = [instance.chunks[chunk].device for chunk in instance.chains[0]]
        p = instance.devices
        if len(places) % p or places != places[:p] * (len(places) // p):
            return "it needs chunks that go around the devices, as often on each"
        if len(places) > p and instance.micro_batches % p:
            return f"it needs a multiple of {p} micro-batches, and there are {instance.micro_batches}"
        return None

    def words(self, ticks: Ticks) -> list[Word]:
        """Of every device."""
        chain, p, n = ticks.instance.chains[0], ticks.instance.devices, ticks.instance.micro_batches
        rounds = len(chain) // p
        words: list[Word] = [[] for _ in ticks.on]
        for place in range(p):
            device = ticks.device[chain[place]]
            own = [chain[place + p * turn] for turn in range(rounds)]
            group = p if rounds > 1 else n
            forward = [chunk for first in range(0, n, group) for chunk in own for _ in range(min(group, n - first))]
            backward = [
                chunk for first in range(0, n, group) for chunk in own[::-1] for _ in range(min(group, n - first))
            ]
            several = 2 * (p - place - 1) + (rounds - 1) * p
            ahead = min(len(forward), several + 1 if rounds > 1 else p - place)
            word = words[device]
            word += [(chunk, F) for chunk in forward[:ahead]]
            for done, chunk in enumerate(backward):
                word += with_weights(ticks, chunk)
                if done + ahead < len(forward):
                    word.append((forward[done + ahead], F))
        return words


@dataclass(frozen=True)
class DualPipe(Handcrafted):
    """DualPipe: two chains in opposite directions, whose F and B take turns on every device.

    The eight phases of the released code; where that runs an F and a B at once, here the F is first. B of its
    phases without zero bubble has its W right behind it.

    References
    ----------
    DeepSeek-AI, "DeepSeek-V3 technical report", 2024, figure 5, and the released code (deepseek-ai/DualPipe).
    """

    name: ClassVar[str] = "dualpipe"

    def refuses(self, instance: Any) -> str | None:
        """Other chunks than two chains in opposite directions over an even number of devices, fewer micro-batches."""
        p = instance.devices
        ways = [[instance.chunks[chunk].device for chunk in chain] for chain in instance.chains]
        if len(ways) != 2 or ways[0] != ways[1][::-1] or sorted(ways[0]) != list(range(p)):
            return "it needs two chains in opposite directions, with one chunk of each on every device"
        if p % 2:
            return f"it needs an even number of devices, and there are {p}"
        if instance.micro_batches < p:
            return f"it needs {p} micro-batches or more in each direction, and there are {instance.micro_batches}"
        if any(chunk.weights_s is None for chunk in instance.chunks):
            return "it needs W as passes of their own"
        return None

    def words(self, ticks: Ticks) -> list[Word]:
        """Of every device."""
        one, other = ticks.instance.chains
        words: list[Word] = [[] for _ in ticks.on]
        p = len(one)
        for rank in range(p):
            own = (one[rank], other[p - 1 - rank])
            mirrored = rank >= p // 2
            half = p - 1 - rank if mirrored else rank
            words[ticks.device[one[rank]]] = list(self._word(own[::-1] if mirrored else own, half, ticks))
        return words

    def _word(self, chunks: tuple[int, int], half: int, ticks: Ticks) -> Iterator[Kind]:
        """Of a device, ``half`` places from its end, with the chunk of the nearer end's chain and the other one."""
        p, n = ticks.instance.devices, ticks.instance.micro_batches
        (near, far), inner = chunks, p // 2 - half - 1
        late: list[int] = []

        def late_weights() -> Iterator[Kind]:
            if late:
                yield late.pop(0), W

        yield from [(near, F)] * (2 * inner)
        yield from [(near, F), (far, F)] * (half + 1)
        for _ in range(inner):
            yield far, B
            yield far, W
            yield far, F
        for _ in range(n - p + half + 1):
            yield from ((near, F), (far, B), (far, W), (far, F), (near, B), (near, W))
        for _ in range(inner):
            yield from ((far, B), (far, W), (far, F), (near, B), (near, W))
        delayed = False
        for turn in range(half + 1):
            for chunk, parity in ((far, 1), (near, 0)):
                if turn == (half + 1) // 2 and half % 2 == parity:
                    delayed = True
                yield chunk, B
                if delayed:
                    late.append(chunk)
                else:
                    yield chunk, W
        for _ in range(inner):
            yield from late_weights()
            late.append(near)
            yield near, B
        while late:
            yield from late_weights()
