"""Named sets of bundled instances, and the methods that answer them."""

from collections.abc import Mapping
from dataclasses import dataclass

from ddlopt.analysis.bench import sets
from ddlopt.analysis.bench.tasks import matching


@dataclass(frozen=True)
class Part:
    """Of one family: patterns of instances' names, and methods."""

    instances: tuple[str, ...]
    methods: tuple[str, ...] = ("auto", "all-heuristics")


@dataclass(frozen=True)
class Suite:
    """What it is for, and a part a family."""

    title: str
    parts: Mapping[str, Part]

    def members(self) -> dict[str, tuple[str, ...]]:
        """The methods by library name of the instance."""
        return {
            name: part.methods
            for family, part in self.parts.items()
            for name in matching(f"{family}/{pattern}" for pattern in part.instances)
        }


QUICK = Suite(
    "some small instances of all families, for a first look: a minute",
    {
        "topology": Part(("tiny-n4-d2*", "all-to-all-n6-d2")),
        "scheduling": Part(("tiny-gangs", "tiny-star", "tiny-pollux")),
        "compression": Part(("sfb-random-n60", "hipress-vgg19-n16-budget")),
        "codesign": Part(("tiny-tables-n4-d2",)),
        "deployment": Part(("tiny-g2-m2-s1",)),
        "aggregation": Part(("tree-soar-n7-k2", "slots-tiny-n3")),
        "gossip": Part(("cvx-n8-averaging",)),
        "cluster": Part(("placement-ring-10",)),
    },
)

