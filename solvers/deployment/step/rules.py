"""Plans by rules: Megatron's, data parallelism with and without sharding, and the grids of three planners."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ddlopt.models.deployment.step.instance import FULL, StepInstance
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.deployment.step.enumeration import Search, Space, least, room
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class _Grid(Heuristic, uses=()):
    """The best plan of the first space that has one."""

    covers: ClassVar[type[StepInstance]] = StepInstance

    def spaces(self, instance: StepInstance) -> Iterator[Space]:
        """What is looked at, one after another."""
        raise NotImplementedError

    def answer(self, instance: StepInstance, seed: int, clock: Clock, start: Any) -> Answer[Any]:
        """The plan, and how many were looked at."""
        tried, search = 0, None
        for space in self.spaces(instance):
            search = Search(instance, space, clock)
            search.run()
            tried += search.tried
            if search.best is not None:
                return search.best, {"plans": float(tried)}
        told = "" if search is None else least(search)
        raise NoSolutionError(f"'{instance.name}': no such plan fits into {room(instance)}{told}")


@dataclass(frozen=True)
class MegatronRule(_Grid, uses=()):
    """Tensor parallelism inside a server as far as memory asks, then stages, and copies for the rest.

    For t = 1, 2, 4, … up to a server with one stage, then for p = 2, 3, … with the largest t: the first degrees with
    which all devices are used and the model fits with a sharded optimizer, without recomputation or selectively; where
    none does, the same with blocks made again in full. Micro-batch, interleaving and number of these blocks are the
    best by the instance's own times. What the paper leaves open is the size of a micro-batch, which it finds by
    measuring, and experts: their degree is the largest.

    References
    ----------
    D. Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021,
    takeaways 1 to 3.
    """

    name: ClassVar[str] = "megatron-rule"

    def spaces(self, instance: StepInstance) -> Iterator[Space]:
        """Degrees of a model's copy, ascending, at first without recomputation."""
        ways = [way for block in instance.blocks for way in block.ways]
        server = instance.tiers[0].size
        tensors = sorted({way.tensor for way in ways if way.tensor <= server and server % way.tensor == 0}) or [1]
        expert = max(way.expert for way in ways)
        sharding = tuple(level for level in instance.sharding if level <= 1) or instance.sharding[:1]
        models = [(t, 1) for t in tensors] + [(tensors[-1], p) for p in range(2, instance.size + 1)]
        names = {option.name for way in ways for option in way.options}
        for options in ((names - {FULL}), names):
            for tensor, stages in models:
                if instance.devices % (tensor * stages) == 0:
                    yield Space(
                        tensor=(tensor,), pipeline=(stages,), context=(1,), sharding=sharding, all_devices=True,
                        expert=tuple(e for e in range(1, expert + 1) if e == expert or expert % e == 0)[-1:],
                        options=tuple(options), recomputed=FULL in options,
                    )  # fmt: skip


@dataclass(frozen=True)
class FullySharded(_Grid, uses=()):
    """Data parallelism alone, with all state sharded.

    References
    ----------
    Y. Zhao et al., "PyTorch FSDP: experiences on scaling fully sharded data parallel", VLDB 2023.
    """

    name: ClassVar[str] = "fully-sharded"

    def spaces(self, instance: StepInstance) -> Iterator[Space]:
        """One stage, one device a copy."""
        yield replace(_ALONE, sharding=(3,))


@dataclass(frozen=True)
class ReplicatedData(_Grid, uses=()):
    """Data parallelism alone, every device with all of the state.

    References
    ----------
    S. Li et al., "PyTorch distributed: experiences on accelerating data parallel training", VLDB 2020.
    """

    name: ClassVar[str] = "replicated-data"

    def spaces(self, instance: StepInstance) -> Iterator[Space]:
        """One stage, one device a copy."""
        yield replace(_ALONE, sharding=(0,))


_ALONE = Space(tensor=(1,), context=(1,), expert=(1,), pipeline=(1,))


@dataclass(frozen=True)
class AlpaStages(_Grid, uses=()):
    r"""Stages as Alpa's inter-operator program values them.

    The least :math:`\sum_s \tau_s + (n - 1) \max_s \tau_s` over plans without interleaving; messages of copies are no
    part of it, and the optimizer is sharded. Alpa lets degrees differ by stage, which is not in this problem.

    References
    ----------
    L. Zheng et al., "Alpa: automating inter- and intra-operator parallelism for distributed deep learning", OSDI 2022.
    """

    name: ClassVar[str] = "alpa-stages"

    def spaces(self, instance: StepInstance) -> Iterator[Space]:
        """All degrees, one chunk a device."""
        sharding = tuple(level for level in instance.sharding if level <= 1) or instance.sharding[:1]
        yield Space(interleaving=(1,), sharding=sharding, all_devices=True, copies_count=False)


@dataclass(frozen=True)
class GalvatronGrid(_Grid, uses=()):
    """Degrees that are powers of two and use all devices, no interleaving, blocks made again in full or not at all.

    Galvatron's dynamic program lets strategies differ by layer; among identical blocks it chooses how many are
    made again, as here.

    References
    ----------
    X. Miao et al., "Galvatron: efficient transformer training over multiple GPUs using automatic parallelism", VLDB
    2023.
    """

    name: ClassVar[str] = "galvatron-grid"

    def spaces(self, instance: StepInstance) -> Iterator[Space]:
        """Powers of two."""
        powers = tuple(1 << place for place in range(instance.devices.bit_length()))
        yield Space(
            tensor=powers, context=(1,), pipeline=powers, data=powers, interleaving=(1,), all_devices=True,
            options=("none",) if any(_has(instance, "none")) else None,
        )  # fmt: skip


def _has(instance: StepInstance, name: str) -> Iterator[bool]:
    return (option.name == name for block in instance.blocks for way in block.ways for option in way.options)


@dataclass(frozen=True)
class CalculonGrid(_Grid, uses=()):
    """Plans that use all devices, with an optimizer sharded or not, all blocks made again or none.

    References
    ----------
    M. Isaev et al., "Calculon: a methodology and tool for high-level co-design of systems and large language models",
    SC 2023; the times are ours.
    """

    name: ClassVar[str] = "calculon-grid"

    def spaces(self, instance: StepInstance) -> Iterator[Space]:
        """Tensor, pipeline and data degrees whose product is all devices."""
        sharding = tuple(level for level in instance.sharding if level <= 1) or instance.sharding[:1]
        yield Space(context=(1,), sharding=sharding, all_devices=True, recomputed=False)
