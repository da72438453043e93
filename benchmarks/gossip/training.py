"""Adaptive gossip against fixed periods on many graphs, sizes, shards and data sets.

    python benchmarks/gossip_training.py [--seeds N] [SETTING …]

A row for each setting and policy: what it saves of traffic and time (communication takes 1.3 times the computation of a
step, nobody waits) over gossip in every step, what accuracy of the mean of models that costs, and how it differs from
the better of two fixed periods with no more traffic, all workers at once or spread over the period. Differences are
paired by seed and have 95 % confidence intervals.
"""

import argparse

import numpy as np

from ddlopt.analysis.gossip_policies import label_of, policy_of
from ddlopt.analysis.gossip_pushes import Period
from ddlopt.analysis.gossip_study import Estimate, Study
from ddlopt.analysis.gossip_training import Training
from ddlopt.instances.generators.gossip_graphs import network_of

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


def shown(value: Estimate) -> str:
    return f"{100 * value.mean:+.2f} ± {100 * value.half:.2f}"


def rows(name: str, seeds: int) -> None:
    shape, workers, options = SETTINGS[name]
    training = Training(network_of(np.random.default_rng(0), shape, workers, 3), **options)
    study = Study(training, RATIO)
    study.run([policy_of(text) for text in POLICIES], range(seeds))
    base = label_of(Period(1))
    for label in map(label_of, map(policy_of, POLICIES[1:])):
        row, against = study.row(label), study.comparison(label, base)
        controls = [each for each in study.against_controls() if each.policy == label]
        control = min(controls, key=lambda each: each.averaged.mean)
        cells = (
            name,
            str(training.steps),
            label,
            f"{100 * (1 - row.traffic.mean):.1f}",
            f"{100 * (1 - row.time):.1f}",
            f"{100 * study.row(base).averaged.mean:.2f}",
            shown(against.averaged),
            shown(against.worker),
            control.other,
            shown(control.averaged),
            shown(control.worker),
        )
        print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*", default=list(SETTINGS), metavar="SETTING", help=", ".join(SETTINGS))
    parser.add_argument("--seeds", type=int, default=10, metavar="N")
    asked = parser.parse_args()
    if unknown := set(asked.settings) - set(SETTINGS):
        parser.error(f"there is no setting {', '.join(sorted(unknown))}; expected some of {', '.join(SETTINGS)}")
    headers = (
        "setting", "steps", "policy", "traffic saved %", "time saved %", "gossip in every step %", "averaged",
        "worker", "control", "averaged to control", "worker to control",
    )  # fmt: skip
    print("| " + " | ".join(headers) + " |\n" + "|---" * len(headers) + "|")
    for name in asked.settings:
        rows(name, asked.seeds)


if __name__ == "__main__":
    main()
