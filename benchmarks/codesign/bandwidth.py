"""The finding: iteration time against bandwidth on optical links, switches and reconfigured circuits, in one model.

Every network gets strategies of its own. A plan, and a choice of strategies for a switch, is good for any
bandwidth: it takes C + z / B with its own C and z. So the line of a method shows, at every bandwidth, the best of
what it has found at any; simulated networks, which are not of this form, are shown as found. Writes
docs/results/codesign_bandwidth.md.
"""

import dataclasses
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

import ddlopt
from benchmarks.harness import Benchmark, Option, shown
from ddlopt.frontier.codesign.reconfigured.reconfigured import OcsReconfig, SipMl
from ddlopt.instances.generators.codesign import generate
from ddlopt.models.codesign import CodesignInstance, CodesignPlan, job_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import DdloptError, NoSolutionError
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.codesign.data_parallel import data_parallel
from ddlopt.solvers.codesign.switches import Chosen, FatTree, OversubscribedFatTree, best_on_switches, time_on
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.references import Switched

HEAD = (
    "# Co-design: iteration time against bandwidth\n\n"
    "Plans beside other networks ([codesign.md](../families/codesign.md#other-networks)).\n\n"
)
JOBS = ("dlrm", "candle", "bert", "ncf", "resnet50", "vgg16")
DEGREE = 4
RATIO = FatTree().cost_ratio
PLANS = {"joint": 2.5, "alternating": 1.0, "data-parallel": 1.0, "expander": 1.0}
"""Methods that give plans, and how many times the limit they get."""
STARTED = ("joint", "alternating")
SWITCH_SHARE = 10.0
"""The same for one program of strategies on a switch, of which most end long before."""
SIMULATION_SHARE = 10.0
"""The same for a simulation."""
CLOSE = 2e-3
"""Relative gap within which strategies count as the best."""
SIMULATED = (SipMl(), OcsReconfig())
LINES = {
    "joint": ("#1f6fb4", "-", 2.4),
    "alternating": ("#d95f02", "-", 1.4),
    "data-parallel": ("#3a9d5d", "-", 1.4),
    "expander": ("#8c4a9e", "-", 1.4),
    "ideal-switch": ("#111111", "--", 1.4),
    "oversubscribed-fat-tree": ("#7f7f7f", ":", 1.4),
    "fat-tree": ("#c0392b", "--", 1.8),
    "sip-ml": ("#17a2b8", "-.", 1.2),
    "ocs-reconfig": ("#b8860b", "-.", 1.2),
}


@dataclass
class Sweep:
    """Times of one job on ``servers`` servers: by method, then bandwidth; None where a method has no answer.

    ``compute_s`` is the least compute time seen on a switch, ``gap`` the largest that is left of a time on a switch.
    ``kept_s`` is the fat-tree's time with the joint plan's strategies, ``plain_s`` with data parallel ones.
    """

    job: str
    servers: int
    gigabits: tuple[int, ...]
    times: dict[str, dict[int, float | None]] = field(default_factory=dict)
    compute_s: float = 0.0
    kept_s: dict[int, float] = field(default_factory=dict)
    plain_s: dict[int, float] = field(default_factory=dict)
    gap: float = 0.0


Cost = tuple[float, float]
"""Compute time and bytes on the busiest link: all that bandwidth acts on."""


def time_of(instance: CodesignInstance, costs: list[Cost]) -> float | None:
    return min((instance.iteration_time_s(*cost) for cost in costs), default=None)


def sweep(job: str, servers: int, gigabits: tuple[int, ...], limit_s: float) -> Sweep:
    instances = {
        gigabit: generate("job", job=job, servers=servers, degree=DEGREE, gigabit_per_s=float(gigabit))
        for gigabit in gigabits
    }
    found = Sweep(job, servers, gigabits)
    chosen = _switches(found, instances, limit_s)
    _plans(found, instances, limit_s)
    usual = _data_parallel(next(iter(instances.values())))
    for gigabit, instance in instances.items():
        tree = FatTree().network(servers)
        if usual is not None:
            found.plain_s[gigabit] = time_on(tree, instance, usual)
        candidates = list(dict.fromkeys([chosen[gigabit], *([usual] if usual else [])]))
        for method in SIMULATED:
            best = _simulated(method, instance, candidates, limit_s)
            found.times.setdefault(method.name, {})[gigabit] = best
    return found


