"""Policies of exchange side by side: means over seeds with confidence intervals, and controls with the same traffic."""

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from ddlopt.analysis.gossip_training.exchange import Policy
from ddlopt.analysis.gossip_training.policies import label_of
from ddlopt.analysis.gossip_training.pushes import Alone, Period
from ddlopt.analysis.gossip_training.training import Run, Training, train
from ddlopt.analysis.texts import csv_cell
from ddlopt.models.errors import OptionError
from ddlopt.models.tolerances import FEASIBILITY_TOL

DEFAULT = (
    *("none", "period:1", "period:5", "period:12", "period:40"),
    *("adaptive:0.01", "adaptive:0.02", "adaptive:0.03", "adaptive:0.05", "adaptive:2,relative=rate"),
    *("gosgd:0.08", "eventgrad", "sparq", "choco", "dpsgd", "dpsgd:fdla", "matcha", "easgd:12"),
    *("all-reduce", "all-reduce:12"),
)
"""Policies that are compared where none are named."""

# Of confidence intervals, the usual one.
_LEVEL = 0.95


class Estimate(NamedTuple):
    """A mean over seeds, and half the width of its 95 % confidence interval (Student's t; NaN for one seed)."""

    mean: float
    half: float


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and interval."""
    count = len(values)
    if count < 2:
        return Estimate(float(np.mean(values)), math.nan)
    spread = float(np.std(values, ddof=1)) / math.sqrt(count)
    return Estimate(float(np.mean(values)), float(stdtrit(count - 1, 0.5 + _LEVEL / 2)) * spread)


class Row(NamedTuple):
    """A policy over all seeds; traffic in models that a worker sends in a step, times over gossip in every step."""

    policy: str
    traffic: Estimate
    messages: float
    bytes: float
    worker: Estimate
    averaged: Estimate
    distance: float
    time: float
    barrier_time: float


class Comparison(NamedTuple):
    """A policy, another one, and differences of accuracy in favour of the first, paired by seed."""

    policy: str
    other: str
    traffic: float
    other_traffic: float
    worker: Estimate
    averaged: Estimate


@dataclass
class Study:
    """Runs of policies, each with the same seeds.

    All calls of ``run`` need the same seeds.

    Parameters
    ----------
    training : Training
    ratio : float
        Time to send a model over that of a step's computation.
    runs : dict
        Of each policy by its label, in the order of seeds.
    controls : dict
        Labels of the controls of each policy that has some.
    """

    training: Training
    ratio: float
    runs: dict[str, list[Run]] = field(default_factory=dict)
    controls: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.ratio < math.inf:
            raise OptionError(f"ratio is {self.ratio:g}; expected a number that is not below 0")

    def run(
        self,
        policies: Sequence[Policy],
        seeds: Sequence[int],
        control: bool = True,
        on_run: Callable[[str, int], None] = lambda label, left: None,
    ) -> None:
        """Train with all policies and seeds; what is done is there whatever happens later.

        Parameters
        ----------
        policies : sequence of Policy
        seeds : sequence of int
        control : bool
            Also run, for every policy with exchange, gossip with the smallest fixed period that sends no more, all
            workers in the same step and spread over the period.
        on_run : callable
            Told after every run which policy it was of, and how many runs are known to be left.
        """
        if len(set(seeds)) < len(seeds):
            raise OptionError("a seed is given twice, which would make intervals too small; give each once")
        waiting = {label_of(policy): policy for policy in policies}
        while waiting:
            label = next(iter(waiting))
            policy = waiting.pop(label)
            runs: list[Run] = []
            for seed in seeds:
                runs.append(train(self.training, policy, seed))
                on_run(label, len(seeds) * (len(waiting) + 1) - len(runs))
            self.runs[label] = runs
            if control and not isinstance(policy, Alone | Period):
                chosen = {label_of(each): each for each in self._controls(runs)}
                self.controls[label] = tuple(chosen)
                waiting |= {name: each for name, each in chosen.items() if name not in self.runs}

    def _controls(self, runs: Sequence[Run]) -> Iterator[Policy]:
        """Gossip with the smallest period that sends no more, but in every step at most."""
        steps, workers = self.training.steps, self.training.network.nodes
        allowed = float(np.mean([run.models for run in runs])) + FEASIBILITY_TOL
        for spread in (False, True):
            periods = (Period(every, spread) for every in range(1, steps + 1))
            found = next((each for each in periods if each.sent(workers, steps) <= allowed), None)
            yield found or Alone()
            if found == Period(1):
                return

    def row(self, label: str) -> Row:
        """Means of a policy."""
        runs = self.runs[label]
        return Row(
            label,
            estimate([run.traffic for run in runs]),
            float(np.mean([run.messages for run in runs])),
            float(np.mean([run.models * run.model_bytes for run in runs])),
            estimate([run.end.worker for run in runs]),
            estimate([run.end.averaged for run in runs]),
            float(np.mean([run.end.distance for run in runs])),
            float(np.mean([run.time(self.ratio) for run in runs])),
            float(np.mean([run.time(self.ratio, barrier=True) for run in runs])),
        )

    def rows(self) -> list[Row]:
        """All of them, those that were asked for first."""
        return [self.row(label) for label in self.runs]

    def comparison(self, label: str, other: str) -> Comparison:
        """One policy against another."""
        pairs = list(zip(self.runs[label], self.runs[other], strict=True))
        return Comparison(
            label,
            other,
            float(np.mean([mine.traffic for mine, _ in pairs])),
            float(np.mean([theirs.traffic for _, theirs in pairs])),
            estimate([mine.end.worker - theirs.end.worker for mine, theirs in pairs]),
            estimate([mine.end.averaged - theirs.end.averaged for mine, theirs in pairs]),
        )

    def against_controls(self) -> list[Comparison]:
        """Each policy against gossip with a fixed period and no more traffic."""
        pairs = [(label, other) for label, others in self.controls.items() for other in others if other in self.runs]
        return [self.comparison(label, other) for label, other in pairs]

    def against_gossip(self) -> list[Comparison]:
        """Each policy against gossip in every step, where that was run."""
        base = label_of(Period(1))
        return [self.comparison(label, base) for label in self.runs if base in self.runs and label != base]

    def csv_rows(self) -> str:
        """The rows as comma-separated values."""
        header = (
            "policy,traffic,traffic_half,messages,bytes,worker,worker_half,averaged,averaged_half,distance,time,"
            "barrier_time"
        )
        return _csv(
            header.split(","),
            [
                (r.policy, *r.traffic, r.messages, r.bytes, *r.worker, *r.averaged, *r[6:])
                for r in self.rows()
            ],
        )  # fmt: skip

    def csv_comparisons(self) -> str:
        """Comparisons with controls and with gossip in every step."""
        header = "policy,other,traffic,other_traffic,worker,worker_half,averaged,averaged_half"
        found = [*self.against_controls(), *self.against_gossip()]
        return _csv(header.split(","), [(*each[:4], *each.worker, *each.averaged) for each in found])

    def csv_moments(self) -> str:
        """Every moment of every run."""
        header = "policy,seed,steps,models,worker,averaged,distance"
        lines = [
            (label, run.seed, *moment) for label, runs in self.runs.items() for run in runs for moment in run.moments
        ]
        return _csv(header.split(","), lines)


def _csv(header: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([f"{each:.6g}" if isinstance(each, float) else csv_cell(each) for each in line] for line in lines)
    return out.getvalue()
