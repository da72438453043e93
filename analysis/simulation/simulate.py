"""What an iteration takes when a design is run by a simulator, beside what the model says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

from ddlopt.analysis.simulation.collective_replay import replay_of_collective
from ddlopt.analysis.simulation.fair_flows import finish_times
from ddlopt.analysis.simulation.packets import PacketOptions, require_ns3, sent_as_packets
from ddlopt.analysis.simulation.replay import replay_of
from ddlopt.instances import load
from ddlopt.instances.options import checked, refuse_unknown
from ddlopt.models.catalogue import require_feasible, solution_of
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.job import job_of
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.contracts import Instance, Number, Solution
from ddlopt.models.errors import NotApplicableError, OptionError, UnknownNameError, a_or_an
from ddlopt.models.topology.collective.instance import CollectiveInstance, CollectivePlan
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign

_MOST_PIECES = 1000
"""Of a tree's bytes: every piece is a task of its own on each link, and a simulation of more takes too long."""


@dataclass(frozen=True)
class FlowOptions:
    """How flows go.

    Parameters
    ----------
    steps : bool
        Whether rings go step by step; if not, every member sends all that it ever sends at once.
    pieces : int
        Into which the bytes of each tree of a collective are cut.
    """

    steps: bool = True
    pieces: int = 16

    def __post_init__(self) -> None:
        if not 1 <= self.pieces <= _MOST_PIECES:
            raise OptionError(f"pieces is {self.pieces}; expected 1 to {_MOST_PIECES}")


ENGINES: dict[str, type[FlowOptions] | type[PacketOptions]] = {"flows": FlowOptions, "ns3": PacketOptions}
"""Simulators by name, with their options."""


@dataclass(frozen=True)
class Simulation:
    """An iteration as predicted by the model, and as simulated.

    Parameters
    ----------
    instance, engine : str
    predicted_s, simulated_s : float
        Seconds of an iteration.
    compute_s : float
        Of it, what servers compute.
    link_time_s : float
        What the busiest link needs for its bytes: the model's communication, a lower bound on anybody's.
    messages : int
        That an iteration sends; a ring of k members has 2 k (k - 1).
    details : mapping
        Of ``ns3``: its scale, packets, and the first iteration's time, which begins with cold connections.
    """

    instance: str
    engine: str
    predicted_s: float
    simulated_s: float
    compute_s: float
    link_time_s: float
    messages: int
    details: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """Simulated over predicted time."""
        return self.simulated_s / self.predicted_s


def options_for(engine: str, options: Mapping[str, Any]) -> FlowOptions | PacketOptions:
    """The options of an engine.

    Raises
    ------
    UnknownNameError
        If there is no such engine.
    OptionError
        If it has no such option, or the value is none for it.
    """
    if engine not in ENGINES:
        raise UnknownNameError(f"there is no engine '{engine}'; use one of: {', '.join(ENGINES)}")
    kind: Callable[..., FlowOptions | PacketOptions] = ENGINES[engine]
    refuse_unknown(f"engine '{engine}'", options, [each.name for each in fields(ENGINES[engine])])
    return checked(kind)(**options)


def simulate(
    instance: Instance | str | Path, solution: Solution | str | Path, engine: str = "flows", **options: Any
) -> Simulation:
    """Run an iteration of a design with all that waits for something else, and compare its time with the model's.

    Servers compute, then messages go along the design's paths. A ring sends step by step; what is not of a ring goes at
    once.

    Parameters
    ----------
    instance : Instance, str or Path
        Of topology or codesign; see :func:`ddlopt.api.load`.
    solution : Solution, str or Path
        A design or plan for it, or its file.
    engine : str
        ``"flows"``: every message has its max-min fair rate. ``"ns3"``: packets over TCP; needs the extra ``packets``.
    **options
        Of the engine: :class:`~ddlopt.analysis.simulation.simulate.FlowOptions`,
        :class:`~ddlopt.analysis.simulation.packets.PacketOptions`.

    Returns
    -------
    Simulation

    Raises
    ------
    UnknownNameError
        If the instance or the engine does not exist, or (SolverMissingError) is not installed.
    NotApplicableError
        If the instance is of another family, or nothing is sent.
    SolutionError
        If the solution cannot be read, answers another instance, or violates a constraint.
    OptionError
        If the engine has no such option, or it is out of its range.
    SolverError
        If ns-3 fails, or messages do not arrive.
    """
    instance = load(instance)
    solution = solution_of(instance, solution)
    chosen = options_for(engine, options)
    iterations = chosen.iterations if isinstance(chosen, PacketOptions) else 1
    if isinstance(instance, CollectiveInstance):
        predicted_s, compute_s = float(cast(Number, require_feasible(instance, solution).objective)), 0.0
        pieces = chosen.pieces if isinstance(chosen, FlowOptions) else FlowOptions().pieces
        plan = cast(CollectivePlan, solution)
        built = replay_of_collective(instance, plan, pieces=pieces, steps=chosen.steps, iterations=iterations)
    else:
        job, design, predicted_s = _feasible(instance, solution)
        built, compute_s = replay_of(job, design, steps=chosen.steps, iterations=iterations), job.compute_s
    replay = built.replay
    details: dict[str, float] = {}
    if isinstance(chosen, PacketOptions):
        packets = sent_as_packets(replay, chosen, iterations)
        spans = built.iterations_s(packets.finished)
        details = {
            "first_iteration_s": spans[0],
            "size_scale": packets.size_scale,
            "time_scale": packets.time_scale,
            "sent_packets": packets.sent_packets,
            "lost_packets": packets.drops,
            "timeouts": packets.timeouts,
        }
    else:
        spans = built.iterations_s(finish_times(replay).tolist())
    messages = sum(task.channel is not None for task in replay.tasks) // iterations
    link_time_s = replay.link_time_s / iterations
    return Simulation(instance.name, engine, predicted_s, spans[-1], compute_s, link_time_s, messages, details)


def _feasible(instance: Instance, solution: Solution) -> tuple[TopologyInstance, TopologyDesign, float]:
    """The job, its design and the predicted time.

    Raises
    ------
    NotApplicableError
        If it is no topology and no codesign, or nothing is sent.
    SolutionError
        If the design is of another instance, or violates a constraint.
    """
    if not isinstance(instance, TopologyInstance | CodesignInstance):
        raise NotApplicableError(
            f"'{instance.name}' is {a_or_an(instance.kind)}; what can be simulated are designs of topology and "
            "codesign, and plans of collectives"
        )
    predicted_s = float(cast(Number, require_feasible(instance, solution).objective))
    if isinstance(instance, TopologyInstance):
        return instance, cast(TopologyDesign, solution), predicted_s
    plan = cast(CodesignPlan, solution)
    job = job_of(instance, plan.choices(instance))
    if job is None:
        raise NotApplicableError(f"the plan for '{instance.name}' sends nothing, so that there is nothing to simulate")
    return job, plan.design, predicted_s


__all__ = ["ENGINES", "FlowOptions", "PacketOptions", "Simulation", "options_for", "require_ns3", "simulate"]