class Lines:
    """Iteration time on a switch, with the best strategies, as a function of u, the inverse of a link's bandwidth.

    Any strategies take C + u z: the least of such lines is concave, so that between two values that are proven nothing
    lies below the chord. That saves most of the programs.
    """

    def __init__(self, instance: CodesignInstance, limit_s: float) -> None:
        self.instance, self.limit_s = instance, limit_s
        self.choices: list[tuple[int, ...]] = []
        self.jobs: list[TopologyInstance | None] = []
        self.costs: list[Cost] = []
        self.proven: dict[float, float] = {}

    def add(self, u: float, network: Switched) -> Chosen:
        """Solve at u; notes the strategies, and what is proven if the network is the ideal switch."""
        slower = 1 / (u * self.instance.link_bandwidth_bytes_per_s)
        there = dataclasses.replace(network, links_per_port=slower)
        best = best_on_switches(self.instance, there, Limits(time_s=self.limit_s, gap=CLOSE / 2))
        if best.choices not in self.choices:
            self.choices.append(best.choices)
            self.jobs.append(job_of(self.instance, best.choices))
            compute_s = tables_of(self.instance).compute_of(best.choices)
            self.costs.append((compute_s, Switched().busiest_bytes(self.jobs[-1])))
        if network == Switched():
            self.proven[u] = best.proposed.bound_s or 0.0
        return best

    def best(self, u: float) -> int:
        """Which of the strategies known are the fastest on the ideal switch at u."""
        return min(range(len(self.costs)), key=lambda place: self.costs[place][0] + u * self.costs[place][1])

    def time_s(self, u: float) -> float:
        compute_s, z = self.costs[self.best(u)]
        return compute_s + u * z

    def bound_s(self, u: float) -> float:
        known = sorted(self.proven.items())
        return float(np.interp(u, *zip(*known, strict=True)))

    def explore(self, targets: list[float]) -> None:
        """Solve where it is least known, until all targets are known within CLOSE or solved."""
        for u in (min(targets), max(targets)):
            self.add(u, Switched())
        while left := [u for u in targets if u not in self.proven]:
            u = max(left, key=lambda each: 1 - self.bound_s(each) / self.time_s(each))
            if 1 - self.bound_s(u) / self.time_s(u) <= CLOSE:
                break
            self.add(u, Switched())


def _switches(found: Sweep, instances: dict[int, CodesignInstance], limit_s: float) -> dict[int, tuple[int, ...]]:
    """Fill in the switches; gives the ideal one's strategies at each bandwidth."""
    inverse = {g: 1 / instance.link_bandwidth_bytes_per_s for g, instance in instances.items()}
    lines = Lines(instances[max(instances)], SWITCH_SHARE * limit_s)
    lines.explore([u * ratio for u in inverse.values() for ratio in (1.0, RATIO)])
    narrow = OversubscribedFatTree().network(found.servers)

    def narrowed(u: float) -> float:
        return min(c + u * narrow.busiest_bytes(job) for (c, _), job in zip(lines.costs, lines.jobs, strict=True))

    gaps = [1 - lines.bound_s(u * ratio) / lines.time_s(u * ratio) for u in inverse.values() for ratio in (1.0, RATIO)]
    for u in sorted(inverse.values()):
        bound = lines.bound_s(u)
        if 1 - bound / narrowed(u) > CLOSE:
            bound = max(bound, lines.add(u, narrow).proposed.bound_s or 0.0)
        gaps.append(1 - bound / narrowed(u))
    found.gap = max(gaps)
    found.times |= {
        "ideal-switch": {g: lines.time_s(u) for g, u in inverse.items()},
        "fat-tree": {g: lines.time_s(RATIO * u) for g, u in inverse.items()},
        "oversubscribed-fat-tree": {g: narrowed(u) for g, u in inverse.items()},
    }
    found.compute_s = min(c for c, _ in lines.costs)
    return {g: lines.choices[lines.best(u)] for g, u in inverse.items()}


def _plans(found: Sweep, instances: dict[int, CodesignInstance], limit_s: float) -> None:
    """Fill in the methods that give plans; those that can begin with what they had at the bandwidth before."""
    for name, times in PLANS.items():
        plans: list[tuple[Cost, tuple[int, ...]]] = []
        last: CodesignPlan | None = None
        for gigabit, instance in reversed(instances.items()):
            start = None if last is None or name not in STARTED else _moved(last, instance)
            try:
                result = ddlopt.solve(instance, name, time_limit=times * limit_s, start=start)
            except DdloptError as problem:
                print(f"{found.job} n={found.servers} {gigabit} Gb/s, {name}: {problem}", file=sys.stderr, flush=True)
                continue
            if isinstance(result.solution, CodesignPlan):
                last = result.solution
                load = float(result.details.get("max_link_load_bytes", 0.0))
                plans.append(((float(result.details["compute_s"]), load), last.choices(instance)))
        found.times[name] = {
            gigabit: time_of(instance, [cost for cost, _ in plans]) for gigabit, instance in instances.items()
        }
        if name == "joint" and plans:
            for gigabit, instance in instances.items():
                choices = min(plans, key=lambda plan: instance.iteration_time_s(*plan[0]))[1]
                found.kept_s[gigabit] = time_on(FatTree().network(found.servers), instance, choices)


def _moved(plan: CodesignPlan, instance: CodesignInstance) -> CodesignPlan:
    """The same plan for an instance that differs in its bandwidth only."""
    return plan.model_copy(update={"instance": instance.name, "instance_digest": None})


def _data_parallel(instance: CodesignInstance) -> tuple[int, ...] | None:
    try:
        return data_parallel(instance)
    except NoSolutionError:
        return None


