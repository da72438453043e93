"""Algorithms of MSCCL (microsoft/msccl-tools) as XML: run step by step with names in place of bytes.

Each accelerator has buffers of chunks (``i``: input, ``o``: output, ``s``: scratch) and thread blocks, whose steps are
done in order: ``s`` sends chunks to the block's peer, ``r`` stores what comes, ``rrc`` adds it to what is there,
``rcs`` and ``rrcs`` send on what was stored, ``rrs`` adds and sends without storing, ``cpy`` and ``re`` copy and add
locally. A step may wait for one of another block. What arrives where is then known, and by which way: these ways are
the trees.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path as File
from xml.etree import ElementTree as Xml

from ddlopt.instances.readers.schedules import Ends, Schedule, Ways, plan_of
from ddlopt.models.errors import SolutionError
from ddlopt.models.reading import UnreadableError, read_text
from ddlopt.models.topology.collective.instance import Arc, CollectiveInstance, Path

NAMES = {
    "all-gather": "allgather",
    "reduce-scatter": "reduce_scatter",
    "all-reduce": "allreduce",
    "broadcast": "broadcast",
    "all-to-all": "alltoall",
}
"""Of collectives in MSCCL."""
_TYPES = ("s", "r", "rrc", "rcs", "rrs", "rrcs", "cpy", "re", "nop")
_MOST_CHUNKS = 2**16
"""Of a buffer: more is taken for a mistake."""


@dataclass(eq=False)
class _Value:
    """A chunk somewhere: of which accelerators it is a sum, and how it came there.

    ``parts`` are the two that were added up; ``sender`` had it before.
    """

    chunk: tuple[int, ...]
    at: int
    ranks: frozenset[int]
    sender: "_Value | None" = None
    parts: tuple["_Value", ...] = ()


@dataclass
class _Step:
    where: str
    kind: str
    source: tuple[str, int]
    target: tuple[str, int]
    count: int
    waits: tuple[int, int] | None


@dataclass
class _Block:
    gpu: int
    send: int
    receive: int
    channel: int
    steps: list[_Step]
    done: int = 0


@dataclass
class _Program:
    """The file, and what is in the buffers."""

    origin: str
    instance: CollectiveInstance
    per_rank: int
    in_place: bool
    blocks: dict[tuple[int, int], _Block]
    cells: dict[tuple[int, str, int], _Value] = field(default_factory=dict)
    sent: dict[tuple[int, int, int], deque[list[_Value]]] = field(default_factory=lambda: defaultdict(deque))
    chunks_sent: Counter[tuple[int, int]] = field(default_factory=Counter)


class _SeveralSumsError(SolutionError):
    """Several accelerators add up the same chunk, as in recursive doubling: all is there, and not by trees."""


def read_msccl(path: str | File, instance: CollectiveInstance) -> Schedule:
    """The trees by which chunks get where they are to be; chunks have the same size.

    Where an all-reduce makes a sum at several accelerators there are no such trees, and the schedule has no plan; its
    detail ``sends_busy_s`` is how long what its steps send keeps the busiest link busy.
    """
    program = _parsed(str(path), instance)
    for gpu in range(instance.accelerators):
        for place, value in _initial(program, gpu):
            program.cells[_cell(program, gpu, *place)] = value
    _run(program)
    ways, trees = Ways(instance, program.origin), defaultdict[Ends, Fraction](Fraction)
    try:
        for key, share in _trees(program, ways):
            trees[key] += share
    except _SeveralSumsError as told:
        return Schedule(instance, None, {"sends_busy_s": _sends_busy_s(program, ways)}, str(told))
    return Schedule(instance, plan_of(instance, trees))


def _sends_busy_s(program: _Program, ways: Ways) -> float:
    """Seconds for which the busiest link carries what steps send, whether it is needed or not."""
    instance, carried = program.instance, Counter[Arc]()
    for ends, chunks in program.chunks_sent.items():
        for link in pairwise(ways.path(ends)):
            carried[link] += chunks
    each = Fraction(instance.collective_bytes) / program.per_rank
    return float(max(each * chunks / Fraction(instance.bandwidth[link]) for link, chunks in carried.items()))


def _parsed(origin: str, instance: CollectiveInstance) -> _Program:
    try:
        root = Xml.fromstring(read_text(origin))
    except (UnreadableError, Xml.ParseError, ValueError) as problem:
        raise SolutionError(f"{origin}: cannot be read as XML: {problem}") from None
    count = instance.accelerators
    if root.tag != "algo" or root.get("coll") != NAMES[instance.collective]:
        raise SolutionError(
            f"{origin}: is <{root.tag} coll=\"{root.get('coll')}\">; '{instance.name}' needs an <algo> of "
            f'"{NAMES[instance.collective]}"'
        )
    gpus = {_number(origin, gpu, "id", 0, count - 1): gpu for gpu in root.iter("gpu")}
    if len(gpus) != count or _number(origin, root, "ngpus", 1, _MOST_CHUNKS) != count:
        raise SolutionError(f"{origin}: has {len(gpus)} gpus, but '{instance.name}' has {count} accelerators")
    chunks = _number(origin, root, "nchunksperloop", 1, _MOST_CHUNKS)
    whole = instance.collective in ("all-reduce", "broadcast")
    if not whole and chunks % count:
        raise SolutionError(f"{origin}: nchunksperloop is {chunks}; it is to be a multiple of {count} gpus")
    blocks = {}
    for gpu, element in gpus.items():
        for block in element.iter("tb"):
            number = _number(origin, block, "id", 0, _MOST_CHUNKS)
            where = f"gpu {gpu}, tb {number}"
            blocks[gpu, number] = _Block(
                gpu,
                _number(origin, block, "send", -1, count - 1),
                _number(origin, block, "recv", -1, count - 1),
                _number(origin, block, "chan", 0, _MOST_CHUNKS),
                [_step(origin, step, f"{where}, step {place}") for place, step in enumerate(block.iter("step"))],
            )
    in_place = root.get("inplace") == "1"
    return _Program(origin, instance, chunks if whole else chunks // count, in_place, blocks)


def _number(origin: str, element: Xml.Element, name: str, least: int, most: int) -> int:
    text = element.get(name, "")
    number = int(text) if text.removeprefix("-").isdecimal() and len(text) < 8 else None
    if number is None or not least <= number <= most:
        raise SolutionError(f"{origin}: {name} of a <{element.tag}> is {text!r}; expected {least} to {most}")
    return number


def _step(origin: str, element: Xml.Element, where: str) -> _Step:
    kind = element.get("type", "")
    if kind not in _TYPES:
        raise SolutionError(f"{origin}: {where} has type {kind!r}; there are: {', '.join(_TYPES)}")
    ends = []
    for side in ("src", "dst"):
        buffer, place = element.get(f"{side}buf", "i"), _number(origin, element, f"{side}off", -1, _MOST_CHUNKS)
        if buffer not in ("i", "o", "s"):
            raise SolutionError(f"{origin}: {where} has {side}buf {buffer!r}; expected i, o or s")
        ends.append((buffer, place))
    block = _number(origin, element, "depid", -1, _MOST_CHUNKS)
    waits = None if block < 0 else (block, _number(origin, element, "deps", 0, _MOST_CHUNKS))
    source, target = ends
    return _Step(where, kind, source, target, _number(origin, element, "cnt", 0, _MOST_CHUNKS), waits)


def _cell(program: _Program, gpu: int, buffer: str, place: int) -> tuple[int, str, int]:
    """A place in a buffer; in place, input and output are partly the same memory."""
    if program.in_place and buffer == "i" and program.instance.collective != "all-to-all":
        if program.instance.collective == "reduce-scatter":
            inside = place // program.per_rank == gpu
            return (gpu, "o", place % program.per_rank) if inside else (gpu, "i", place)
        return gpu, "o", place + (gpu * program.per_rank if program.instance.collective == "all-gather" else 0)
    return gpu, buffer, place


def _initial(program: _Program, gpu: int) -> Iterator[tuple[tuple[str, int], _Value]]:
    """What is in the input, by place."""
    instance, per_rank = program.instance, program.per_rank
    own, count = frozenset({gpu}), instance.accelerators
    match instance.collective:
        case "all-gather":
            chunks = [(gpu, k) for k in range(per_rank)]
        case "broadcast":
            chunks = [(gpu, k) for k in range(per_rank)] if gpu == instance.root else []
        case "all-reduce":
            chunks = [(k,) for k in range(per_rank)]  # type: ignore[misc]
        case "reduce-scatter":
            chunks = [(other, k) for other in range(count) for k in range(per_rank)]
        case _:
            chunks = [(gpu, other, k) for other in range(count) for k in range(per_rank)]  # type: ignore[misc]
    for place, chunk in enumerate(chunks):
        yield ("i", place), _Value(chunk, gpu, own)


def _wanted(program: _Program, gpu: int) -> Iterator[tuple[int, tuple[int, ...], bool]]:
    """What is to be in the output: place, chunk, and whether it has to come from elsewhere."""
    instance, per_rank = program.instance, program.per_rank
    others = range(instance.accelerators)
    match instance.collective:
        case "all-gather":
            yield from ((r * per_rank + k, (r, k), r != gpu) for r in others for k in range(per_rank))
        case "broadcast":
            yield from ((k, (instance.root or 0, k), gpu != instance.root) for k in range(per_rank))
        case "all-reduce":
            yield from ((k, (k,), True) for k in range(per_rank))
        case "reduce-scatter":
            yield from ((k, (gpu, k), True) for k in range(per_rank))
        case _:
            yield from ((r * per_rank + k, (r, gpu, k), r != gpu) for r in others for k in range(per_rank))


def _run(program: _Program) -> None:
    """All steps, each as soon as it can be done."""
    waiting = deque(program.blocks.values())
    idle = 0
    while waiting and idle < len(waiting):
        block = waiting.popleft()
        before = block.done
        while block.done < len(block.steps) and _ready(program, block, block.steps[block.done]):
            _do(program, block, block.steps[block.done])
            block.done += 1
        idle = 0 if block.done > before else idle + 1
        if block.done < len(block.steps):
            waiting.append(block)
        else:
            idle = 0
    if waiting:
        step = waiting[0].steps[waiting[0].done]
        raise SolutionError(f"{program.origin}: {step.where} waits for ever, for bytes or for another step")


def _ready(program: _Program, block: _Block, step: _Step) -> bool:
    if step.waits is not None:
        other = program.blocks.get((block.gpu, step.waits[0]))
        if other is None:
            raise SolutionError(f"{program.origin}: {step.where} waits for tb {step.waits[0]}, and there is none")
        if other.done <= step.waits[1]:
            return False
    return (
        not step.kind.startswith("r")
        or step.kind == "re"
        or bool(program.sent[block.receive, block.gpu, block.channel])
    )


def _do(program: _Program, block: _Block, step: _Step) -> None:
    if step.kind == "nop":
        return
    gpu = block.gpu
    if step.kind in ("s", "cpy", "re"):
        values = [_read(program, gpu, step, step.source, k) for k in range(step.count)]
    else:
        values = [
            _Value(each.chunk, gpu, each.ranks, sender=each)
            for each in program.sent[block.receive, gpu, block.channel].popleft()
        ]
        if len(values) != step.count:
            raise SolutionError(f"{program.origin}: {step.where} expects {step.count} chunks, and {len(values)} come")
    if step.kind in ("rrc", "rrs", "rrcs", "re"):
        place = step.target if step.kind == "re" else step.source
        values = [_sum(program, step, _read(program, gpu, step, place, k), each) for k, each in enumerate(values)]
    if step.kind not in ("s", "rrs"):
        for k, value in enumerate(values):
            program.cells[_cell(program, gpu, step.target[0], step.target[1] + k)] = value
    if step.kind in ("s", "rcs", "rrs", "rrcs"):
        program.sent[gpu, block.send, block.channel].append(values)
        program.chunks_sent[gpu, block.send] += len(values)


def _sums(program: _Program) -> bool:
    return program.instance.collective in ("all-reduce", "reduce-scatter")


def _read(program: _Program, gpu: int, step: _Step, place: tuple[str, int], k: int) -> _Value:
    found = program.cells.get(_cell(program, gpu, place[0], place[1] + k))
    if found is None:
        raise SolutionError(f"{program.origin}: {step.where} takes {place[0]}[{place[1] + k}], where nothing is yet")
    return found


def _sum(program: _Program, step: _Step, one: _Value, other: _Value) -> _Value:
    if one.chunk != other.chunk:
        raise SolutionError(f"{program.origin}: {step.where} adds up chunks {one.chunk} and {other.chunk}")
    if one.ranks & other.ranks:
        twice = min(one.ranks & other.ranks)
        raise SolutionError(f"{program.origin}: {step.where} adds up what gpu {twice} has of chunk {one.chunk} twice")
    return _Value(one.chunk, one.at, one.ranks | other.ranks, parts=(one, other))


def _trees(program: _Program, ways: Ways) -> Iterator[tuple[Ends, Fraction]]:
    """Root, paths and share of each chunk (of each pair, for all-to-all)."""
    instance = program.instance
    count, share = instance.accelerators, Fraction(1, program.per_rank)
    if instance.collective not in ("all-reduce", "broadcast"):
        share /= count
    everybody = frozenset(range(count))
    roots: dict[tuple[int, ...], _Value] = {}
    ends: dict[tuple[int, ...], list[_Value]] = defaultdict(list)
    several = ""
    for gpu in range(count):
        for place, chunk, foreign in _wanted(program, gpu):
            found = program.cells.get((gpu, "o", place))
            if found is None and not foreign:
                continue  # that nobody copies what is there already is no loss of bytes
            if found is None or found.chunk != chunk:
                told = "nothing" if found is None else f"chunk {found.chunk}"
                raise SolutionError(
                    f"{program.origin}: chunk {chunk} is lost: at the end o[{place}] of gpu {gpu} has {told}"
                )
            if _sums(program) and found.ranks != everybody:
                missing = min(everybody - found.ranks)
                raise SolutionError(
                    f"{program.origin}: what gpu {missing} has of chunk {chunk} is lost: it is not in o[{place}] of "
                    f"gpu {gpu}"
                )
            if instance.collective == "all-to-all":
                if foreign:
                    yield (chunk[0], (), (ways.path(_chain(found)[1]),)), share
                continue
            source = _chain(found)[0]
            ends[chunk].append(found)
            if roots.setdefault(chunk, source) is not source or (
                instance.collective == "reduce-scatter" and source.at != gpu
            ):
                several = (
                    f"{program.origin}: chunk {chunk} is added up at gpu {source.at} and elsewhere: that is no tree "
                    "with one root"
                )
                if instance.collective == "reduce-scatter":
                    raise SolutionError(several)
    if several:
        raise _SeveralSumsError(several)
    for chunk, root in roots.items():
        gather = tuple(_gathers(root, ways)) if _sums(program) else ()
        spread = tuple(_spreads(ends[chunk], root, ways)) if instance.collective != "reduce-scatter" else ()
        yield (root.at, gather, spread), share


def _chain(value: _Value) -> tuple[_Value, list[int]]:
    """Where a value came from as it is, and the accelerators from there to where it is."""
    way = [value.at]
    while value.sender is not None:
        value = value.sender
        way.append(value.at)
    return value, way[::-1]


def _gathers(root: _Value, ways: Ways) -> Iterator[Path]:
    """Paths of a sum's parts to where it is made."""
    waiting = [root]
    while waiting:
        value = waiting.pop()
        for part in value.parts:
            source, way = _chain(part)
            if len(way) > 1:
                yield ways.path(way)
            waiting.append(source)


def _spreads(ends: list[_Value], root: _Value, ways: Ways) -> Iterator[Path]:
    """Of each accelerator the path to it from the last one whose own bytes at the end are those that were sent on."""
    kept = {id(each) for each in (*ends, root)}
    for each in ends:
        if each is not root and each.at != root.at:
            value, way = each, [each.at]
            while value.sender is not None and (value is each or id(value) not in kept):
                value = value.sender
                way.append(value.at)
            yield ways.path(way[::-1])
