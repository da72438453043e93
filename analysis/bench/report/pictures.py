"""A picture of the best solution of an instance, where the library has the instance and the family can be drawn."""

import struct
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ddlopt.analysis.bench.store import Store
from ddlopt.analysis.views import picture_of


class Picture(NamedTuple):
    """``file`` in the folder of the report and what it shows, sizes in pixels; without a file, why there is none."""

    file: str | None
    told: str
    width: int = 0
    height: int = 0


class Painter:
    """Draws pictures until there are enough of them.

    Parameters
    ----------
    store : Store
    folder : Path
        Of the report; pictures go to ``pictures`` in it.
    most : int
    """

    def __init__(self, store: Store, folder: Path, most: int) -> None:
        self._store, self._folder, self._left = store, folder, most

    def draw(self, runs: pd.DataFrame, name: str) -> Picture:
        """Draw the best checked solution among the runs of an instance, as ``pictures/NAME.png``."""
        checked = runs[(runs["checked"] == 1) & runs["objective"].notna() & (runs["status"] != "reference")]
        if checked.empty:
            return Picture(None, "No run found a solution to draw.")
        best = checked.sort_values(["gap_to_best", "runtime_s"], kind="stable").iloc[0]
        if self._left <= 0:
            return Picture(None, "Not drawn: the report has as many pictures as were asked for.")
        try:
            solution = self._store.solution(int(best["id"]))
            if solution is None:
                return Picture(None, "The store has no solution to draw.")
            size = self._draw(best, solution, self._folder / "pictures" / f"{name}.png")
        except Exception as problem:  # a picture less must not lose the report
            why = " ".join(f"{problem}".split()) or type(problem).__name__
            return Picture(None, f"The best solution cannot be drawn: {why}")
        self._left -= 1
        told = f"Best solution of {best['instance']}, found by {best['label']}"
        return Picture(f"pictures/{name}.png", told, *size)

    @staticmethod
    def _draw(best: Any, text: str, file: Path) -> tuple[int, int]:
        from matplotlib.figure import Figure

        from ddlopt import instances
        from ddlopt.analysis.plots import draw as save_drawn
        from ddlopt.models.catalogue import family
        from ddlopt.models.errors import UnknownNameError

        name = f"{best['family']}/{best['instance']}"
        if instances.find(name) != name:
            raise UnknownNameError("the library has no such instance")
        instance = instances.load(name)
        if instance.digest != best["instance_digest"]:
            raise UnknownNameError("the library has another instance of this name")
        solution = family(str(best["family"])).solution.from_json(text, "the store")
        draw = picture_of(instance)
        if draw is None:
            raise UnknownNameError("answers to this problem are not drawn")
        figure = Figure(figsize=(5.6, 5.0), layout="constrained")
        draw(figure.add_subplot(), instance, solution)
        file.parent.mkdir(exist_ok=True)
        save_drawn(figure, file, 110)
        width, height = struct.unpack(">II", file.read_bytes()[16:24])  # where a PNG has them
        return width, height
