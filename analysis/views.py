"""What tables and pictures must know of a family: which sizes to print, and how to draw a solution."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ddlopt.instances.index import Problem
from ddlopt.models.contracts import Instance

Draw = Callable[[Any, Any, Any], None]
"""Called with Matplotlib axes, an instance and a solution."""


@dataclass(frozen=True)
class View:
    """``sizes``: attributes of an instance by column header, of a tuple its length; ``draw``: a picture, or None."""

    sizes: Mapping[str, str]
    draw: Draw | None = None


def _drawn_by(family: str) -> Draw:
    """``draw`` of ``ddlopt.analysis.pictures.<family>``, imported when something is drawn: Matplotlib is slow."""

    def draw(axes: Any, instance: Any, solution: Any) -> None:
        import_module(f"ddlopt.analysis.pictures.{family}").draw(axes, instance, solution)

    return draw


_VIEWS = {
    "topology": View({"n": "servers", "d": "degree"}, _drawn_by("topology")),
    "scheduling": View({"jobs": "jobs", "servers": "server_count", "slots": "slots"}, _drawn_by("scheduling")),
    "codesign": View({"n": "servers", "d": "degree", "layers": "layers"}, _drawn_by("codesign")),
    "deployment": View({"problem": "problem", "size": "size"}, _drawn_by("deployment")),
    "aggregation": View({"problem": "problem", "size": "size"}, _drawn_by("aggregation")),
    "gossip": View({"problem": "problem", "size": "size"}, _drawn_by("gossip")),
    "compression": View({"problem": "problem", "size": "size"}, _drawn_by("compression")),
}


def view(family: str) -> View:
    """The view of a family; one without sizes and pictures where none is given."""
    return _VIEWS.get(family, View({}))


def sizes(instance: Instance) -> dict[str, Any]:
    """Sizes of an instance by column header."""
    values = {header: getattr(instance, attribute) for header, attribute in view(instance.family).sizes.items()}
    return {header: len(value) if isinstance(value, tuple) else value for header, value in values.items()}


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem(
            "topology", "links, rings and routes of one training job", "servers", "ports of servers, bandwidth of links"
        ),
        Problem(
            "scheduling",
            "workers, servers and rings of jobs over time",
            "jobs",
            "resources of servers, bandwidth between them, slots of time",
        ),
        Problem(
            "compression/sfb",
            "which gradients are sent as sufficient factors",
            "operators",
            "bandwidth against computing again; budgets of memory and computation",
        ),
        Problem(
            "compression/timeline",
            "which gradients to compress, how, and when to send",
            "gradients",
            "the accelerator, the processor and the links, each one gradient at a time; a budget of error or time",
        ),
        Problem("compression/levels", "how far each gradient is compressed", "gradients", "a budget of error or time"),
        Problem(
            "codesign",
            "how layers are split, with links, rings and routes",
            "servers",
            "memory of servers, their ports, bandwidth of links",
        ),
        Problem(
            "deployment/plan",
            "where groups of operators run on unlike devices",
            "groups",
            "memory and speed of devices, bandwidth between them",
        ),
        Problem(
            "deployment/partition",
            "stages of a network on a pipeline of devices",
            "nodes",
            "memory of accelerators, bandwidth between them",
        ),
        Problem("deployment/strategies", "how every operator is split over devices", "nodes", "memory of devices"),
        Problem("aggregation/hot", "which parameters switches aggregate", "parameters", "registers of switches"),
        Problem(
            "aggregation/registers",
            "which register array each parameter is in",
            "parameters",
            "capacity of register arrays",
        ),
        Problem(
            "aggregation/tree",
            "which switches of a tree aggregate",
            "switches",
            "how many switches may aggregate, for how many jobs",
        ),
        Problem(
            "aggregation/graph",
            "where jobs are aggregated, and by which routes",
            "nodes",
            "bandwidth of links, aggregators of switches",
        ),
        Problem(
            "aggregation/slots",
            "how jobs share the memory of switches",
            "jobs",
            "memory of switches, bandwidth of links",
        ),
        Problem("aggregation/table", "which entries lookup tables for sums have", "operands", "memory for entries"),
        Problem(
            "gossip/weights",
            "with which weights neighbours average",
            "nodes",
            "the edges there are, and a budget of rates where there is one",
        ),
        Problem("gossip/matchings", "which matchings average, and how often", "nodes", "a budget of matchings a round"),
        Problem("gossip/period", "after how many steps workers average", "workers", "the error to be reached"),
        Problem(
            "gossip/exchange",
            "after which steps a worker sends its model",
            "steps",
            "a budget of sends or of staleness",
        ),
        Problem("gossip/circulant", "which circulant graph averages fastest", "workers", "links of each worker"),
    )
}
"""All problems by name, in the order in which they are listed."""


def problem_of(instance: Instance) -> str:
    """Name of an instance's problem: the family, and the problem within it where there are several."""
    return f"{instance.family}/{instance.problem}" if hasattr(instance, "problem") else instance.family


def size_of(instance: Instance) -> int:
    """How many of what its problem counts."""
    first = next(iter(sizes(instance).values()))
    return first if isinstance(first, int) else int(instance.size)  # type: ignore[attr-defined]
