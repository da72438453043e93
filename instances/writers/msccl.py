"""The format ``msccl``: an algorithm of MSCCL as XML, whose chunks go along the trees of a plan.

Every accelerator has a thread block for each peer that it sends to and for each that it gets from. All hops of all
trees are put into one order, by their depth; each block has its own in that order, so that what is sent first is
received first, and none waits for ever. Sums are made in place, one part after the other.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import lcm

from ddlopt.instances.readers.schedules.msccl import NAMES
from ddlopt.models.contracts import Evaluation
from ddlopt.models.errors import OptionError
from ddlopt.models.topology.collective.instance import CollectiveInstance, CollectivePlan, Path, Tree

_MOST_CHUNKS = 2**16
"""Into which all bytes are cut; more is no algorithm that anybody runs."""


@dataclass
class _Hop:
    """A chunk's way from one accelerator to the next one, over links or switches."""

    depth: int
    order: tuple[int, int, int]
    source: int
    target: int
    adds: bool
    read: tuple[str, int]
    stored: tuple[str, int]
    count: int


@dataclass
class _Block:
    send: int
    receive: int
    steps: list[str] = field(default_factory=list)


def msccl(instance: CollectiveInstance, solution: CollectivePlan, evaluation: Evaluation) -> str:
    """The text of an XML file.

    Raises
    ------
    OptionError
        If shares have no common unit that is large enough.
    """
    count = instance.accelerators
    whole = instance.collective in ("all-reduce", "broadcast")
    per_rank = lcm(*((Fraction(tree.share) * (1 if whole else count)).denominator for tree in solution.trees))
    chunks = per_rank if whole else per_rank * count
    if chunks > _MOST_CHUNKS:
        raise OptionError(f"shares of '{instance.name}' need {chunks} chunks; at most {_MOST_CHUNKS} are written")
    blocks, scratch = _blocks(instance, solution, per_rank)
    in_place = instance.collective != "all-to-all"
    sizes = {
        "all-gather": (per_rank, chunks), "broadcast": (chunks, chunks), "all-reduce": (chunks, chunks),
        "reduce-scatter": (chunks, per_rank), "all-to-all": (chunks, chunks),
    }  # fmt: skip
    i_chunks, o_chunks = sizes[instance.collective]
    lines = [
        f'<algo name="ddlopt" nchannels="1" nchunksperloop="{chunks}" proto="Simple" ngpus="{count}" '
        f'coll="{NAMES[instance.collective]}" inplace="{int(in_place)}">'
    ]
    for gpu in range(count):
        lines.append(f'  <gpu id="{gpu}" i_chunks="{i_chunks}" o_chunks="{o_chunks}" s_chunks="{scratch[gpu]}">')
        for number, block in enumerate(blocks[gpu]):
            lines.append(f'    <tb id="{number}" send="{block.send}" recv="{block.receive}" chan="0">')
            lines += [f'      <step s="{place}" {step}/>' for place, step in enumerate(block.steps)]
            lines.append("    </tb>")
        lines.append("  </gpu>")
    return "\n".join([*lines, "</algo>"])


def _blocks(
    instance: CollectiveInstance, solution: CollectivePlan, per_rank: int
) -> tuple[dict[int, list[_Block]], dict[int, int]]:
    """Thread blocks of each accelerator, and chunks of its scratch."""
    scratch: dict[int, int] = defaultdict(int)
    taken: dict[tuple[int, ...], int] = defaultdict(int)
    hops = [
        hop
        for number, tree in enumerate(solution.trees)
        if Fraction(tree.share)
        for hop in _hops(instance, tree, number, per_rank, taken, scratch)
    ]
    blocks: dict[int, list[_Block]] = {gpu: [] for gpu in range(instance.accelerators)}
    place: dict[tuple[int, int, bool], int] = {}
    last: dict[tuple[int, str, int], tuple[int, int]] = {}
    needed: set[tuple[int, int, int]] = set()
    for gpu in range(instance.accelerators):
        if instance.collective == "all-to-all":
            own = _Block(-1, -1)
            own.steps.append(_step("cpy", ("i", gpu * per_rank), ("o", gpu * per_rank), per_rank, None, 0))
            blocks[gpu].append(own)
    written: list[tuple[int, int, int, str, _Hop, tuple[int, int] | None]] = []
    counts: dict[tuple[int, int], int] = {(gpu, 0): 1 for gpu, each in blocks.items() if each}
    for hop in sorted(hops, key=lambda each: (each.depth, each.order)):
        for gpu, peer, sends in ((hop.source, hop.target, True), (hop.target, hop.source, False)):
            if (gpu, peer, sends) not in place:
                place[gpu, peer, sends] = len(blocks[gpu])
                blocks[gpu].append(_Block(peer, -1) if sends else _Block(-1, peer))
            number = place[gpu, peer, sends]
            cell = (gpu, *(hop.read if sends else hop.stored))
            waits = last.get(cell) if sends or hop.adds else None
            waits = None if waits is not None and waits[0] == number else waits
            if waits is not None:
                needed.add((gpu, *waits))
            kind = "s" if sends else "rrc" if hop.adds else "r"
            step = counts.get((gpu, number), 0)
            counts[gpu, number] = step + 1
            written.append((gpu, number, step, kind, hop, waits))
            if not sends:
                last[cell] = (number, step)
    for gpu, number, step, kind, hop, waits in written:
        ends = (hop.read, hop.stored) if kind == "s" else (hop.stored, hop.stored)
        blocks[gpu][number].steps.append(_step(kind, *ends, hop.count, waits, int((gpu, number, step) in needed)))
    return blocks, scratch


