"""The methods for the problem ``jobs``."""

from ddlopt.models.cluster.jobs.instance import JobsInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, formulation, heuristic

ROOM = "cluster/jobs"
_FEW_JOBS = 8
"""That orders of starts are gone through of; of more, what is left open by then is most of them."""

_start_order = heuristic(ROOM, "start_order:StartOrder")
_list_exchange = heuristic(ROOM, "list_exchange:ListExchange")
_server_flows = formulation(ROOM, "server-flows", "formulations.server_flows:ServerFlows")
_slot_widths = formulation(ROOM, "slot-widths", "formulations.slot_widths:SlotWidths")


def best(instance: JobsInstance, solver: str) -> Method:
    """``start-order``; ``list-exchange`` where rigid jobs are more than that goes through."""
    if instance.mode == "rigid" and len(instance.jobs) > _FEW_JOBS:
        return _list_exchange(solver)
    return _start_order(solver)


def milp(instance: JobsInstance, solver: str) -> Method:
    """The integer program of the instance's mode."""
    return (_server_flows if instance.mode == "rigid" else _slot_widths)(solver)


ENTRIES = entries(
    ROOM,
    ("start-order", "exact", "jobs by their starts, or slot by slot, without what is dominated", "start_order:StartOrder"),
    ("server-flows", "exact", "rigid jobs as servers that go from job to job, an integer program", "models:formulations.server_flows:ServerFlows"),
    ("slot-widths", "exact", "a width for each job in each slot, an integer program", "models:formulations.slot_widths:SlotWidths"),
    ("list-exchange", "heuristic", "our search for many rigid jobs: order and widths change, and a relaxation bounds", "list_exchange:ListExchange"),
    ("sequential", "heuristic", "widths first, then the best schedule with them", "sequential:Sequential"),
    ("list-jobs", "heuristic", "the best of twelve lists", "lists:ListJobs"),
)  # fmt: skip
