"""Sequences of stages between ideals of which none takes longer than a time, and the search for the least one."""

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ddlopt.models.deployment.pipeline.instance import PipelinePlan
from ddlopt.models.deployment.pipeline.stages import Stages
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.heuristic import Clock


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    near: float = 1e-6
    """How near the limits of the bisection come before only what is strictly better is asked for."""
    first_step: float = 1.1
    """By how much the first time tried is above the bound; the steps grow from there."""
    most_steps: int = 12
    """Steps that grow, far beyond any plan, before the question is whether anything fits at all."""


_EFFORT = Effort()


class Piece(NamedTuple):
    """A stage of a chain: its layers, its degrees, and how many samples are in flight on a replica."""

    layers: int
    tensor: int
    replicas: int
    flying: int


class Chains:
    """Sequences of stages between ideals, with whatever rule chooses options: more samples in flight may help it.

    Parameters
    ----------
    stages : Stages
    ideals : tuple of int
        From the empty one to the whole, the smaller ones first.
    clock : Clock
    """

    def __init__(self, stages: Stages, ideals: tuple[int, ...], clock: Clock) -> None:
        self.stages, self.ideals, self.clock = stages, ideals, clock
        instance = stages.instance
        self.most = min(instance.devices, instance.micro_batches)
        self.degrees = [(t, d) for t in instance.tensors for d in instance.replicas if t * d <= instance.devices]
        work = [
            min(menu.tensor * option.time_s for menu in layer.menus for option in menu.options)
            for layer in instance.layers
        ]
        self.work_s = [sum(work[layer] for layer in range(instance.size) if ideal >> layer & 1) for ideal in ideals]

    @cached_property
    def inside(self) -> list[list[int]]:
        """By ideal, those within it."""
        return [
            [place for place, other in enumerate(self.ideals) if other != ideal and other & ~ideal == 0]
            for ideal in self.ideals
        ]

    def spare(self, limit_s: float) -> list[int]:
        """By ideal, the devices that are left behind it if its stages take no longer."""
        devices = self.stages.instance.devices
        return [devices - int(np.ceil(work / limit_s * (1 - ROUNDING))) for work in self.work_s]

    def within(self, limit_s: float) -> list[Piece] | None:
        """A chain in which every stage takes less than ``limit_s``; None if there is none.

        For every ideal and every number of replicas that stages behind it have, the fewest devices of these stages.

        Raises
        ------
        NoSolutionError
            If the time is up.
        """
        devices, most, ideals = self.stages.instance.devices, self.most, self.ideals
        beyond = devices + 1
        need = np.full((len(ideals), most + 1), beyond, dtype=np.int64)
        need[-1, 0] = 0
        came = np.full((len(ideals), most + 1), -1, dtype=np.int64)
        steps: list[tuple[int, Piece]] = []
        spare = self.spare(limit_s)
        for behind in range(len(ideals) - 1, 0, -1):
            if self.clock.expired:
                raise NoSolutionError("the time is up")
            known = need[behind]
            if known.min() > devices:
                continue
            largest = int(np.flatnonzero(known <= devices)[-1])
            for ahead in self.inside[behind]:
                if spare[ahead] <= 0 and ahead:
                    continue
                layers = ideals[behind] & ~ideals[ahead]
                for tensor, replicas in self.degrees:
                    used = tensor * replicas
                    if used > spare[ahead] or self.stages.fastest_s(layers, tensor, replicas) >= limit_s:
                        continue
                    for least, top in self._counts(Piece(layers, tensor, replicas, 0), limit_s, largest + replicas):
                        self._step(need, came, steps, behind, ahead, Piece(layers, tensor, replicas, least), top, spare)
        if need[0].min() > devices:
            return None
        return self._read(need, came, steps)

    def _counts(self, piece: Piece, limit_s: float, most: int) -> list[tuple[int, int]]:
        """Ranges of samples in flight, first and last, with which the stage takes less than the limit."""
        load = self.stages.load_s
        most_flying = -(-min(most, self.most) // piece.replicas)
        return [(flying, flying) for flying in range(1, most_flying + 1) if load(*piece[:3], flying) < limit_s]

    def _step(
        self,
        need: Any,
        came: Any,
        steps: list[tuple[int, Piece]],
        behind: int,
        ahead: int,
        piece: Piece,
        top: int,
        spare: list[int],
    ) -> None:
        """Put a stage in front of what is known behind it."""
        d = piece.replicas
        first = max(d, (piece.flying - 1) * d + 1)
        last = min(self.most, top * d)
        if first > last:
            return
        fewest = need[behind, first - d : last + 1 - d] + d * piece.tensor
        target = need[ahead, first : last + 1]
        better = (fewest < target) & (fewest <= spare[ahead])
        if better.any():
            target[better] = fewest[better]
            came[ahead, first : last + 1][better] = len(steps)
            steps.append((behind, piece))

    def _read(self, need: Any, came: Any, steps: list[tuple[int, Piece]]) -> list[Piece]:
        place, total = 0, int(np.argmin(need[0]))
        found = []
        while place != len(self.ideals) - 1:
            place_behind, piece = steps[came[place, total]]
            found.append(piece._replace(flying=-(-total // piece.replicas)))
            place, total = place_behind, total - piece.replicas
        return found

    def load_s(self, chain: list[Piece]) -> float:
        """Of the slowest stage."""
        return max(self.stages.load_s(*piece) for piece in chain)

    def plan(self, chain: list[Piece]) -> PipelinePlan:
        """The plan with the fastest options."""
        return PipelinePlan(
            instance=self.stages.instance.name, stages=tuple(self.stages.stage(*piece) for piece in chain)
        )


class Found(NamedTuple):
    """The best chain, and the time below which there is none."""

    chain: list[Piece] | None
    bound_s: float
    tried: int


def best_chain(chains: Chains, low_s: float, clock: Clock, every: bool = False) -> Found:
    """The chain with the fastest slowest stage, by bisection; what the clock lets it find.

    Each question that has no answer raises the bound, each answer is the next time to beat; in the end only what is
    strictly better is asked for.

    Parameters
    ----------
    chains : Chains
    low_s : float
        A bound on all plans.
    clock : Clock
    every : bool
        The chains are those of all plans. Only then is a time that they exclude a bound, and reported as one.
    """
    bound_s = low_s
    best, high_s, step, tried = None, inf, _EFFORT.first_step, 0
    try:
        while low_s < high_s:
            near = high_s - low_s <= _EFFORT.near * high_s
            middle_s = (low_s + high_s) / 2
            limit_s = high_s if near else min(middle_s, low_s * step) if low_s else middle_s
            if best is None and tried > _EFFORT.most_steps:
                limit_s = inf
            tried += 1
            chain = chains.within(limit_s)
            if chain is not None:
                best, high_s = chain, chains.load_s(chain)
                clock.report(high_s, low_s if every else bound_s)
            elif limit_s == inf:
                return Found(None, inf, tried)
            else:
                low_s, step = limit_s, 1 + 2 * (step - 1)
    except NoSolutionError:
        pass
    return Found(best, low_s, tried)
