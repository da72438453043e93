"""What extensions of the models change, family by family: the optimum, each heuristic's gap, and which are best.

The same jobs, networks or workers without and with an option of the instance. ``optimum`` is the best that is found
with it over that without; for each heuristic its gap to the best that is found for the same instance, without and with
(means over seeds or networks; "–" where it refuses what it does not know). ``tau`` compares the order of the heuristics
that know both (Kendall), and ``best`` names the two nearest to the optimum with the extension. The first method of a
family is the reference, with the largest gap to its own bound in ``open``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from scipy.stats import kendalltau

from benchmarks.harness import Benchmark, Option, solved
from ddlopt.instances.generators import generate
from ddlopt.models.errors import NotApplicableError

Options = Mapping[str, Any]
HEAD = """# What extensions of the models change

The same jobs, networks or workers without and with an option of the instance: `optimum` is the best that is found
with it over that without, and of each heuristic the gap to the best that is found for the same instance, without →
with it, means over three seeds or networks ("–": it refuses what it does not know). `tau` compares the order of the
heuristics that know both (Kendall), `best` names the two nearest to the optimum with the extension, `open` is the
largest gap of the reference (`exact`, `best-period`) to its own bound. What each option models, and what is still
left out, says the page of its problem: [scheduling](../families/scheduling.md),
[compression](../families/compression/timeline/findings.md#lanes),
[slots of aggregation](../families/aggregation/slots.md),
[gossip](../families/gossip/period.md). Objectives that are others altogether are compared there: [finish-time
fairness](../families/scheduling/findings.md#how-fair-a-schedule-can-be), [forward passes that
wait](../families/compression/forward.md#what-was-found).

Nearest to the optimum are the methods that know the extension, and few know it: of the scheduling heuristics one or two
for each. Those that know both keep their order, but not their distance: switches by themselves lose about two to four
times as much where packets are late, and less where few jobs are there at once.

"""
_TYPES = "v100:1,p100:0.45,k80:0.2"
_LATE = {"slow_chance": 0.01, "slow_us": 100.0, "loss": 1e-3}


@dataclass(frozen=True)
class Family:
    """Cases, what is added to them, and who answers; of the methods the first one is the reference."""

    family: str
    kind: str
    cases: Sequence[Options]
    extensions: Mapping[str, Options]
    methods: Sequence[str]
    maximised: bool = False


FAMILIES = {
    "scheduling": Family(
        "scheduling",
        "elastic",
        [{"seed": seed, "jobs": 12, "slots": 12, "gpus": 12} for seed in (1, 2, 3)],
        {
            "types of accelerators": {"types": _TYPES},
            "a change costs 300 s": {"change_s": 300.0},
            "runs of 3 slots at least": {"least_run_slots": 3},
        },
        ("exact", "job-plans", "type-windows", "kept-runs", "gadget", "lp-guided", "optimus", "las", "srtf"),
        maximised=True,
    ),
    "compression": Family(
        "compression",
        "network",
        [
            {"model": model, "compressors": (compressor,), "intra": "pcie", "cost_model": "espresso"}
            for model, compressor in (("vgg16", "random_k:0.01/cpu"), ("bert-base", "random_k:0.01/inter/cpu"))
        ],
        {"lanes for CPUs": {"lanes": True}},
        ("exact", "lane-search", "espresso", "espresso:thresholds=false", "all", "none"),
    ),
    "aggregation": Family(
        "aggregation",
        "slots",
        [
            {"seed": seed, "jobs": 24, "racks": 4, "memory": 0.2, "servers": 0.5, "spread": 0.8, "whole": True}
            for seed in (1, 2, 3)
        ],
        {
            "late and lost packets": _LATE,
            "buckets of 25 MB": {"bucket_mb": 25.0},
            "12 jobs at once": {"at_once": 12.0},
        },
        (
            "exact",
            "slot-prices",
            *(
                f"slot-rule:rule={rule}"
                for rule in ("square-root", "gradient", "max-min", "equal", "demand", "first-come")
            ),
        ),
    ),
    "gossip": Family(
        "gossip",
        "period",
        [{"ratio": ratio, "whole": True} for ratio in (4.0, 40.0)],
        {"slow steps, 1 in 100": {"slow_chance": 0.01}, "workers up to twice as slow": {"spread": 1.0}},
        ("best-period", "adacomm", "synchronous"),
    ),
}


@dataclass(frozen=True)
class _Found:
    """Best value, the reference's own gap, and each heuristic's gap to the best; None where it refuses."""

    best: float
    open: float
    gaps: Mapping[str, float | None]


def _answers(family: Family, case: Options, more: Options, asked: Any) -> _Found:
    known = dict(case) | dict(more)
    instance = generate(family.family, family.kind, known.pop("seed", 0), **known)
    found = {}
    for name in family.methods:
        try:
            found[name] = solved(name, instance, asked.limits)
        except NotApplicableError:
            found[name] = None
    values = {name: result.objective for name, result in found.items() if result is not None}
    best = max(values.values()) if family.maximised else min(values.values())
    gaps = {name: abs(values[name] / best - 1) if name in values else None for name in family.methods[1:]}
    return _Found(best, found[family.methods[0]].gap, gaps)


def _table(family: Family, asked: Any):
    cases = family.cases[: asked.cases]
    plain = [_answers(family, case, {}, asked) for case in cases]
    for extension, more in family.extensions.items():
        extended = [_answers(family, case, more, asked) for case in cases]
        pairs = {name: tuple(_mean(each, name) for each in (plain, extended)) for name in family.methods[1:]}
        both = [each for each in pairs.values() if None not in each]
        order = sorted((after, name) for name, (_, after) in pairs.items() if after is not None)
        tau = kendalltau(*zip(*both, strict=True)).statistic if len(both) > 1 else math.nan
        yield {
            "extension": extension,
            "optimum": f"{mean(new.best / old.best for old, new in zip(plain, extended, strict=True)):.3f}",
            **{_short(name): " → ".join(map(_percent, pair)) for name, pair in pairs.items()},
            "tau": "–" if math.isnan(tau) else f"{tau:.2f}",
            "best": ", ".join(_short(name) for _, name in order[:2]),
            "open": f"{max(each.open for each in [*plain, *extended]):.2%}",
        }


def _mean(found: Sequence[_Found], name: str) -> float | None:
    gaps = [each.gaps[name] for each in found]
    return None if None in gaps else mean(gaps)


def _short(name: str) -> str:
    return name.removeprefix("slot-rule:rule=")


def _percent(gap: float | None) -> str:
    return "–" if gap is None else f"{gap:.1%}"


def scheduling(asked):
    """Types of accelerators, seconds that a change loses, runs of several slots: gaps of utility."""
    yield from _table(FAMILIES["scheduling"], asked)


def compression(asked):
    """Processors that compress beside the wire: gaps of the step's time."""
    yield from _table(FAMILIES["compression"], asked)


def aggregation(asked):
    """Packets, buckets and jobs that come and go: gaps of weighted time."""
    yield from _table(FAMILIES["aggregation"], asked)


def gossip(asked):
    """Stragglers: gaps of the time to a target."""
    yield from _table(FAMILIES["gossip"], asked)


BENCH = Benchmark(
    scheduling, compression, aggregation, gossip,
    page="extensions",
    head=HEAD,
    time_limit=Option(30.0, quick=2.0),
    gap=Option(1e-3),
    cases=Option(3, "seeds or networks of each family", quick=1),
)  # fmt: skip