DEFAULT = Suite(
    "some 130 instances of all families that methods tell apart, exact methods beside the heuristics of papers",
    {
        "topology": Part(
            (
                *("all-to-all-n[689]-d2", "all-to-all-n8-d3", "all-to-all-n10-d2", "all-to-all-n12-d[34]"),
                *("all-to-all-n16-d[24]", "danoint", "hybrid-*", "random-n8-d2-s1", "tiny-n5-d3-duplex"),
                *("dlrm-n12-d4*", "dlrm-n16-d4", "dlrm-stress-*", "ncf-n1[26]-d4", "vgg16-n12-d4"),
                *("bert-n128-d4", "dlrm-n128-d4*", "ncf-n128-d4"),
            ),
            (
                *("auto", "link-exchange", "topology-finder", "topology-finder:variant=released"),
                *("ocs-greedy", "expander"),
            ),
        ),
        "scheduling": Part(
            (
                *("all-or-nothing-*", "bursty-*", "capped-*", "caps-j11-*", "completion-*", "contended-*"),
                *("deadlines-*", "departures-half", "departures-j96-*", "elastic-j20-*", "elastic-j100-*"),
                *("elastic-j200-*", "energy-*", "fair-*", "gangs-contention-j12-*", "gangs-j38-*", "gangs-j80-*"),
                *("leaf-spine-*", "loss-curve-*", "makespan-*", "max-min-*", "pd-ors-like-*-s20", "random-network-*"),
            ),
            (
                *("auto", "job-plans", "lp-guided", "fair-shares", "gang-search", "gadget"),
                *("sjf-bco", "optimus", "drf", "srtf", "las", "fifo"),
            ),
        ),
        "compression": Part(
            (
                *("sfb-vgg16-b4-w16-25g", "sfb-vgg19-b3-w2-tag", "sfb-gpt2-b4-w2-10g", "sfb-bert-base-b32-w16-10g"),
                *("sfb-bert-base-*-memory", "sfb-resnet50-*-memory", "sfb-transformer-*-memory"),
                *("sfb-random-n300-memory", "bert-base-n4x8-*", "bert-base-n8-*", "bert-base-n8x8-*-error"),
                *("bert-large-n8x8-nvlink-25g-budget", "espresso-resnet101-*", "espresso-bert-base-*-budget"),
                *("gpt2-n4x8-*", "hipress-vgg19-*", "measured-digits-w8-1g", "resnet50-n64-*", "resnet101-n4x4-*"),
                *("transformer-*-budget", "vgg16-n8x8-*-budget", "levels-bert-powersgd-25g", "levels-gpt2-qsgd-alone"),
                *("levels-measured-digits-top-k", "levels-random-i100-error", "levels-resnet50-top-k"),
                *("levels-vgg16-powersgd-error", "levels-vgg16-top-k-alone"),
            ),
            (
                *("auto", "parametric-cut", "tag", "poseidon", "factor-rule"),
                *("espresso", "espresso:thresholds=false", "secopa", "lgreco"),
                *("convex-levels", "water-filling", "uniform", "all", "none"),
            ),
        ),
        "codesign": Part(
            (
                *("tiny-drawn-*", "tiny-factors-*", "tiny-overlap-*", "*-n12-d4"),
                *("candle-n16-d4", "dlrm-n16-d4", "vgg16-n16-d4", "dlrm-n128-d4", "ncf-n128-d4"),
            ),
            (
                *("auto", "alternating", "alternating-released", "alternating:strategies=exact,topology=exact"),
                *("data-parallel", "expander"),
            ),
        ),
        "deployment": Part(
            (
                *("tiny-g4-*", "vgg19-testbed", "resnet101-testbed", "bert-small-testbed", "inception-v3-testbed"),
                *("transformer-base-two-machines", "bert-large-drawn-s3"),
            ),
            (
                *("auto", "plan-search", "tag", "sufficient-factors:search=tag", "mcmc"),
                *("data-parallel", "data-parallel:split=speed"),
                *("heft", "m-etf", "m-sct"),
            ),
        ),
        "aggregation": Part(
            (
                *("hot-jobs3-*", "hot-racks4-*", "registers-n40-r8-rows1", "registers-n60-*", "tree-power-*"),
                *("tree-congestion-n255-*", "tree-jobs-n127-j4", "fat-tree-k4-*", "leaf-spine-8x4-rates"),
                *("torus-4x4-*", "abilene-congestion", "slots-racks-whole-n24", "slots-atp-n40", "table-bfloat16"),
            ),
            (
                *("auto", "level", "top", "max", "none", "takahashi-matsuyama", "graph-search"),
                *("slot-rule:rule=equal", "slot-rule:rule=square-root"),
                *("heat-round-robin", "register-search", "table-even"),
            ),
        ),
        "gossip": Part(
            ("cvx-n8-*", "nsfnet-*", "random-n100-*", "torus-n64-*", "geometric-*"),
            ("auto", "fastest-weights:goal=chain", "metropolis", "max-degree", "best-constant", "uniform"),
        ),
        "cluster": Part(("placement-*",), ("auto", "gang-exchange", "kueue", "slurm-block", "hived-cells")),
    },
)

LIBRARY = Suite(
    "all bundled instances, by the methods of the default suite",
    {family: Part(("*",), part.methods) for family, part in DEFAULT.parts.items()},
)

SUITES = {"quick": QUICK, "default": DEFAULT, "library": LIBRARY}
"""By name; what is no name is a pattern of library names, or a file."""


def members(asked: list[str]) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Instances of suites, fixed sets, patterns and files, and by instance the methods that are suggested.

    Raises
    ------
    UnknownNameError
        If one of them is nothing of the kind, or empty.
    """
    methods: dict[str, tuple[str, ...]] = {}
    for name in asked:
        suite = SUITES.get(name)
        if name in sets.TITLES:
            found = {each: DEFAULT.parts.get(each.split("/")[0], Part(())).methods for each in sets.members(name)}
        else:
            found = suite.members() if suite else dict.fromkeys(matching([name]), ("auto",))
        for instance, suggested in found.items():
            methods[instance] = tuple(dict.fromkeys((*methods.get(instance, ()), *suggested)))
    return list(methods), methods
