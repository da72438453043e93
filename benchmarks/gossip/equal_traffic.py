"""Policies of exchange that all send a twelfth of gossip in every step, on a convolutional network, each with its rate.

The claim's saving, 92 % of the traffic, for everybody: periods, probabilities and budgets follow from it, and the
thresholds of policies that look at models are found for each learning rate by halving, on the tuning seeds. Then the
trials choose the learning rate, by the accuracy of the mean of models on the tuning seeds. What is reported comes from
other seeds. Rows are kept; the same command goes on where it was interrupted.
"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.harness import ROOT, Benchmark, Kept, Option
from ddlopt.analysis.gossip_training.policies import label_of, policy_of
from ddlopt.analysis.gossip_training.study import estimate
from ddlopt.analysis.gossip_training.training import Training, train
from ddlopt.instances.generators.gossip.graphs import network_of

HEAD = (
    "# Gossip at equal traffic\n\n"
    "A convolutional network (3 × 3 filters of 16 channels, the largest of each 2 × 2 places, 64 hidden units: 17 "
    "258 numbers, seven times as many as the perceptron of the [study](gossip_training.md)) on the same digits, 8 "
    "workers on a complete graph, 40 epochs or 440 steps, no time limit. Every policy is set to send a twelfth of "
    "what gossip in every step sends, all but the first three, and has the learning rate that four trials (0.1, "
    "0.2, 0.4, 0.8) chose for it by the accuracy of the mean of models on seeds 100 and 101. A threshold θ was "
    "found for each of these rates by seven halvings on seed 100, the smallest that sends no more: 32 trainings "
    "for a policy with one, 8 for any other. The γ of `choco` is the best of 0.1, 0.03 and 0.01 on seed 100 (with "
    "0.3, the default, it diverges); other options are as they are by default. Intervals are 95 % (Student's t "
    "over the reported seeds), differences are paired by seed. What follows is said in the "
    "[study](gossip_training.md#a-larger-network-at-equal-traffic).\n\n"
)
BUDGET = 1 / 12
"""Models that a worker sends in a step, at most."""
WORKERS = 8
CONTROL = "period:12"
FREE = ("period:1", "none", "sparq:16")
"""That send what they send, for comparison."""
POLICIES = {
    CONTROL: None,
    "period:12,spread=true": None,
    f"gosgd:{BUDGET:.4f}": None,
    "all-reduce:21": None,
    "matcha:0.0119": None,
    "easgd:24": None,
    "choco:top,keep=0.0059,step=0.03": None,
    "adaptive:{:.4g}": (1e-3, 0.5),
    "adaptive:{:.4g},relative=rate": (0.1, 200.0),
    "sparq:{:.4g},every=1": (0.1, 1000.0),
}
"""With the thresholds between which that of equal traffic is looked for."""
HALVINGS = 7


class Runs:
    """Trainings, kept by what was trained."""

    def __init__(self, asked):
        file = asked.keep or Path(tempfile.mkdtemp()) / "runs.jsonl"
        self.kept, self.asked = Kept(Path(file)), asked
        self.network = network_of(np.random.default_rng(0), "complete", WORKERS, 3)

    def of(self, text, shards, rate, seed):
        """Traffic and accuracies at the end of a training."""
        # Options that decide on it are in the key.
        key = f"{shards} {text} rate={rate:g} epochs={self.asked.epochs} channels={self.asked.channels} seed={seed}"
        if self.asked.only_kept and key not in self.kept.rows:
            raise SystemExit(f"not kept: {key}")
        return self.kept.row(key, partial(self._trained, text, shards, rate, seed))

    def _trained(self, text, shards, rate, seed):
        training = Training(
            self.network, shards=shards, epochs=self.asked.epochs, rate=rate, channels=self.asked.channels, hidden=(64,)
        )
        with np.errstate(all="ignore"):  # a rate that is too large is a trial that is not accurate
            run = train(training, policy_of(text), seed, 1)
        return {"traffic": run.traffic, "averaged": run.end.averaged, "worker": run.end.worker}

    def tuned(self, form, span, shards):
        """The rate of the most accurate trial, the smaller of equals, and the policy with its threshold."""
        trials = [(rate, self.set(form, span, shards, rate)) for rate in self.asked.rates]

        def loss(trial):
            rate, text = trial
            return -np.mean([self.of(text, shards, rate, seed)["averaged"] for seed in self.tuning]), rate

        return min(trials, key=loss)

    @property
    def tuning(self):
        return range(100, 100 + self.asked.tuning)

    def set(self, form, span, shards, rate):
        """The policy, with the smallest threshold found that sends no more than the budget."""
        if span is None:
            return form
        low, high = span
        for _ in range(HALVINGS):
            middle = float(np.sqrt(low * high))
            sent = self.of(form.format(middle), shards, rate, self.tuning[0])["traffic"]
            low, high = (low, middle) if sent <= BUDGET else (middle, high)
        return form.format(high)


def told(values, form=".2f"):
    """A mean with its interval, in percent."""
    found = estimate(values)
    return f"{100 * found.mean:{form}} ± {100 * found.half:.2f}".replace("-", "−")


def differences(rows, others, name):
    if rows == others:
        return None
    return told([one[name] - other[name] for one, other in zip(rows, others, strict=True)], "+.2f")


def equal(runs, shards):
    """Rows of a table for one kind of shards."""
    seeds = range(runs.asked.seeds)
    control_rate, control = runs.tuned(CONTROL, None, shards)
    others = [runs.of(control, shards, control_rate, seed) for seed in seeds]
    for form, span in {**dict.fromkeys(FREE), **POLICIES}.items():
        rate, text = runs.tuned(form, span, shards)
        rows = [runs.of(text, shards, rate, seed) for seed in seeds]
        yield {
            "policy": f"`{label_of(policy_of(text))}`",
            "rate": f"{rate:g}",
            "traffic": f"{np.mean([row['traffic'] for row in rows]):.3f}",
            "averaged %": told([row["averaged"] for row in rows]),
            "worker %": told([row["worker"] for row in rows]),
            "averaged − control": differences(rows, others, "averaged"),
            "worker − control": differences(rows, others, "worker"),
        }


def iid(asked):
    """Shards drawn at random; the control is gossip every 12 steps."""
    yield from equal(Runs(asked), "iid")


def by_class(asked):
    """The same with shards sorted by class."""
    yield from equal(Runs(asked), "sorted")


BENCH = Benchmark(
    iid,
    by_class,
    page="gossip_equal_traffic",
    head=HEAD,
    epochs=Option(40, quick=2),
    channels=Option(16, "of the layer of filters", quick=2),
    rates=Option([0.1, 0.2, 0.4, 0.8], "learning rates tried for each policy", quick=[0.4]),
    tuning=Option(2, "seeds of each trial", quick=1),
    seeds=Option(5, quick=2),
    only_kept=Option(False, "train nothing that is not kept"),
    keep=Option(ROOT / "docs/results/runs/gossip_equal_traffic.jsonl", quick=None, type=Path),
    in_all=False,
)
