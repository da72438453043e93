"""Compressors of the hook, between the workers of a group: the first half of the file that is exported."""

import math
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import torch
import torch.distributed as dist


class Send(NamedTuple):
    """How a gradient is sent: ``amount`` is the rank, the number of entries kept, or the levels on either side of 0."""

    name: str
    shape: tuple[int, ...] | None
    compressor: str
    amount: int = 0
    scope: str = "all"
    device: str = "gpu"


# Numbers that share a norm in quantisation.
BLOCK = 512


class Ask(NamedTuple):
    """What a compressor wants done with a tensor: ``kind`` is "reduce" (sum), "gather" (bytes) or "broadcast"."""

    kind: str
    tensor: torch.Tensor
    among: "Among"


class Among(NamedTuple):
    """A group of workers, how many they are, and the rank of the first."""

    group: Any
    size: int
    first: int


# A compressor yields what it asks for, gets the answer sent, and returns the sum of what it stands for.
Steps = Generator[Ask, torch.Tensor, torch.Tensor]


class Memory:
    """What stays of a gradient from step to step."""

    def __init__(self, seed: int) -> None:
        self.seed, self.step = seed, 0
        self.rest: torch.Tensor | None = None
        self.factor: torch.Tensor | None = None
        self.inputs: list[torch.Tensor] = []
        self.outputs: list[torch.Tensor] = []

    def with_rest(self, flat: torch.Tensor) -> torch.Tensor:
        """The gradient and what was left out of it before."""
        return flat.clone() if self.rest is None else flat + self.rest

    def random(self, device: torch.device) -> torch.Generator:
        """The same stream on all workers, another one in each step."""
        self.step += 1
        return torch.Generator(device).manual_seed(self.seed * 1_000_003 + self.step)


def none(send: Send, flat: torch.Tensor, memory: Memory, among: Among) -> Steps:
    """The sum itself."""
    return (yield Ask("reduce", flat, among))


def fp16(send: Send, flat: torch.Tensor, memory: Memory, among: Among) -> Steps:
    """The sum in half precision."""
    return (yield Ask("reduce", flat.half(), among)).to(flat.dtype)


def top_k(send: Send, flat: torch.Tensor, memory: Memory, among: Among) -> Steps:
    """Each worker's largest entries, as values and places."""
    whole = memory.with_rest(flat)
    places = whole.abs().topk(send.amount, sorted=False).indices
    values = whole[places]
    memory.rest = whole.index_fill_(0, places, 0.0)
    told = yield Ask("gather", _bytes(values, places.to(torch.int32)), among)
    total = torch.zeros_like(flat)
    for row in told:
        value, place = _unbytes(row, (flat.dtype, send.amount), (torch.int32, send.amount))
        total.index_add_(0, place.long(), value)
    return total


def random_k(send: Send, flat: torch.Tensor, memory: Memory, among: Among) -> Steps:
    """Entries that all workers draw in the same way."""
    whole = memory.with_rest(flat)
    drawn = torch.randperm(flat.numel(), generator=memory.random(flat.device), device=flat.device)[: send.amount]
    values = whole[drawn]
    memory.rest = whole.index_fill_(0, drawn, 0.0)
    total = torch.zeros_like(flat)
    total[drawn] = yield Ask("reduce", values, among)
    return total


