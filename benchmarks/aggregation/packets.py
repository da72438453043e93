"""Whether plans of slots and rates keep what the model promises when packets go through the switches.

A simulation of events (``ddlopt.analysis.simulation.aggregators``): workers, network cards, links and switches with the
slots of the plan. Rows are kept; the same command goes on where it was interrupted.
"""

import math
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

import ddlopt
from benchmarks.harness import ROOT, Benchmark, Kept, Option
from ddlopt import instances
from ddlopt.analysis.simulation.aggregators import SlotOptions, through_slots

HEAD = (
    "# Slots and packets\n\n"
    "Plans of slots and rates of [aggregating switches](../families/aggregation/slots.md) run packet by packet, in "
    "place of the model of what is in flight. What is run and what follows: "
    "[Run a design in a simulator](../howto/simulate.md#aggregation). Rules run with no time limit.\n\n"
)
BEST = "best known"
RULES = ("square-root", "gradient", "demand", "equal", "max-min", "first-come")
METHODS = (BEST, *(f"slot-rule:rule={rule}" for rule in RULES))
INSTANCES = (
    *("slots-tiny-n3", "slots-tiny-back-n4", "slots-rack-n16", "slots-racks-n16", "slots-racks-links-n24"),
    *("slots-racks-whole-n24", "slots-slowest-n24"),
)
RANKED = ("slots-tiny-n3", "slots-tiny-back-n4", "slots-rack-n16", "slots-racks-whole-n24")
CASES = ("slots-tiny-n3", "slots-racks-whole-n24")
HEADERS = {"header_bytes": 66.0}
"""Ethernet (38, with what is between two packets), IPv4 (20) and UDP (8)."""
JITTER = {"jitter": 0.5}
LONG = {"rounds": 1000}
"""Round trips in which timers of a millisecond run out often enough."""
COLUMNS = {"packets": {}, "headers": HEADERS, "jitter": JITTER}
SWITCHES = {
    "as planned": {},
    "a worker a rack": {"workers": 1},
    "8 workers a rack": {"workers": 8},
    "workers paced at the plan's rates": {"paced": True},
    "headers of 66 bytes": HEADERS,
    "ways take 10 % more or less": {"jitter": 0.1},
    "ways take 50 % more or less": JITTER,
    "the same, 8 workers a rack": JITTER | {"workers": 8},
    "the same, paced": JITTER | {"paced": True},
    "a packet in 10 000 lost": LONG | {"loss": 1e-4},
    "a packet in 1 000 lost": LONG | {"loss": 1e-3},
    "the same, timeouts of 0.1 ms": LONG | {"loss": 1e-3, "timeout_s": 1e-4},
}
ROUNDS = {"rounds": 12}
EQUAL = 1e-6
"""Predictions that differ by less are equal."""


class Runs:
    """Plans that were run, or are."""

    def __init__(self, asked):
        file = asked.keep or Path(tempfile.mkdtemp()) / "slots.jsonl"
        self.kept, self.asked = Kept(Path(file)), asked
        self.plans = {}

    def plan(self, name, method):
        if (name, method) not in self.plans:
            full = f"aggregation/{name}"
            found = instances.best(full) if method == BEST else ddlopt.solve(full, method).solution
            self.plans[name, method] = found
        return self.plans[name, method]

    def of(self, name, method, options):
        """Predicted and simulated times of a plan; None where it is not kept and nothing else is asked for."""
        told = ",".join(f"{option}={value}" for option, value in options.items())
        key = f"{name} {method} {told}"
        if self.asked.only_kept and key not in self.kept.rows:
            return None
        return self.kept.row(key, partial(self._simulated, name, method, options))

    def _simulated(self, name, method, options):
        instance, plan = ddlopt.load(f"aggregation/{name}"), self.plan(name, method)
        found = through_slots(instance, plan, SlotOptions(**ROUNDS | options))
        rates = found.rates_bytes_per_s
        return {
            "predicted_s": objective(instance, plan.rates_bytes_per_s),
            "simulated_s": objective(instance, rates),
            "predicted_sending_s": sending(instance, plan.rates_bytes_per_s),
            "simulated_sending_s": sending(instance, rates),
            "simulated_jobs": sum(rate is not None for rate in rates),
            "held": found.held,
            "sent_again": found.sent_again,
        }


