"""Adaptive gossip against fixed periods on many graphs, sizes, shards and data sets.

A row for each setting and policy: what it saves of traffic and time (communication takes 1.3 times the computation of a
step, nobody waits) over gossip in every step, what accuracy of the mean of models that costs, and how it differs from
the better of two fixed periods with no more traffic, all workers at once or spread over the period. Differences are
paired by seed and have 95 % confidence intervals.
"""

import numpy as np

from benchmarks.harness import Benchmark, Option
from ddlopt.analysis.gossip_training.policies import label_of, policy_of
from ddlopt.analysis.gossip_training.pushes import Period
from ddlopt.analysis.gossip_training.study import Estimate, Study
from ddlopt.analysis.gossip_training.training import Training
from ddlopt.instances.generators.gossip.graphs import network_of

RATIO = 1.3
POLICIES = ("period:1", "adaptive:0.03", "adaptive:2,relative=rate", "sparq")
SETTINGS = {
    "4": ("complete", 4, {}),
    "8": ("complete", 8, {}),
    "16": ("complete", 16, {}),
    "32": ("complete", 32, {}),
    "64": ("complete", 64, {}),
    "cycle-8": ("cycle", 8, {}),
    "cycle-32": ("cycle", 32, {}),
    "hypercube-16": ("hypercube", 16, {}),
    "sorted-8": ("complete", 8, {"shards": "sorted"}),
    "sorted-cycle-8": ("cycle", 8, {"shards": "sorted"}),
    "breast_cancer-8": ("complete", 8, {"data": "breast_cancer"}),
    "wine-8": ("complete", 8, {"data": "wine", "batch": 8}),
}


def estimate(value: Estimate) -> str:
    return f"{100 * value.mean:+.2f} ± {100 * value.half:.2f}"


def policies(asked):
    """All policies in each setting."""
    for name in asked.settings:
        shape, workers, options = SETTINGS[name]
        training = Training(network_of(np.random.default_rng(0), shape, workers, 3), **options)
        study = Study(training, RATIO)
        study.run([policy_of(text) for text in POLICIES], range(asked.seeds))
        base = label_of(Period(1))
        for label in map(label_of, map(policy_of, POLICIES[1:])):
            row, against = study.row(label), study.comparison(label, base)
            controls = [each for each in study.against_controls() if each.policy == label]
            control = min(controls, key=lambda each: each.averaged.mean)
            yield {
                "setting": name, "steps": training.steps, "policy": label,
                "traffic saved %": f"{100 * (1 - row.traffic.mean):.1f}",
                "time saved %": f"{100 * (1 - row.time):.1f}",
                "gossip in every step %": f"{100 * study.row(base).averaged.mean:.2f}",
                "averaged": estimate(against.averaged), "worker": estimate(against.worker), "control": control.other,
                "averaged to control": estimate(control.averaged), "worker to control": estimate(control.worker),
            }  # fmt: skip


BENCH = Benchmark(
    policies,
    settings=Option(list(SETTINGS), choices=SETTINGS, quick=["wine-8"]),
    seeds=Option(10, quick=2),
)
