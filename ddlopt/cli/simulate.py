"""The command ``simulate``: a design in a simulator."""

from pathlib import Path
from typing import Annotated

import typer

from ddlopt.cli.shared.arguments import Json, Name, Settings, options_of, say


def simulate(
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

    import ddlopt
    from ddlopt.analysis.tables import json_text
    from ddlopt.analysis.texts import time_text
    from ddlopt.cli.shared.display import quantity

    found = ddlopt.simulate(name, solution, engine, **options_of(settings))
    if as_json:
        print(json_text(dataclasses.asdict(found) | {"ratio": found.ratio}))
        return
    times = f"predicted {time_text(found.predicted_s)}, simulated {time_text(found.simulated_s)}"
    say(f"{found.instance}, {found.engine}: {times} ({found.ratio:.3f} times)")
    for key in ("compute_s", "link_time_s", "messages"):
        say(f"{key}: {quantity(key, getattr(found, key))}")
    for key, value in found.details.items():
        say(f"{key}: {quantity(key, value)}")
