"""Whether designs keep what the model promises when they are run: as flows with max-min fair rates, and as packets.

Every design is run twice: by the simulation of flows that comes with ddlopt, and over TCP in ns-3 (the extra
``packets``; without it its columns are empty). Rows are kept; the same command goes on where it was interrupted.
"""

import math
import tempfile
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock

import numpy as np
from scipy.stats import kendalltau

import ddlopt
from benchmarks.harness import ROOT, Benchmark, Kept, Option
from ddlopt import instances
from ddlopt.analysis.simulation.contention import contended
from ddlopt.analysis.simulation.packets import PacketOptions, require_ns3, sent_as_packets
from ddlopt.analysis.simulation.replay import Replay, Task
from ddlopt.models.errors import DdloptError
from ddlopt.models.scheduling import Run, Schedule

HEAD = (
    "# Predicted and simulated\n\n"
    "Designs of topologies run by simulators, in place of the model of the busiest link. What the columns mean, and "
    "what follows: [Run a design in a simulator](../howto/simulate.md).\n\n"
)
BEST = "best known"
METHODS = (BEST, "link-exchange", "topology-finder", "topology-finder:variant=released", "ocs-greedy", "expander")
INSTANCES = (
    *("danoint", *(f"all-to-all-n{n}-d2" for n in range(6, 13)), "all-to-all-n12-d4"),
    *("dlrm-n12-d4", "bert-n12-d4", "vgg16-n12-d4"),
)
CASES = (("danoint", BEST), ("dlrm-n12-d4", "link-exchange"), ("dlrm-n12-d4", BEST), ("bert-n12-d4", "expander"))
LOSSLESS = {"queue_packets": 1_000_000, "least_timeout_s": 0.2}
ENGINES = {
    "flows, in bulk": ("flows", {"steps": False}),
    "flows": ("flows", {}),
    "packets": ("ns3", {}),
    "packets, lossless": ("ns3", LOSSLESS),
}
"""Of the first two tables."""
SWITCHES = {
    "flows, rings in bulk": ("flows", {"steps": False}),
    "flows, rings step by step": ("flows", {}),
    "packets": ("ns3", {}),
    "packets, first iteration": ("ns3", {}),
    "headers take no bandwidth": ("ns3", {"headers": False}),
    "timeouts of 0.2 s": ("ns3", {"least_timeout_s": 0.2}),
    "queues that lose nothing": ("ns3", {"queue_packets": 1_000_000}),
    "both: lossless": ("ns3", LOSSLESS),
    "lossless, first iteration": ("ns3", LOSSLESS),
    "lossless, headers take no bandwidth": ("ns3", LOSSLESS | {"headers": False}),
    "lossless, no headers, rings in bulk": ("ns3", LOSSLESS | {"headers": False, "steps": False}),
    "queues of 20 packets": ("ns3", {"queue_packets": 20}),
    "acknowledgements over the links": ("ns3", {"acknowledgements": "links"}),
    "links of 2 km": ("ns3", {"delay_s": 1e-5}),
    "New Reno": ("ns3", {"control": "newreno"}),
    "BBR": ("ns3", {"control": "bbr"}),
    "a quarter of the packets": ("ns3", {"packets": 500}),
    "four times the packets": ("ns3", {"packets": 8000}),
}
"""What the third table changes, each beside ``packets``."""
INCAST = {
    "packets": {},
    "timeouts of 0.2 s": {"least_timeout_s": 0.2},
    "queues that lose nothing": {"queue_packets": 1_000_000},
    "lossless": LOSSLESS,
}
MET_BYTES = 1e8
"""At 1e9 a second they take a tenth of a second, as a large model's gradient does."""
SCHEDULERS = (BEST, "sjf-bco", "srtf", "fifo", "list-scheduling", "gadget", "las", "optimus", "gavel")
"""Of the last table."""
APART = 0.02
"""Predictions that differ by more are told apart."""
EQUAL = 1e-6
"""Predictions that differ by less are equal."""
RESAMPLES = 10_000
MS = 1e3


