"""Policies compared by the simulated time until they are as accurate as is asked for, learning rates tuned for each.

A policy has a budget of trials: the same learning rates for all, on seeds of their own. What is reported comes from
other seeds, with the rate that reached the target with most of the tuning seeds, and of those soonest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from ddlopt.analysis.gossip_training.clocks import Clock, Timing
from ddlopt.analysis.gossip_training.exchange import Policy, Sent
from ddlopt.analysis.gossip_training.mixing import uniform
from ddlopt.analysis.gossip_training.policies import label_of
from ddlopt.analysis.gossip_training.pushes import Period
from ddlopt.analysis.gossip_training.study import Estimate, estimate
from ddlopt.analysis.gossip_training.training import Moment, Training, train
from ddlopt.models.errors import OptionError
from ddlopt.models.tolerances import FEASIBILITY_TOL

RATES = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Learning rates tried, by factors of 2 around what most policies take on the digits."""


class Reached(NamedTuple):
    """A training until the target, or to its end.

    ``seconds``: by the clock of each timing, infinite where the target was not reached. ``steps``, ``models``: until
    then, and models' worth that a worker sent on average. ``best``: the most accurate moment.
    """

    seconds: tuple[float, ...]
    steps: int
    models: float
    best: float


class Row(NamedTuple):
    """A policy with its tuned rate under one timing.

    ``reached``: with how many seeds. Means over those: ``seconds`` with its 95 % interval, ``steps``, ``traffic`` in
    models that a worker sends in a step, ``bytes`` that one sends until the target. ``best``: over all seeds.
    """

    policy: str
    rate: float
    reached: int
    seconds: Estimate
    steps: float
    traffic: float
    bytes: float
    best: float


@dataclass
class Race:
    """Trainings of policies, rates and seeds, each done once and told by all timings.

    Parameters
    ----------
    training : Training
        Its ``rate`` is not used.
    timings : dict of Timing
        By name.
    target : float
        Accuracy to be reached on held-out samples.
    of : {"averaged", "worker"}
        By the mean of the workers' models, or by their own on average.
    rates : tuple of float
        The trials of each policy.
    every : int
        Steps between two looks at the accuracy.
    tuning, seeds : sequence of int
        Seeds on which rates are chosen, and those that are reported.
    """

    training: Training
    timings: dict[str, Timing]
    target: float = 0.95
    of: Literal["averaged", "worker"] = "averaged"
    rates: Sequence[float] = RATES
    every: int = 5
    tuning: Sequence[int] = (100, 101)
    seeds: Sequence[int] = tuple(range(10))
    _done: dict[tuple[str, float, int], Reached] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.target <= 1:
            raise OptionError(f"target is {self.target:g}; expected an accuracy above 0, at most 1")
        if self.of not in ("averaged", "worker"):
            raise OptionError(f"of is '{self.of}'; expected averaged or worker")
        if self.every < 1:
            raise OptionError(f"every is {self.every}; expected at least 1 step")
        if both := set(self.tuning) & set(self.seeds):
            raise OptionError(f"seed {min(both)} is for tuning and for the report; take others for one of them")

    def run(self, policy: Policy, rate: float, seed: int) -> Reached:
        """One training, kept."""
        key = label_of(policy), rate, seed
        if key not in self._done:
            self._done[key] = self._trained(policy, rate, seed)
        return self._done[key]

    def _trained(self, policy: Policy, rate: float, seed: int) -> Reached:
        training = replace(self.training, rate=rate)
        steps, network = training.steps, training.network
        clocks = [Clock(timing, network, steps, training.late, seed) for timing in self.timings.values()]

        def tick(sent: Sent) -> None:
            for clock in clocks:
                clock.step(sent)

        def there(moment: Moment) -> bool:
            return self._accuracy(moment) >= self.target

        with np.errstate(all="ignore"):  # a rate that is too large is a trial that does not reach the target
            run = train(training, policy, seed, max(1, steps // self.every), tick, there)
        got = there(run.end)
        seconds = tuple(clock.seconds if got else math.inf for clock in clocks)
        return Reached(seconds, run.steps, run.models, max(map(self._accuracy, run.moments)))

    def _accuracy(self, moment: Moment) -> float:
        found: float = getattr(moment, self.of)
        return found

    def rate_of(self, policy: Policy, timing: str) -> float:
        """The best of the trials; the smaller of rates that are as good."""

        def loss(rate: float) -> tuple[int, float, float]:
            seconds = [self._seconds(policy, rate, seed, timing) for seed in self.tuning]
            reached = [each for each in seconds if each < math.inf]
            best = float(np.mean([self.run(policy, rate, seed).best for seed in self.tuning]))
            return -len(reached), float(np.mean(reached)) if reached else -best, rate

        return min(self.rates, key=loss)

    def _seconds(self, policy: Policy, rate: float, seed: int, timing: str) -> float:
        return self.run(policy, rate, seed).seconds[list(self.timings).index(timing)]

    def row(self, policy: Policy, timing: str) -> Row:
        """What the policy comes to."""
        rate = self.rate_of(policy, timing)
        runs = [self.run(policy, rate, seed) for seed in self.seeds]
        times = [self._seconds(policy, rate, seed, timing) for seed in self.seeds]
        there = [place for place, seconds in enumerate(times) if seconds < math.inf]
        traffic = float(np.mean([run.models / run.steps for run in runs]))
        best = float(np.mean([run.best for run in runs]))
        if not there:
            nothing = Estimate(math.nan, math.nan)
            return Row(label_of(policy), rate, 0, nothing, math.nan, traffic, math.nan, best)
        steps = float(np.mean([runs[k].steps for k in there]))
        size = 4 * self.training.learners.size * float(np.mean([runs[k].models for k in there]))
        seconds = estimate([times[k] for k in there])
        return Row(label_of(policy), rate, len(there), seconds, steps, traffic, size, best)

    def ratio(self, policy: Policy, other: Policy, timing: str) -> Estimate:
        """Time of the one over that of the other, paired by seed, where both reach the target."""
        mine, theirs = self.rate_of(policy, timing), self.rate_of(other, timing)
        pairs = [
            (self._seconds(policy, mine, seed, timing), self._seconds(other, theirs, seed, timing))
            for seed in self.seeds
        ]
        ratios = [one / two for one, two in pairs if max(one, two) < math.inf]
        return estimate(ratios) if ratios else Estimate(math.nan, math.nan)

    def controls(self, policy: Policy, timing: str) -> tuple[Policy | None, Policy | None]:
        """Two that send as much in a step, but look at nothing: pushes at a period, and matchings at random.

        The period is the smallest with no more traffic, spread over the workers; 1 where a policy sends more. Of the
        graph's matchings each is active with the same probability, which makes the expected traffic equal; None where
        all of them in every step send less. No policy is a control of itself.
        """
        traffic = self.row(policy, timing).traffic
        if traffic <= 0:
            return None, None
        every = max(1, math.ceil(1 / traffic - FEASIBILITY_TOL))
        found = Period(every, spread=every > 1), uniform(self.training.network, traffic)
        period, matchings = (each if each and label_of(each) != label_of(policy) else None for each in found)
        return period, matchings