def _simulated(
    method: SipMl | OcsReconfig, instance: CodesignInstance, candidates: list[tuple[int, ...]], limit_s: float
) -> float | None:
    clock = Clock(Limits(time_s=SIMULATION_SHARE * limit_s), None)
    try:
        return float(method.simulate(instance, candidates, 0, clock)["objective"])
    except NoSolutionError:
        return None


def ratio(one: float | None, other: float | None) -> str:
    return "–" if one is None or other is None else f"{one / other:.2f}"


def rows_of(sweeps: list[Sweep]):
    """Tables of the sweeps on one number of servers."""
    servers, gigabits = sweeps[0].servers, sweeps[0].gigabits
    yield f"n = {servers}, d = {DEGREE}: milliseconds of an iteration, Gb/s a link."
    for each in sweeps:
        for g in gigabits:
            times = {name: each.times[name][g] for name in LINES}
            yield {"job": each.job, "Gb/s": g, **{name: shown(t and 1e3 * t) for name, t in times.items()}}
    yield (
        f"n = {servers}: time on the fat-tree of similar cost over that of the joint plan. In brackets what no "
        "topology exceeds, the fat-tree over the ideal switch."
    )
    for each in sweeps:
        tree, joint, ideal = (each.times[name] for name in ("fat-tree", "joint", "ideal-switch"))
        cells = {f"{g} Gb/s": f"{ratio(tree[g], joint[g])} ({ratio(tree[g], ideal[g])})" for g in gigabits}
        yield {"job": each.job, **cells}
    yield f"n = {servers}: {summary(sweeps)}"
    loose = [f"`{each.job}` {100 * each.gap:.1f} %" for each in sweeps if each.gap > 1.05 * CLOSE]
    if loose:
        yield f"n = {servers}: largest gap left of a time on a switch: {', '.join(loose)}."


def summary(sweeps: list[Sweep]) -> str:
    """The largest ratio of the fat-tree to the plan, and what becomes of it if strategies do not adapt."""

    def largest(fat_tree: str) -> str:
        points = []
        for each in sweeps:
            for g in each.gigabits:
                slow = {"best": each.times["fat-tree"], "kept": each.kept_s, "plain": each.plain_s}[fat_tree].get(g)
                fast = each.times["data-parallel" if fat_tree == "plain" else "joint"][g]
                if slow is not None and fast is not None:
                    points.append((slow / fast, each.job, g))
        value, job, g = max(points)
        return f"{value:.2f} (`{job}`, {g} Gb/s)"

    return (
        f"largest ratio {largest('best')}; {largest('kept')} if the fat-tree kept the joint plan's strategies; "
        f"{largest('plain')} with data parallel strategies on both, TopologyFinder's links against the fat-tree."
    )


def picture(sweeps: list[Sweep]) -> Figure:
    figure = Figure(figsize=(13, 7.6), layout="constrained")
    for place, each in enumerate(sweeps):
        axes = figure.add_subplot(2, 3, place + 1)
        for name, (colour, style, width) in LINES.items():
            points = [(g, 1e3 * t) for g, t in each.times[name].items() if t is not None]
            if points:
                axes.plot(*zip(*points, strict=True), style, color=colour, lw=width, marker="o", ms=3, label=name)
        axes.axhline(1e3 * each.compute_s, color="#bbbbbb", lw=1, zorder=0)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(each.gigabits, [str(g) for g in each.gigabits], minor=False)
        axes.set_xticks([], minor=True)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_title(f"{each.job}, n = {each.servers}, d = {DEGREE}", fontsize=10)
        if place >= 3:
            axes.set_xlabel("Gb/s a link")
        if place % 3 == 0:
            axes.set_ylabel("milliseconds an iteration")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=9)
    return figure


def bandwidth(asked):
    """Tables for each number of servers."""
    sizes = sorted(asked.servers)
    tasks = [(job, n, tuple(asked.gigabits), asked.time_limit) for n in reversed(sizes) for job in asked.jobs]
    with ProcessPoolExecutor(asked.processes) as pool:
        sweeps = list(pool.map(sweep, *zip(*tasks, strict=True)))
    for n in sizes:
        here = [each for each in sweeps if each.servers == n]
        yield from rows_of(here)
        name = "codesign_bandwidth.png" if n == sizes[-1] else f"codesign_bandwidth_n{n}.png"
        asked.save(lambda here=here: picture(here), name)


BENCH = Benchmark(
    bandwidth,
    page="codesign_bandwidth",
    head=HEAD,
    jobs=Option(list(JOBS), choices=JOBS, quick=["vgg16"]),
    servers=Option([16, 128], quick=[16]),
    gigabits=Option([10, 25, 40, 100, 200], "Gb/s of a link", quick=[10, 200]),
    time_limit=Option(4.0, "seconds for a method at a bandwidth; joint: 2.5 ×", quick=0.5),
    processes=Option(2, "sweeps at the same time"),
)