def times(instance, rates):
    """Weighted seconds of every job, at its parameter server's rate where it has none."""
    for job, rate in zip(instance.jobs, rates, strict=True):
        used = job.fallback_bytes_per_s if rate is None else rate
        yield job.weight * job.iterations * (job.compute_s + job.gradient_bytes / used)


def objective(instance, rates):
    """Of the instance, with other rates than a plan's."""
    return math.fsum(times(instance, rates)) if instance.goal == "total" else max(times(instance, rates))


def sending(instance, rates):
    """Weighted seconds in which jobs that aggregate send."""
    pairs = zip(instance.jobs, rates, strict=True)
    return math.fsum(job.weight * job.iterations * job.gradient_bytes / rate for job, rate in pairs if rate is not None)


def ratio(row, name="sending_s"):
    """Simulated over predicted."""
    return "–" if row is None else f"{row[f'simulated_{name}'] / row[f'predicted_{name}']:.3f}"


def slots(asked):
    """Best known plans: how many times as long as predicted jobs send, and how much of the slots is in use."""
    runs = Runs(asked)
    for name in asked.instances:
        rows = {column: runs.of(name, BEST, options) for column, options in COLUMNS.items()}
        if any(row is None for row in rows.values()):
            continue
        plain = rows["packets"]
        yield {
            "instance": f"`{name}`",
            "jobs simulated": plain["simulated_jobs"],
            "predicted, s": f"{plain['predicted_sending_s']:.5g}",
            **{column: ratio(row) for column, row in rows.items()},
            "objective, packets": ratio(plain, "s"),
            "slots in use": f"{plain['held']:.0%}",
            "in use with jitter": f"{rows['jitter']['held']:.0%}",
        }


def ranking(asked):
    """Whether the order of plans survives: Kendall's tau-b of predicted and simulated objectives of seven methods."""
    runs = Runs(asked)
    for name in RANKED:
        if name not in asked.instances:
            continue
        row = {"instance": f"`{name}`"}
        for column, options in COLUMNS.items():
            rows = [runs.of(name, method, options) for method in asked.methods]
            if len(rows) < 2 or any(each is None for each in rows):
                break
            predicted, run = (np.array([each[f"{side}_s"] for each in rows]) for side in ("predicted", "simulated"))
            row["plans"] = len({round(each / predicted.min() / EQUAL) for each in predicted})
            ranks = [np.round(each / each.min() / EQUAL) for each in (predicted, run)]
            row[f"tau, {column}"] = f"{kendalltau(*ranks).statistic:.2f}"
            row[f"choice loses, {column}"] = f"{run[predicted.argmin()] / run.min() - 1:.1%}"
        else:
            yield row


def left_out(asked):
    """What the model leaves out, by experiment: simulated over predicted time of sending, one thing changed."""
    runs = Runs(asked)
    cases = [case for case in CASES if case in asked.instances]
    for switch, options in SWITCHES.items():
        found = {case: runs.of(case, BEST, options) for case in cases}
        if any(row is not None for row in found.values()):
            yield {"changed": switch} | {f"`{case}`": ratio(row) for case, row in found.items()}


BENCH = Benchmark(
    slots,
    ranking,
    left_out,
    page="aggregation_packets",
    head=HEAD,
    instances=Option(list(INSTANCES), "of aggregation/slots", quick=["slots-tiny-n3", "slots-tiny-back-n4"]),
    methods=Option(list(METHODS), "whose plans are ranked", quick=[BEST, "slot-rule:rule=equal"]),
    only_kept=Option(False, "simulate nothing that is not kept"),
    keep=Option(ROOT / "docs/results/runs/aggregation_packets.jsonl", quick=None, type=Path),
    in_all=False,
)