class Runs:
    """Designs and simulations, those that are kept and those that are still to be made."""

    def __init__(self, asked):
        file = asked.keep or Path(tempfile.mkdtemp()) / "packets.jsonl"
        self.kept, self.limit_s, self.designs = Kept(Path(file)), asked.time_limit, {}
        self.only_kept = asked.only_kept
        try:
            require_ns3()
            self.ns3 = True
        except DdloptError:
            self.ns3 = False
        self.pool, self.writing = ThreadPoolExecutor(asked.processes), Lock()

    def design(self, name, method):
        """The design itself, found anew if it is not in memory."""
        if (name, method) not in self.designs:
            full = f"topology/{name}"
            if method == BEST:
                found = instances.best(full)
            else:
                found = ddlopt.solve(full, method, time_limit=self.limit_s).solution
            self.designs[name, method] = found
        return self.designs[name, method]

    def of(self, name, method):
        """Digest and predicted time of a method's design; None where it has none."""

        def measure():
            try:
                found = self.design(name, method)
            except DdloptError as problem:
                return {"refused": str(problem)}
            if found is None:
                return {"refused": "no solution"}
            judged = ddlopt.check(f"topology/{name}", found)
            return {"digest": digest_of(found), "predicted_s": float(judged.objective)}

        key = f"{name} {method}"
        if self.only_kept and key not in self.kept.rows:
            return None
        row = self.kept.row(key, measure)
        return None if "refused" in row else row

    def ask(self, name, method, engine, options):
        """A simulation that is under way, or done; None where there is no ns-3 and no kept row."""
        found = self.of(name, method)
        if found is None:
            return None
        told = ",".join(f"{option}={value}" for option, value in options.items())
        key = f"{name} {found['digest']} {engine}:{told}"
        if key in self.kept.rows or key in self.designs:
            return partial(self._kept, key)
        if self.only_kept or (engine == "ns3" and not self.ns3):
            return None
        design = self.design(name, method)
        if digest_of(design) != found["digest"]:  # a time limit may end a search elsewhere than the first time
            return None
        work = self.pool.submit(self._simulate, f"topology/{name}", design, engine, options)
        self.designs[key] = work
        work.add_done_callback(lambda _: self._kept(key))  # what is known is kept, whatever comes next
        return partial(self._kept, key)

    def met(self, senders, options):
        """Senders that share a link; None where there is no ns-3 and no kept row."""
        key = f"{senders} senders " + ",".join(f"{option}={value}" for option, value in options.items())
        if key not in self.kept.rows and (self.only_kept or not self.ns3):
            return None
        return self.kept.row(key, partial(meeting, senders, options))

    @staticmethod
    def _simulate(name, design, engine, options):
        try:
            found = ddlopt.simulate(name, design, engine, **options)
        except DdloptError as problem:
            return {"failed": str(problem)}
        return {"simulated_s": found.simulated_s, "messages": found.messages, **found.details}

    def _kept(self, key):
        work = self.designs.get(key)
        found = work.result() if isinstance(work, Future) else {}
        with self.writing:  # both who asked and the end of the simulation come here
            return self.kept.row(key, lambda: found)


def digest_of(design):
    """The same links, rings and routes are one design, whoever found them."""
    return design.model_copy(update={"instance_digest": None}).digest[:16]


def seconds(row, name="simulated_s"):
    """A time of a row, nothing where the simulation failed or there was none."""
    return math.nan if row is None else row.get(name, math.nan)


def simulated(asked):
    """Instance, method, the design's row, and those of its simulations by their names, of every design."""
    runs = Runs(asked)
    asks = []
    for name in asked.instances:
        for method in asked.methods:
            found = runs.of(name, method)
            if found is not None:
                asks.append(
                    (name, method, found, {run: runs.ask(name, method, *each) for run, each in ENGINES.items()})
                )
    for name, method, found, waiting in asks:
        yield name, method, found, {run: None if each is None else each() for run, each in waiting.items()}


def iterations(asked):
    """Predicted time (ms; of instances without units s), and how many times as long simulated iterations take."""
    for name, method, found, rows in simulated(asked):
        predicted = found["predicted_s"]
        row = {"instance": f"`{name}`", "method": method, "predicted": (MS if predicted < 1 else 1.0) * predicted}
        for run, each in rows.items():
            took = seconds(each) / predicted
            row[run] = "–" if math.isnan(took) else f"{took:.3f}"
        packets = rows["packets"]
        if all(each is None for each in rows.values()):
            continue
        sent = packets is not None and "failed" not in packets
        yield row | {
            "lost": f"{packets['lost_packets'] / packets['sent_packets']:.2%}" if sent else None,
            "timeouts": packets["timeouts"] if sent else None,
        }


