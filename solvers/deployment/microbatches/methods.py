"""The methods for the problem ``microbatches``."""

from importlib import import_module

from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.solvers import chain
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, formulation
from ddlopt.solvers.wrappers.warm_started import WarmStarted

ROOM = "deployment/microbatches"


def best(instance: MicroBatchInstance, solver: str) -> Method:
    """What links of the chain say; else a search, and then starts by tick where they cover the instance."""
    return chain.exact(ROOM, instance, solver, search_and_starts)


def search_and_starts(instance: MicroBatchInstance, solver: str) -> Method:
    """The search over rules of lists, then the program of starts where it covers the instance."""
    search: Method = import_module("ddlopt.solvers.deployment.microbatches.search").OrderSearch()
    starts = formulation(ROOM, "counted-starts", "formulations.counted_starts:CountedStarts")(solver)
    return search if starts.refuses(instance) else WarmStarted("exact", "deployment", search, lambda _: starts)


ENTRIES = entries(
    ROOM,
    ("counted-starts", "exact", "starts of passes by tick, with micro-batches counted", "models:formulations.counted_starts:CountedStarts"),
    ("list-scheduling", "heuristic", "greedy list scheduling with several rules", "search:OrderSearch", {"tries": 0}),
    ("order-search", "heuristic", "our search over rules of list scheduling", "search:OrderSearch"),
    ("gpipe", "heuristic", "all F, then all B", "handcrafted:GPipe"),
    ("1f1b", "heuristic", "1F1B", "handcrafted:OneFOneB"),
    ("interleaved-1f1b", "heuristic", "1F1B with several chunks a device, as in Megatron-LM", "handcrafted:Interleaved"),
    ("zb-h1", "heuristic", "ZB-H1: W fills holes, in the memory of 1F1B", "zero_bubble:ZeroBubble"),
    ("zb-h2", "heuristic", "ZB-H2: no bubbles with unit times, in twice the memory", "zero_bubble:ZeroBubble", {"doubled": True}),
    ("zb-v", "heuristic", "ZB-V: two chunks a device in a V, no bubbles with unit times", "zero_bubble_v:ZeroBubbleV"),
    ("dualpipe", "heuristic", "DualPipe: two chains in opposite directions", "handcrafted:DualPipe"),
)  # fmt: skip
