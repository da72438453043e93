"""A compression plan as a communication hook of PyTorch's DistributedDataParallel. It needs nothing but PyTorch.

In place of ``DistributedDataParallel(model)``:

    model = wrap(model)                           # names of the plan are those of model.named_parameters()
    model = wrap(model, names={"plan's": "model's"}, node_size=8)

Each gradient is divided by the number of workers, compressed as planned, and sent with those that share its message;
messages leave one after the other, in a thread of their own, while the backward pass goes on. What a compressor leaves
out is added to the next gradient (error feedback), but for quantisation, which is right on average. ``scope`` says
between whom a gradient is compressed: all workers, nodes (``inter``: summed up within each node first), or the workers
of a node (``intra``: the sums of nodes then travel in full); the first worker of a node speaks for it.
"""

import queue
import threading
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ddlopt.instances.writers.torch_ddp.compressors import COMPRESSORS, Among, Ask, Memory, Send, Steps

# Gradients that share a message, message by message.
MESSAGES: list[list[Send]] = []


class _Bucket:
    """A bucket of DistributedDataParallel, and how many of its gradients are not there yet."""

    def __init__(self, bucket: dist.GradBucket) -> None:
        self.buffer = bucket.buffer()
        on_gpu = self.buffer.device.type == "cuda"
        self.future: torch.futures.Future[torch.Tensor] = torch.futures.Future(
            devices=[self.buffer.device] if on_gpu else None
        )
        self.missing = len(bucket.gradients())