def ranking(asked):
    """Whether the order of methods survives: Kendall's tau-b of predicted and simulated times, and pairs of designs."""
    times: dict[str, dict[str, tuple[float, ...]]] = {}
    for name, _, found, rows in simulated(asked):
        ran = (seconds(row) for row in rows.values())
        times.setdefault(name, {})[found["digest"]] = (found["predicted_s"], *ran)
    random = np.random.default_rng(0)
    for place, engine in enumerate(ENGINES, start=1):
        taus, near, far, lost = [], [], [], []
        for designs in times.values():
            rows = [(row[0], row[place]) for row in designs.values() if not math.isnan(row[place])]
            if len(rows) < 2:
                continue
            predicted, run = map(np.array, zip(*rows, strict=True))
            if np.ptp(predicted) > EQUAL * predicted.max():
                taus.append(kendalltau(*(np.round(each / each.min(), 6) for each in (predicted, run))).statistic)
            chosen = int(predicted.argmin())
            lost.append(run[chosen] / run.min() - 1)
            for one in range(len(rows)):
                for other in range(one):
                    apart = predicted[one] / predicted[other] - 1
                    if abs(apart) > EQUAL:
                        kept = (apart > 0) == (run[one] > run[other])
                        (far if abs(apart) > APART else near).append(kept)
        if not taus:
            continue
        means = random.choice(taus, (RESAMPLES, len(taus))).mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975])
        yield {
            "simulated by": engine,
            "instances": len(taus),
            "tau, mean": f"{np.mean(taus):.2f}",
            "95 % interval": f"{low:.2f} to {high:.2f}",
            f"pairs more than {APART:.0%} apart, in order": f"{sum(far)} of {len(far)}",
            "closer pairs, in order": f"{sum(near)} of {len(near)}",
            "what the choice by prediction loses, mean": f"{np.mean(lost):.1%}",
            "at most": f"{max(lost):.1%}",
        }


def left_out(asked):
    """What the model leaves out, by experiment: simulated over predicted time (and timers that ran out)."""
    runs = Runs(asked)
    cases = [case for case in CASES if case[0] in asked.instances and case[1] in asked.methods]
    asks = {
        (switch, case): runs.ask(*case, engine, options)
        for switch, (engine, options) in SWITCHES.items()
        for case in cases
    }
    for switch in SWITCHES:
        row, known = {"changed": switch}, False
        for case in cases:
            waiting = asks[switch, case]
            found = None if waiting is None else waiting()
            took = seconds(found, _TIME.get(switch, "simulated_s"))
            known |= not math.isnan(took)
            predicted = 1.0 if runs.of(*case) is None else runs.of(*case)["predicted_s"]
            ran_out = "" if found is None or "timeouts" not in found else f" ({found['timeouts']})"
            row[f"`{case[0]}`, {case[1]}"] = "–" if math.isnan(took) else f"{took / predicted:.3f}{ran_out}"
        if known:
            yield row


def incast(asked):
    """Senders that share one link, and as much to send in all: time over that of the link (and timers that ran out)."""
    runs = Runs(asked)
    for senders in asked.senders:
        row = {"senders": senders}
        for name, options in INCAST.items():
            found = runs.met(senders, options)
            if found is None:
                break
            row[name] = f"{found['simulated_s'] / found['link_time_s']:.3f} ({found['timeouts']})"
        else:
            yield row


def meeting(senders, options):
    """Two iterations of all senders' messages over a switch to one receiver; the second is timed."""
    require_ns3()
    switch, receiver = senders, senders + 1
    rates = {(sender, switch): 1e9 for sender in range(senders)} | {(switch, receiver): 1e9}
    paths = tuple((sender, switch, receiver) for sender in range(senders))
    before = tuple(range(senders))
    tasks = [Task(after, sender, MET_BYTES / senders) for after in ((), before) for sender in before]
    replay = Replay(senders + 2, rates, paths, tuple(tasks))
    found = sent_as_packets(replay, PacketOptions(**options), iterations=2)
    simulated_s = max(found.finished) - max(found.finished[:senders])
    return {"simulated_s": simulated_s, "link_time_s": replay.link_time_s / 2, "timeouts": found.timeouts}


