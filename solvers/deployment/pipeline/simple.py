"""Plans by rules: Piper's greedy options, stages of as many layers each, and no stages at all."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any, ClassVar

from ddlopt.models.deployment.pipeline.bounds import pipeline_bound
from ddlopt.models.deployment.pipeline.evaluate import evaluate_pipeline
from ddlopt.models.deployment.pipeline.instance import PipelineInstance, PipelinePlan, PlanStage
from ddlopt.models.deployment.pipeline.knapsack import Mix
from ddlopt.models.deployment.pipeline.stages import Stages, members
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.deployment.pipeline.chains import Chains, best_chain
from ddlopt.solvers.heuristic import Clock, Heuristic

_MOST_IDEALS = 2000
"""Beyond, pairs of them take longer than anybody waits."""


class GreedyStages(Stages):
    """Stages whose options are chosen as Piper's released code does."""

    def mix(self, piece: int, tensor: int, replicas: int, flying: int) -> Mix | None:
        """From the fastest options on, the change that costs the least time for the memory it saves, of what is needed.

        Of changes that are as good the first one is taken, by layer and option.
        """
        layers = members(piece)
        kinds = [self.kind(layer, piece, tensor) for layer in layers]
        if not all(kinds):
            return None
        more = replicas - 1
        times = [[way[0] + more * way[1] for way in kind] for kind in kinds]
        sizes = [[way[2] * flying + way[3] for way in kind] for kind in kinds]
        if sum(map(min, sizes)) > self.memory:
            return None
        # The released code takes the first of the fastest; no option of its inputs is slower and larger than another.
        taken = [_leanest_of_the_fastest(own, its) for own, its in zip(times, sizes, strict=True)]
        missing = sum(its[n] for its, n in zip(sizes, taken, strict=True)) - self.memory
        while missing > 0:
            best: tuple[float, int, int] | None = None
            for place, (own, its) in enumerate(zip(times, sizes, strict=True)):
                now = taken[place]
                for n in range(len(own)):
                    saved = its[now] - its[n]
                    if saved > 0:
                        price = (own[n] - own[now]) / min(saved, missing)
                        if best is None or price < best[0]:
                            best = price, place, n
            assert best is not None
            _, place, n = best
            missing -= sizes[place][taken[place]] - sizes[place][n]
            taken[place] = n
        chosen: Any = None
        for kind, n in zip(kinds, taken, strict=True):
            chosen = (chosen, kind, (None, n))
        return Mix(0, sum(own[n] for own, n in zip(times, taken, strict=True)), chosen)

    def stage(self, piece: int, tensor: int, replicas: int, flying: int) -> PlanStage:
        """The stage with the options that the greedy takes."""
        found = self.mix(piece, tensor, replicas, flying)
        assert found is not None
        numbers, chosen = [], found.chosen
        while chosen is not None:
            chosen, _, (_, number) = chosen
            numbers.append(number)
        layers = members(piece)
        names = [
            self.instance.layers[layer].menu(tensor)[number].name
            for layer, number in zip(layers, reversed(numbers), strict=True)
        ]
        return PlanStage(layers=tuple(layers), replicas=replicas, tensor=tensor, options=tuple(names))


@dataclass(frozen=True)
class Piper(Heuristic, uses=()):
    """Piper: the best stages and degrees, with the options of each stage by a greedy.

    The released code's recursion has the number of devices as a state; here the largest time is searched by bisection,
    which finds the same value for the same options. What is left out of the released code: its switch to recompute all
    layers or none, and its faster greedy for two options.

    Parameters
    ----------
    most_ideals : int
        Graphs with more are cut along one topological order.

    References
    ----------
    J. Tarnawski, D. Narayanan, A. Phanishayee, "Piper: Multidimensional planner for DNN parallelization", NeurIPS 2021,
    algorithm 1 and the released code (msr-fiddle/piper).
    """

    most_ideals: int = _MOST_IDEALS

    name: ClassVar[str] = "piper"
    covers: ClassVar[type[PipelineInstance]] = PipelineInstance

    def answer(self, instance: PipelineInstance, seed: int, clock: Clock, start: Any) -> Any:
        """The plan.

        Raises
        ------
        NoSolutionError
            If nothing fits.
        """
        stages = GreedyStages(instance)
        ideals = stages.ideals(self.most_ideals) or stages.prefixes()
        chains = Chains(stages, ideals, clock)
        found = best_chain(chains, pipeline_bound(instance), clock)
        if found.chain is None:
            raise NoSolutionError("no plan was found that fits into the memory")
        return chains.plan(found.chain), {"ideals": float(len(ideals))}


@dataclass(frozen=True)
class EqualSplit(Heuristic, uses=()):
    """PipeDream-2BW's planner: stages of as many layers each, with the same degrees, recomputed everywhere or nowhere.

    Layers stand in a topological order, the first of those that may come next; where their number is no multiple of
    the stages', the first stages have one more. Every number of stages and pair of degrees is tried, with each option
    that all layers have by name. The paper's planner times all by a profile; here it is the instance's own objective.

    Parameters
    ----------
    most_stages : int, optional
        1: data and tensor parallelism alone.

    References
    ----------
    D. Narayanan, A. Phanishayee, K. Shi, X. Chen, M. Zaharia, "Memory-efficient pipeline-parallel DNN training", ICML
    2021, section 4.
    """

    most_stages: int | None = None

    name: ClassVar[str] = "equal-split"
    covers: ClassVar[type[PipelineInstance]] = PipelineInstance

    def answer(self, instance: PipelineInstance, seed: int, clock: Clock, start: Any) -> Any:
        """The plan.

        Raises
        ------
        NoSolutionError
            If nothing fits.
        """
        best, value = None, inf
        for plan in self._plans(instance):
            if clock.expired:
                break
            checked = evaluate_pipeline(instance, plan)
            if checked.feasible and checked.objective is not None and checked.objective < value:
                best, value = plan, float(checked.objective)
                clock.report(value)
        if best is None:
            raise NoSolutionError("no equal split fits into the memory")
        return best, {}

    def _plans(self, instance: PipelineInstance) -> Iterator[PipelinePlan]:
        order = [(b & ~a).bit_length() - 1 for a, b in pairwise(Stages(instance).prefixes())]
        for count in range(1, min(len(order), self.most_stages or len(order), instance.devices) + 1):
            cuts = _cuts(order, count)
            for t in instance.tensors:
                for d in instance.replicas:
                    if count * t * d > instance.devices or count * d > instance.micro_batches:
                        continue
                    for option in _common(instance, t):
                        stages = (
                            PlanStage(layers=own, replicas=d, tensor=t, options=(option,) * len(own)) for own in cuts
                        )
                        yield PipelinePlan(instance=instance.name, stages=tuple(stages))


def _leanest_of_the_fastest(times: list[int], sizes: list[int]) -> int:
    return min(range(len(times)), key=lambda number: (times[number], sizes[number]))


def _cuts(order: list[int], count: int) -> list[tuple[int, ...]]:
    least, more = divmod(len(order), count)
    found, first = [], 0
    for place in range(count):
        last = first + least + (place < more)
        found.append(tuple(order[first:last]))
        first = last
    return found


def _common(instance: PipelineInstance, tensor: int) -> list[str]:
    """Names of options that all layers have."""
    names = [[option.name for option in layer.menu(tensor)] for layer in instance.layers]
    return [name for name in names[0] if all(name in own for own in names)]