class Hook:
    """The plan, for one model.

    Parameters
    ----------
    model : DistributedDataParallel
    names : mapping, optional
        From names of the plan to names of the model's parameters, where they differ.
    node_size : int, optional
        Workers of a node, whose ranks follow each other; by default as many as there are.

    Raises
    ------
    ValueError
        If the plan is for another model.
    """

    def __init__(
        self, model: DistributedDataParallel, names: Mapping[str, str] | None = None, node_size: int | None = None
    ) -> None:
        planned = [[send._replace(name=(names or {}).get(send.name, send.name)) for send in each] for each in MESSAGES]
        trained = {name: each for name, each in model.module.named_parameters() if each.requires_grad}
        _require_same(planned, trained)
        self._plan = planned
        self._message_of = {trained[send.name]: at for at, each in enumerate(planned) for send in each}
        self._place_of = {trained[send.name]: at for each in planned for at, send in enumerate(each)}
        order = [send.name for each in planned for send in each]
        self._memory = {name: Memory(seed) for seed, name in enumerate(order)}
        self._arrived: list[dict[int, tuple[torch.Tensor, _Bucket]]] = [{} for _ in planned]
        self._groups(node_size or dist.get_world_size())
        for each in planned:
            for send in each:
                if send.compressor == "sfb":
                    _keep_factors(model.module, send.name, self._memory[send.name])
        self._wire: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._stream: Any = None
        threading.Thread(target=self._send_all, name="gradients", daemon=True).start()

    def _groups(self, node_size: int) -> None:
        world, rank = dist.get_world_size(), dist.get_rank()
        if world % node_size:
            raise ValueError(f"node_size is {node_size}, but there are {world} workers; all nodes have the same size")
        # Own groups: what travels in a thread of its own must not mix with what the model sends.
        self._all = Among(dist.new_group(list(range(world))), world, 0)
        nodes = [list(range(first, first + node_size)) for first in range(0, world, node_size)]
        locals_ = [dist.new_group(node) for node in nodes]
        at = rank // node_size
        self._node = Among(locals_[at], node_size, nodes[at][0])
        firsts = [node[0] for node in nodes]
        self._nodes = Among(dist.new_group(firsts), len(nodes), 0)
        self._speaks = rank == nodes[at][0]

    def __call__(self, state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Take what the backward pass has; messages that are complete are compressed, and sent in turn."""
        waiting = _Bucket(bucket)
        for parameter, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True):
            at = self._message_of[parameter]
            self._arrived[at][self._place_of[parameter]] = gradient, waiting
            if len(self._arrived[at]) == len(self._plan[at]):
                parts = [self._arrived[at][place] for place in range(len(self._plan[at]))]
                self._arrived[at] = {}
                steps = [self._steps(send, part) for send, (part, _) in zip(self._plan[at], parts, strict=True)]
                asked = [next(each) for each in steps]
                event = None
                if gradient.device.type == "cuda":
                    event = torch.cuda.Event()
                    event.record()
                self._wire.put((parts, steps, asked, event))
        return waiting.future

    def _steps(self, send: Send, gradient: torch.Tensor) -> Steps:
        """The compressor of a gradient, where it works and between whom."""
        memory, compress = self._memory[send.name], COMPRESSORS[send.compressor]
        flat = gradient.detach().flatten() / dist.get_world_size()
        if send.device == "cpu":
            flat = flat.cpu()
        if send.scope == "all":
            return (yield from compress(send, flat, memory, self._all))
        if send.scope == "intra":
            flat = yield from compress(send, flat, memory, self._node)
            if self._speaks:
                flat = yield Ask("reduce", flat, self._nodes)
        else:
            flat = yield Ask("reduce", flat, self._node)
            if self._speaks:
                flat = yield from compress(send, flat, memory, self._nodes)
        return (yield Ask("broadcast", flat, self._node))

    def _send_all(self) -> None:
        """The thread of the wire."""
        while True:
            parts, steps, asked, event = self._wire.get()
            try:
                if event is None:
                    self._send(parts, steps, asked)
                    continue
                if self._stream is None:
                    self._stream = torch.cuda.Stream(parts[0][0].device)
                with torch.cuda.stream(self._stream):
                    self._stream.wait_event(event)
                    self._send(parts, steps, asked)
            except Exception as problem:
                for _, waiting in parts:
                    if not waiting.future.done():
                        waiting.future.set_exception(problem)

    def _send(self, parts: list[tuple[torch.Tensor, _Bucket]], steps: list[Steps], asked: list[Ask]) -> None:
        """One message: compressors of a message ask for the same, in step, and their tensors travel together."""
        while True:
            answers, ended = _collective(asked), []
            asked = []
            for each, answer in zip(steps, answers, strict=True):
                try:
                    asked.append(each.send(answer))
                except StopIteration as end:
                    ended.append(end.value)
            if ended:
                break
        for (gradient, waiting), total in zip(parts, ended, strict=True):
            gradient.copy_(total.view_as(gradient))
            waiting.missing -= 1
            if not waiting.missing:
                waiting.future.set_result(waiting.buffer)


def _collective(asked: list[Ask]) -> list[torch.Tensor]:
    """Answers to what compressors ask for, by one collective operation."""
    kind, first, among = asked[0]
    home = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else first.device
    sizes = [each.tensor.numel() for each in asked]
    sent = torch.cat([each.tensor.flatten() for each in asked]).to(home)
    if kind == "gather":
        rows = [torch.empty_like(sent) for _ in range(among.size)]
        dist.all_gather(rows, sent, group=among.group)
        told = torch.stack(rows).to(first.device)
        return list(told.split(sizes, dim=1))
    if kind == "reduce":
        dist.all_reduce(sent, group=among.group)
    else:
        dist.broadcast(sent, among.first, group=among.group)
    return list(sent.to(first.device).split(sizes))


def _keep_factors(module: torch.nn.Module, name: str, memory: Memory) -> None:
    """Have a linear layer keep its inputs, and the gradients of its outputs, for each backward pass."""
    layer = module.get_submodule(name.rpartition(".")[0])

    def keep(_: torch.nn.Module, given: tuple[torch.Tensor, ...], made: torch.Tensor) -> None:
        if made.requires_grad:
            memory.inputs.append(given[0].detach().flatten(0, -2))
            made.register_hook(lambda error: memory.outputs.append(error.detach().flatten(0, -2)))

    layer.register_forward_hook(keep)


def _require_same(planned: list[list[Send]], trained: Mapping[str, torch.nn.Parameter]) -> None:
    """Raise ValueError unless the plan names every parameter that is trained, once, with its shape."""
    seen: set[str] = set()
    for send in (send for each in planned for send in each):
        if send.name not in trained:
            raise ValueError(f"the plan is for another model: there is no trained parameter {send.name!r}; see names")
        shape = tuple(trained[send.name].shape)
        if send.shape is not None and shape != send.shape:
            raise ValueError(f"the plan is for another model: {send.name!r} is {shape}, and was {send.shape}")
        if send.compressor == "sfb" and len(shape) != 2:
            raise ValueError(f"{send.name!r} is {shape}; only the weight of a linear layer has sufficient factors")
        if send.name in seen:
            raise ValueError(f"{send.name!r} is in the plan twice; see names")
        seen.add(send.name)
    if missing := [name for name in trained if name not in seen]:
        raise ValueError(f"the plan is for another model: it does not say how {missing[0]!r} is sent; see names")


# In megabytes: no two gradients share a bucket.
_ONE_BYTE = 1e-6


def wrap(
    model: torch.nn.Module,
    names: Mapping[str, str] | None = None,
    node_size: int | None = None,
    **options: Any,
) -> DistributedDataParallel:
    """The model in DistributedDataParallel, with the plan; ``options`` are those of DistributedDataParallel.

    Every gradient is a bucket of its own, so that messages are those of the plan.
    """
    wrapped = DistributedDataParallel(model, **({"bucket_cap_mb": _ONE_BYTE} | options))
    hook = Hook(wrapped, names, node_size)

    def send(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        return hook(state, bucket)

    wrapped.register_comm_hook(None, send)
    return wrapped