def contention(asked):
    """Jobs that share servers' cards: simulated (flows) over predicted time of an iteration, by competing jobs."""
    instance = ddlopt.load(f"scheduling/{asked.schedule}")
    kept, found = Runs(asked).kept, {}
    for seed in range(asked.seeds):
        row = kept.row(f"{asked.schedule} seed {seed}", partial(shared_cards, instance, seed))
        for competitors, *times in row["jobs"]:
            found.setdefault(competitors, []).append(times)
    alpha = instance.contention.degradation
    for competitors, times in sorted(found.items()):
        run, model, ideal = np.array(times).T
        yield {
            "competing jobs": competitors,
            "jobs seen": len(times),
            f"simulated / predicted, alpha = {alpha:g}": spread(run / model),
            "alpha = 0": spread(run / ideal),
        }


def schedules(asked):
    """Schedules of methods: jobs that meet others on servers' cards, by slots, and simulated over predicted time."""
    kept = Runs(asked).kept
    for method in SCHEDULERS:
        jobs = kept.row(f"{asked.schedule} {method}", partial(met_jobs, f"scheduling/{asked.schedule}", method))["jobs"]
        met = np.array([run / model for competitors, run, model in jobs if competitors > 1])
        yield {
            "schedule of": method,
            "spread jobs, by slots": len(jobs),
            "that meet others": len(met),
            "most on a card": max((competitors for competitors, *_ in jobs), default=0),
            "simulated / predicted": spread(met) if len(met) else "–",
        }


def met_jobs(name, method):
    """(competing jobs, simulated, predicted) of every spread job, in each slot in which one begins."""
    instance = ddlopt.load(name)
    schedule = instances.best(name) if method == BEST else ddlopt.solve(name, method).solution
    starts = sorted({run.start for run in schedule.runs if len(run.workers) > 1})
    found = [job for slot in starts for job in contended(instance, schedule, slot)]
    return {"jobs": [(job.competitors, job.simulated_s, job.predicted_s) for job in found]}


def shared_cards(instance, seed):
    """(competing jobs, simulated, predicted, predicted without degradation) of every job of a scattered schedule."""
    schedule = scattered(instance, seed)
    rules = instance.contention.model_copy(update={"degradation": 0.0})
    plain = instance.model_copy(update={"contention": rules})
    pairs = zip(contended(instance, schedule, 0), contended(plain, schedule, 0), strict=True)
    return {"jobs": [(job.competitors, job.simulated_s, job.predicted_s, same.predicted_s) for job, same in pairs]}


def spread(ratios):
    """Mean, least and most."""
    return f"{ratios.mean():.3f} ({ratios.min():.3f} to {ratios.max():.3f})"


def scattered(instance, seed):
    """Jobs of an instance in one slot, their workers on servers drawn at random until the cluster is full."""
    random = np.random.default_rng(seed)
    rooms = [server for server, gpus in enumerate(instance.capacity[:, 0]) for _ in range(int(gpus))]
    free = list(random.permutation(rooms))
    runs = []
    for job in random.permutation(len(instance.jobs)):
        width = instance.jobs[job].max_workers
        if 2 <= width <= len(free):
            workers = Counter(int(free.pop()) for _ in range(width))
            runs.append(Run(job=int(job), start=0, slots=1, workers=tuple(sorted(workers.items()))))
    return Schedule(instance=instance.name, runs=tuple(runs))


_TIME = {f"{run}, first iteration": "first_iteration_s" for run in ("packets", "lossless")}

BENCH = Benchmark(
    iterations,
    ranking,
    left_out,
    incast,
    contention,
    schedules,
    page="packets",
    head=HEAD,
    instances=Option(list(INSTANCES), "of topology", quick=["all-to-all-n6-d2"]),
    methods=Option(list(METHODS), "whose designs are run", quick=["best known", "topology-finder"]),
    time_limit=Option(20.0, "seconds for a design", quick=1.0),
    senders=Option([1, 2, 4, 8, 16, 32, 64], "that share a link", quick=[2]),
    schedule=Option("gangs-contention-j38-g32", "instance of scheduling whose jobs are scattered"),
    seeds=Option(20, "placements of jobs at random", quick=1),
    processes=Option(2, "simulations at the same time"),
    only_kept=Option(False, "simulate nothing that is not kept"),
    keep=Option(ROOT / "docs/results/runs/packets.jsonl", quick=None, type=Path),
    in_all=False,
)
