"""Named sets of bundled instances."""

from dataclasses import dataclass

from ddlopt.analysis.bench.tasks import matching


@dataclass(frozen=True)
class Suite:
    """Instances by pattern, and the methods that answer them where none are named."""

    title: str
    patterns: tuple[str, ...]
    methods: tuple[str, ...] = ("auto", "all-heuristics")


SUITES = {
    "quick": Suite(
        "a dozen small instances of all families, for a first look",
        (
            "topology/tiny-n4-*",
            "topology/all-to-all-n6-d2",
            "scheduling/tiny-gangs",
            "scheduling/tiny-star",
            "scheduling/tiny-pollux",
            "compression/sfb-random-n60",
            "compression/hipress-vgg19-n16-budget",
            "codesign/tiny-tables-n4-d2",
        ),
    ),
    "default": Suite(
        "some hundred instances of all families that methods tell apart",
        (
            "topology/all-to-all-*",
            "topology/danoint",
            "topology/hybrid-*",
            "topology/random-*",
            "topology/*-n12-d4",
            "topology/*-n16-d4",
            "topology/dlrm-n128-d4",
            "scheduling/*-j*",
            "compression/*",
            "codesign/tiny-*",
            "codesign/*-n12-d4",
            "codesign/*-n16-d4",
        ),
    ),
}
"""By name; what is no name is a pattern of library names, or a file."""


def members(asked: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Instances of suites, patterns and files, and the methods that they suggest.

    Raises
    ------
    UnknownNameError
        If one of them is nothing of the kind, or empty.
    """
    patterns: list[str] = []
    methods: dict[str, None] = {}
    for name in asked:
        suite = SUITES.get(name)
        patterns += suite.patterns if suite else (name,)
        methods |= dict.fromkeys(suite.methods if suite else ("auto",))
    return matching(patterns), tuple(methods)
