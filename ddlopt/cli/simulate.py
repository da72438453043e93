"""A design run by a simulator: :func:`simulate`, and the command of that name."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ddlopt.arguments import Json, Name, Settings, options_of, say

if TYPE_CHECKING:
    from ddlopt.analysis.simulation.simulate import Simulation
    from ddlopt.models.contracts import Instance, Solution


def simulate(
    instance: "Instance | str | Path", solution: "Solution | str | Path", engine: str = "flows", **options: Any
) -> "Simulation":
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
    from ddlopt.analysis.simulation.simulate import simulate as run
    from ddlopt.api import answer, load

    problem = load(instance)
    return run(problem, answer(problem, solution), engine, **options)


def command(
    name: Name,
    solution: Annotated[Path, typer.Argument(metavar="SOLUTION", help="A .json file, as `solve --out` writes it.")],
    engine: Annotated[
        str, typer.Option(metavar="E", help="flows: max-min fair rates. ns3: packets over TCP (the extra `packets`).")
    ] = "flows",
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Run a design in a simulator of flows or of packets: predicted against simulated time of an iteration."""
    import dataclasses

    from ddlopt.analysis.tables import json_text
    from ddlopt.analysis.texts import time_text
    from ddlopt.display import quantity

    found = simulate(name, solution, engine, **options_of(settings))
    if as_json:
        print(json_text(dataclasses.asdict(found) | {"ratio": found.ratio}))
        return
    times = f"predicted {time_text(found.predicted_s)}, simulated {time_text(found.simulated_s)}"
    say(f"{found.instance}, {found.engine}: {times} ({found.ratio:.3f} times)")
    for key in ("compute_s", "link_time_s", "messages"):
        say(f"{key}: {quantity(key, getattr(found, key))}")
    for key, value in found.details.items():
        say(f"{key}: {quantity(key, value)}")