def qsgd(send: Send, flat: torch.Tensor, memory: Memory, among: Among) -> Steps:
    """Multiples of a block's norm, rounded up or down at random, packed into as many bits as there are."""
    bits, count = math.ceil(math.log2(2 * send.amount + 1)), flat.numel()
    blocks = torch.nn.functional.pad(flat, (0, -count % BLOCK)).view(-1, BLOCK).double()
    norms = blocks.norm(dim=1, keepdim=True).to(flat.dtype)
    steps = blocks / torch.where(norms > 0, norms, 1.0) * send.amount
    codes = (torch.floor(steps + torch.rand_like(steps)) + send.amount).clamp_(0, 2 * send.amount).long()
    told = yield Ask("gather", _bytes(norms.flatten(), pack(codes.flatten()[:count], bits)), among)
    total = torch.zeros_like(blocks)
    for row in told:
        norm, packed = _unbytes(row, (flat.dtype, len(norms)), (torch.uint8, -(-bits * count // 8)))
        code = torch.full_like(codes.flatten(), send.amount)
        code[:count] = unpack(packed, bits, count)
        total += (code.view_as(blocks) - send.amount) * (norm.double() / send.amount).unsqueeze(1)
    return total.flatten()[:count].to(flat.dtype)


def sign(send: Send, flat: torch.Tensor, memory: Memory, among: Among) -> Steps:
    """Signs times the mean magnitude."""
    whole = memory.with_rest(flat)
    up, scale = whole >= 0, whole.abs().mean().reshape(1)
    return (yield from _two_values(whole, up, torch.cat([scale, -scale]), memory, among))


def onebit(send: Send, flat: torch.Tensor, memory: Memory, among: Among) -> Steps:
    """Signs times the mean of the entries of that sign."""
    whole = memory.with_rest(flat)
    up = whole >= 0
    sums = torch.stack([(whole * up).sum(), (whole * ~up).sum()])
    counts = torch.stack([up.sum(), (~up).sum()]).clamp(min=1)
    return (yield from _two_values(whole, up, sums / counts, memory, among))


def _two_values(whole: torch.Tensor, up: torch.Tensor, values: torch.Tensor, memory: Memory, among: Among) -> Steps:
    count = whole.numel()
    memory.rest = whole - torch.where(up, values[0], values[1])
    told = yield Ask("gather", _bytes(values, pack(up.long(), 1)), among)
    total = torch.zeros_like(whole)
    for row in told:
        value, packed = _unbytes(row, (whole.dtype, 2), (torch.uint8, -(-count // 8)))
        total += torch.where(unpack(packed, 1, count).bool(), value[0], value[1])
    return total


def powersgd(send: Send, flat: torch.Tensor, memory: Memory, among: Among) -> Steps:
    """The sum, as a matrix, projected on a subspace that one step of iteration improves."""
    rows = send.shape[0] if send.shape else 1
    matrix = memory.with_rest(flat).view(rows, -1)
    if memory.factor is None:
        drawn = torch.randn(matrix.shape[1], send.amount, generator=memory.random(torch.device("cpu")))
        memory.factor = drawn.to(flat)
    left = torch.linalg.qr((yield Ask("reduce", matrix @ memory.factor, among)).view(rows, -1)).Q
    memory.factor = (yield Ask("reduce", matrix.T @ left, among)).view(matrix.shape[1], -1)
    total = left @ memory.factor.T
    memory.rest = (matrix - total / among.size).flatten()
    return total.flatten()


def sfb(send: Send, flat: torch.Tensor, memory: Memory, among: Among) -> Steps:
    """The factors of a linear layer's gradient, its inputs and the gradients of its outputs, from all workers."""
    inputs, outputs = torch.cat(memory.inputs), torch.cat(memory.outputs[::-1])
    memory.inputs, memory.outputs = [], []
    counts = (yield Ask("gather", _bytes(torch.tensor([len(inputs)], device=flat.device)), among)).flatten()
    rows = [int(each) for each in counts.view(torch.int64)]
    padded = [torch.nn.functional.pad(each, (0, 0, 0, max(rows) - len(each))) for each in (inputs, outputs)]
    told = yield Ask("gather", _bytes(*(each.flatten() for each in padded)), among)
    total = torch.zeros(outputs.shape[1], inputs.shape[1], dtype=flat.dtype, device=flat.device)
    for row in told:
        each = _unbytes(row, *((flat.dtype, factor.numel()) for factor in padded))
        theirs, errors = (part.view_as(factor) for part, factor in zip(each, padded, strict=True))
        total += errors.T @ theirs
    return total.flatten() / dist.get_world_size()


COMPRESSORS: dict[str, Callable[[Send, torch.Tensor, Memory, Among], Steps]] = {
    "none": none,
    "fp16": fp16,
    "top_k": top_k,
    # Momentum correction and clipping belong to the optimiser, and are left to it.
    "dgc": top_k,
    "random_k": random_k,
    "qsgd": qsgd,
    "sign": sign,
    "onebit": onebit,
    "powersgd": powersgd,
    "sfb": sfb,
}


def pack(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Whole numbers from 0 to 2^bits - 1, one behind the other, as bytes."""
    places = torch.arange(bits, device=codes.device)
    spread = ((codes.unsqueeze(1) >> places) & 1).to(torch.uint8).flatten()
    spread = torch.nn.functional.pad(spread, (0, -spread.numel() % 8)).view(-1, 8)
    weights = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8, device=codes.device)
    return (spread * weights).sum(dim=1, dtype=torch.uint8)


def unpack(packed: torch.Tensor, bits: int, count: int) -> torch.Tensor:
    """The numbers that were packed."""
    places = torch.arange(8, device=packed.device, dtype=torch.uint8)
    spread = ((packed.unsqueeze(1) >> places) & 1).flatten()[: bits * count].view(count, bits)
    return (spread.long() << torch.arange(bits, device=packed.device)).sum(dim=1)


def _bytes(*tensors: torch.Tensor) -> torch.Tensor:
    """Tensors one behind the other; each begins at a multiple of 8 bytes."""
    flat = [each.contiguous().view(torch.uint8) for each in tensors]
    return torch.cat([torch.nn.functional.pad(each, (0, -each.numel() % 8)) for each in flat])


def _unbytes(row: torch.Tensor, *kinds: tuple[torch.dtype, int]) -> list[torch.Tensor]:
    found, at = [], 0
    for dtype, count in kinds:
        size = count * dtype.itemsize
        found.append(row[at : at + size].clone().view(dtype))
        at += size + -size % 8
    return found
