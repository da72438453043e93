"""Policies of exchange by the simulated time to an accuracy, with uneven and straggling workers and late messages.

A row for each setting and policy: the learning rate that five trials chose for it, with how many seeds the target was
reached, seconds until then (a step of the fastest worker takes one) with a 95 % confidence interval, steps, models that
a worker sends in a step, what it sent until then; then the same time over that of two controls with no more traffic in
a step, tuned by as many trials: pushes at a fixed period, and the graph's matchings equally often at random.
"""

import math

import ddlopt
from benchmarks.harness import Benchmark, Option
from ddlopt.analysis.gossip_training.clocks import Timing
from ddlopt.analysis.gossip_training.exchange import Policy
from ddlopt.analysis.gossip_training.policies import label_of, policy_of
from ddlopt.analysis.gossip_training.study import Estimate
from ddlopt.analysis.gossip_training.to_accuracy import RATES, Race
from ddlopt.analysis.gossip_training.training import Training

POLICIES = (
    *("all-reduce", "all-reduce:12", "dpsgd", "period:1", "period:12", "gosgd:0.08"),
    *("adaptive:0.03", "adaptive:2,relative=rate", "matcha:0.5", "matcha:0.1", "choco", "sparq"),
)
TIMINGS = {
    "even": Timing(message_s=0.5),
    "uneven": Timing(message_s=0.5, uneven=1.0),
    "stragglers": Timing(message_s=0.5, slow_chance=0.05, slow_factor=10.0),
    "stragglers, all wait": Timing(message_s=0.5, slow_chance=0.05, slow_factor=10.0, wait="all"),
    "slow uneven links": Timing(message_s=4.0, uneven_links=2.0),
}
"""A step takes one second, a model half of one or four; a straggler's step takes ten, once in twenty."""


def told(value: Estimate, form: str) -> str | None:
    if math.isnan(value.mean):
        return None
    return f"{value.mean:{form}}" + ("" if math.isnan(value.half) else f" ± {value.half:{form}}")


def against(found: Race, policy: Policy, control: Policy, timing: str) -> str:
    value = told(found.ratio(policy, control, timing), ".2f")
    return f"{value or 'not reached'} (`{label_of(control).replace(',plan=equal-activation', '')}`)"


def race(asked) -> Race:
    network = ddlopt.load(asked.graph).network
    training = Training(
        network,
        shards=asked.shards,
        epochs=asked.epochs,
        late=asked.late,
        hidden=(asked.hidden,),
        channels=asked.channels,
    )
    timings = {name: TIMINGS[name] for name in asked.timings}
    seeds, tuning = range(asked.seeds), range(100, 100 + asked.tuning)
    return Race(training, timings, asked.target, rates=tuple(asked.rates), seeds=seeds, tuning=tuning)


def times(asked):
    """Seconds to the target."""
    found = race(asked)
    for timing in asked.timings:
        for policy in map(policy_of, asked.policies):
            row = found.row(policy, timing)
            controls = (None, None) if asked.bare else found.controls(policy, timing)
            yield {
                "who is slow": timing, "policy": f"`{row.policy}`", "rate": f"{row.rate:g}",
                "reached": f"{row.reached} of {asked.seeds}", "seconds": told(row.seconds, ".0f"),
                "steps": told(Estimate(row.steps, math.nan), ".0f"), "traffic": f"{row.traffic:.3f}",
                "MB to target": told(Estimate(row.bytes / 1e6, math.nan), ".2f"),
                "best %": f"{100 * row.best:.1f}",
            } | {
                f"over {name}": control and against(found, policy, control, timing)
                for name, control in zip(("period", "matchings"), controls, strict=True)
            }  # fmt: skip


BENCH = Benchmark(
    times,
    policies=Option(list(POLICIES), "as `ddlopt experiment gossip` has them", quick=["all-reduce", "period:12"]),
    timings=Option(list(TIMINGS), "who is slow", choices=TIMINGS, quick=["uneven"]),
    graph=Option("gossip/matcha-n8-50", "an instance with a graph of workers"),
    shards=Option("iid", "iid or sorted"),
    channels=Option(0, "of a layer of 3 x 3 filters before the perceptron"),
    hidden=Option(32, "width of the perceptron's hidden layer"),
    late=Option(0, "steps by which messages are late"),
    target=Option(0.95, "accuracy of the mean of models on held-out samples"),
    epochs=Option(120, "after which a training ends, target or not", quick=20),
    rates=Option(list(RATES), "learning rates tried for each policy", quick=[0.4]),
    tuning=Option(3, "how many seeds each trial has", quick=1),
    seeds=Option(10, quick=2),
    bare=Option(False, "without controls"),
)
