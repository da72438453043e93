"""The price of being online: utility of plans that look 1, 2, 4, … slots ahead, over a certified bound.

Every row is an instance of the library: the greedy over slots (one slot ahead), an online primal-dual, plans that look
further ahead and know the jobs that have arrived, those that also know the arrivals within their window, and the
offline optimum or what is known of it. The bound is the best that any of the methods proves, so that figures are the
least part of the optimum that is reached.
"""

from collections.abc import Iterator
from itertools import cycle

import ddlopt
from benchmarks.harness import Benchmark, Option, shown
from ddlopt import instances
from ddlopt.frontier.scheduling.rolling_horizon import RollingHorizon
from ddlopt.models.catalogue import family
from ddlopt.solvers.contracts import Limits, Result, best_bound
from ddlopt.solvers.scheduling.gadget import Gadget
from ddlopt.solvers.scheduling.online.primal_dual import PrimalDual

INSTANCES = (
    *("elastic-j50-t20-g32", "elastic-j50-t50-g32", "bursty-j40-t24-g16", "bursty-j80-t48-g32"),
    *("capped-j50-t50-g32", "deadlines-j50-t50-g32", "departures-j16-t8-g8", "departures-j96-t24-g16"),
)
AHEAD = (2, 4, 8, 16)


def methods(slots: int) -> Iterator[tuple[str, object]]:
    """Name of the column, and method."""
    yield "primal-dual", PrimalDual()
    yield "1", Gadget()
    for horizon in (one for one in AHEAD if one < slots):
        yield str(horizon), RollingHorizon(horizon)
    for horizon in (one for one in AHEAD if one < slots):
        yield f"{horizon} told", RollingHorizon(horizon, clairvoyant=True)


def offline(name: str, time_limit: float) -> Result:
    """The exact method, which starts from the best schedule of the library if there is one."""
    instance = ddlopt.load(name)
    try:
        start = instances.best(name)
    except ddlopt.DdloptError:
        start = None
    return ddlopt.solve(instance, "exact", start=start, time_limit=time_limit, threads=2)


def parts(name: str, time_limit: float) -> dict[str, float]:
    """Utility over the best bound, by column."""
    instance = ddlopt.load(name)
    results = {column: method.solve(instance, Limits(time_limit)) for column, method in methods(instance.slots)}
    results["offline"] = offline(name, time_limit)
    known = [result.bound for result in results.values()]
    bound = best_bound([*known, family("scheduling").bound(instance)], instance.sense)
    return {column: result.objective / bound for column, result in results.items()}


def picture(rows: dict[str, dict[str, float]]):
    """Parts of the bound against how far the plans look ahead."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    places = ["1", *map(str, AHEAD), "offline"]
    for axis, title, mark in ((axes[0], "knowing who has arrived", ""), (axes[1], "told who will arrive", " told")):
        for (name, found), shape in zip(rows.items(), cycle("osD^vPX*"), strict=False):
            known = {place: found.get(place if place in ("1", "offline") else place + mark) for place in places}
            drawn = [(places.index(place), value) for place, value in known.items() if value is not None]
            axis.plot(*zip(*drawn, strict=True), marker=shape, label=name.removeprefix("scheduling/"))
        axis.set_xticks(range(len(places)), places)
        axis.set_xlabel("slots planned ahead")
        axis.set_title(title)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("utility / certified bound")
    axes[1].legend(fontsize="small", loc="lower right")
    figure.suptitle("The price of being online")
    return figure


def price(asked):
    """A row for each instance; columns are slots planned ahead."""
    columns = ["primal-dual", "1", *map(str, AHEAD), *(f"{ahead} told" for ahead in AHEAD), "offline"]
    rows = {}
    for name in asked.instances:
        rows[name] = parts(name, asked.time_limit)
        cells = {column: shown(rows[name].get(column), ".2%") for column in columns}
        yield {"slots ahead": name.removeprefix("scheduling/"), **cells}
    asked.save(lambda: picture(rows), "price_of_being_online.png")


BENCH = Benchmark(
    price,
    pages=False,
    instances=Option([f"scheduling/{name}" for name in INSTANCES], quick=["scheduling/departures-j16-t8-g8"]),
    time_limit=Option(60.0, "seconds for each method and instance", quick=1.0),
)
