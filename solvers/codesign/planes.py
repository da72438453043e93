"""The plane of links, rings and routes as the methods of this family use it: one job in, one design and bound out."""

from contextlib import nullcontext

from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.models.topology.bounds import congestion_bounds
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign
from ddlopt.solvers.catalogue import default_method
from ddlopt.solvers.catalogue import method as method_named
from ddlopt.solvers.contracts import Limits, Method, Status
from ddlopt.solvers.heuristic import Clock


def answer_topology(
    job: TopologyInstance | None,
    method: str | Method,
    limits: Limits,
    seed: int = 0,
    start: TopologyDesign | None = None,
    clock: Clock | None = None,
) -> tuple[TopologyDesign | None, float, float]:
    """Links, rings and routes for a job by a method of the family ``topology``.

    Parameters
    ----------
    job : TopologyInstance or None
        As :func:`~ddlopt.models.codesign.job.job_of` gives it.
    method : str or Method
        Of that family, or its name; ``exact`` is the one that the family takes by itself for the size.
    limits : Limits
        ``gap`` is that of the job's iteration time.
    seed : int
    start : TopologyDesign or None
        To begin from, where the method can use it.
    clock : Clock or None
        Of whoever asks; it is told of Ctrl-C.

    Returns
    -------
    design : TopologyDesign or None
        None if there is nothing to send.
    busiest_bytes : float
        Bytes on its busiest link.
    bound_bytes : float
        What the busiest link carries at least in every design for the job. Where the method stops because computing
        takes longer than communicating anyway, that is a closed form.

    Raises
    ------
    InfeasibleError
        If it is proven that no design serves the job: the method's answer is passed on, with what it says. It is about
        this job alone, whose strategies are chosen; of the co-design it proves nothing unless there are no others.
    NoSolutionError
        If the method finds none.
    NotApplicableError
        If the method does not cover the job.
    """
    if job is None:
        return None, 0.0, 0.0
    known = max(congestion_bounds(job).values())
    if isinstance(method, str):
        method = method_named(default_method(job) if method == "exact" else method, job.family)
    with nullcontext() if clock is None else clock.lending_ctrl_c():
        result = method.solve(job, limits, seed, start=start)
    if clock is not None:
        clock.interrupted |= result.interrupted
    if result.status is Status.INFEASIBLE:
        raise InfeasibleError(result.message)
    if not isinstance(result.solution, TopologyDesign):
        raise NoSolutionError(f"{method.name} found no design for '{job.name}': {result.message}")
    busiest = float(result.details["max_link_load_bytes"])
    return result.solution, busiest, max(known, load_of_time(job, result.bound))


def load_of_time(job: TopologyInstance, bound_s: float | None) -> float:
    """Bytes that the busiest link carries at least, given a lower bound on the iteration time; 0 if it tells nothing.

    If communication overlaps with computing, a bound no larger than the compute time tells nothing about the links.
    """
    if bound_s is None or bound_s <= job.compute_s:
        return 0.0
    hidden = job.compute_s if job.overlap == "none" else 0.0
    return (bound_s - hidden - ROUNDING * bound_s) * job.link_bandwidth_bytes_per_s