def _step(
    kind: str, source: tuple[str, int], target: tuple[str, int], count: int, waits: tuple[int, int] | None, needed: int
) -> str:
    block, step = (-1, -1) if waits is None else waits
    return (
        f'type="{kind}" srcbuf="{source[0]}" srcoff="{source[1]}" dstbuf="{target[0]}" dstoff="{target[1]}" '
        f'cnt="{count}" depid="{block}" deps="{step}" hasdep="{needed}"'
    )


def _hops(
    instance: CollectiveInstance,
    tree: Tree,
    number: int,
    per_rank: int,
    taken: dict[tuple[int, ...], int],
    scratch: dict[int, int],
) -> Iterator[_Hop]:
    """Hops of a tree's chunks, those that gather first."""
    whole = instance.collective in ("all-reduce", "broadcast")
    count = int(Fraction(tree.share) * per_rank * (1 if whole else instance.accelerators))
    part = () if whole else (tree.root, tree.spread[0][-1]) if instance.collective == "all-to-all" else (tree.root,)
    first = taken[part]
    taken[part] += count
    last = 0
    for phase, paths in enumerate((tree.gather, tree.spread)):
        depth_of = {tree.root: last} if phase else {}
        for at, path in enumerate(_in_order(paths, tree.root, bool(phase))):
            nodes = [node for node in path if node < instance.accelerators]
            begins = depth_of.get(nodes[0], 0)
            read = _place(instance, tree, first, per_rank, nodes[0], True)
            for step, (i, j) in enumerate(pairwise(nodes)):
                end = step == len(nodes) - 2
                if end:
                    stored = _place(instance, tree, first, per_rank, j, False)
                else:
                    stored = ("s", scratch[j])
                    scratch[j] += count
                yield _Hop(begins + step + 1, (number, phase, at), i, j, end and not phase, read, stored, count)
                read = stored
            reached = begins + len(nodes) - 1
            depth_of[nodes[-1]] = max(depth_of.get(nodes[-1], 0), reached)
            last = max(last, reached)


def _in_order(paths: tuple[Path, ...], root: int, out: bool) -> list[Path]:
    """Paths out of the root from there on; paths into it from the leaves on."""
    near = {path[-1 if out else 0]: path for path in paths}

    def far(path: Path) -> int:
        steps, node = 0, path[0 if out else -1]
        while node != root and node in near:
            node, steps = near[node][0 if out else -1], steps + 1
        return steps

    return sorted(paths, key=lambda path: (far(path) if out else -far(path), path))


def _place(
    instance: CollectiveInstance, tree: Tree, first: int, per_rank: int, node: int, reads: bool
) -> tuple[str, int]:
    """Where an accelerator has a tree's chunks."""
    match instance.collective:
        case "all-gather":
            return "o", tree.root * per_rank + first
        case "all-reduce" | "broadcast":
            return "o", first
        case "reduce-scatter":
            return ("o", first) if node == tree.root else ("i", tree.root * per_rank + first)
    target = tree.spread[0][-1]
    return ("i", target * per_rank + first) if reads else ("o", tree.root * per_rank + first)
