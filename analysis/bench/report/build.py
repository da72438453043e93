"""From a store to a folder of pages, instance by instance, so that no more than one instance's traces are in memory."""

import contextlib
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ddlopt.analysis.bench.figures import tabular
from ddlopt.analysis.bench.figures.statistics import REFERENCE
from ddlopt.analysis.bench.report import contents, curves, pages, saved
from ddlopt.analysis.bench.report.charts import Chart
from ddlopt.analysis.bench.report.data import Data, read
from ddlopt.analysis.bench.report.names import family_file, slug
from ddlopt.analysis.bench.report.pictures import Painter
from ddlopt.analysis.bench.report.summary import WRITTEN, Summary, summarise
from ddlopt.analysis.bench.store import Store
from ddlopt.instances.options import one_of
from ddlopt.models.errors import OptionError, StoreError, plain_lines

MARK = "report.json"
"""Lists the files of a report, so that a later one in the same folder leaves none of them behind."""
_ASIDE = ".new"


def write_report(
    store: Store,
    folder: str | Path,
    title: str = "Benchmark report",
    baseline: str | None = None,
    target: float = 0.01,
    pictures: int = 100,
    save_charts: Sequence[str] = (),
) -> Path:
    """Write the report of a store.

    Parameters
    ----------
    store : Store
    folder : str or Path
        Made if it is not there; an earlier report in it is replaced.
    title : str
    baseline : str, optional
        The method that the others of its family are tested against; by default the one that is best most often.
    target : float
        Gap to the best known that counts as reached.
    pictures : int
        How many solutions are drawn at most, one an instance.
    save_charts : sequence of str
        Formats in which the charts of all pages are saved, too: ``png``, ``pdf``, ``svg``.

    Returns
    -------
    Path
        The first page, ``index.html`` in the folder.

    Raises
    ------
    StoreError
        If there are no results.
    OptionError
        If the folder cannot be written to or holds something else, or no run is of the baseline.
    """
    if target < 0 or pictures < 0:
        raise OptionError("the target gap and the number of pictures must be at least 0")
    for each in save_charts:
        one_of("save_charts", each, saved.FORMATS)
    with store.snapshot():
        data = read(store, target)
        known = sorted(data.runs["label"].astype(str).unique())
        if baseline is not None and baseline not in known:
            raise OptionError(f"no run is of the baseline '{baseline}'; there are: {', '.join(known)}")
        site = Site(folder)
        try:
            _write(site, store, data, title, baseline, pictures, save_charts)
        except StoreError:
            raise
        except OSError as problem:
            raise OptionError(f"{folder} cannot be written: {problem.strerror or problem}") from None
        finally:
            site.leave()
    return Path(folder) / "index.html"


class Site:
    """The folder of a report, which is made aside and takes the place of an earlier one at the end.

    Parameters
    ----------
    folder : str or Path

    Raises
    ------
    OptionError
        If it cannot be written to or holds something else.
    """

    def __init__(self, folder: str | Path) -> None:
        self._whole = Path(folder)
        self.folder = self._whole / _ASIDE
        """Where files are put until the report is complete."""
        self._files: list[str] = []
        self._new = not self._whole.exists()
        try:
            self._whole.mkdir(parents=True, exist_ok=True)
            there = sorted(path.name for path in self._whole.iterdir() if path.name != _ASIDE)
            if there and MARK not in there:
                raise OptionError(
                    f"{folder} holds files that do not belong to a report ({there[0]}, …); name another folder"
                )
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()
        except OSError as problem:
            self.leave()
            raise OptionError(f"{folder} cannot be written: {problem.strerror or problem}") from None

    def write(self, name: str, text: str) -> None:
        """Write one file; folders in its name are made."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(plain_lines(text), encoding="utf-8")
        self._files.append(name)

    def close(self, extra: list[str]) -> None:
        """Put what was written, and ``extra`` besides, in the place of the earlier report."""
        files = [*self._files, *extra]
        (self.folder / MARK).write_text(json.dumps(files, indent=0) + "\n")
        earlier = set(self._earlier()) - set(files)
        for name in [*files, MARK]:
            target = self._whole / name
            target.parent.mkdir(exist_ok=True)
            (self.folder / name).replace(target)
        inside = self._whole.resolve()
        for name in earlier:
            path = inside / name
            if path.resolve().is_relative_to(inside):
                path.unlink(missing_ok=True)

    def leave(self) -> None:
        """Remove what was put aside; where no report came to be, the folder too if it was made for it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._new and not (self._whole / MARK).exists():
            with contextlib.suppress(OSError):
                self._whole.rmdir()

    def _earlier(self) -> list[str]:
        """The files of the report that is there, and of others none."""
        try:
            return [str(name) for name in json.loads((self._whole / MARK).read_text())]
        except (OSError, ValueError, TypeError):
            return []


def _write(
    site: Site, store: Store, data: Data, title: str, baseline: str | None, pictures: int, formats: Sequence[str]
) -> None:
    for name in pages.ASSETS:
        site.write(f"assets/{name}", pages.asset(name))
    painter = Painter(store, site.folder, pictures)
    made: list[str] = []
    frame = pages.Frame(title, data, sorted(data.runs["family"].astype(str).unique()))
    overviews = []
    for family in frame.families:
        runs = data.runs[data.runs["family"] == family]
        until = curves.horizons(runs)
        collected = curves.Curves(curves.grid(runs))
        found: list[pd.DataFrame] = []
        listed: list[contents.Listed] = []
        for own, horizon in _by_instance(runs, until):
            more, drawn = curves.follow(store, own, horizon, collected, data.target)
            own = own.join(more)
            found.append(more.drop(columns=["message", "error"]))
            entry = frame.listed(own)
            picture = painter.draw(own, entry.name)
            made += [picture.file] if picture.file else []
            listed.append(entry)
            charts = _saved(site, frame.instance_charts(drawn), entry.name, formats, made)
            site.write(entry.file, frame.instance(entry, own, charts, picture))
        family_runs = runs.join(pd.concat(found))
        ranked = family_runs[family_runs["current"] & (family_runs["status"] != REFERENCE)]
        summary = summarise(ranked, data.target, baseline, collected.at_s) if len(ranked) else None
        if summary is not None:
            _tables(site, family, summary)
        overviews.append(contents.Overview(family, family_runs, listed, summary, collected))
        charts = _saved(site, frame.charts(overviews[-1]), slug(family), formats, made)
        site.write(family_file(family), frame.family(overviews[-1], charts))
    site.write("provenance.html", frame.provenance(store.path.name))
    charts = _saved(site, frame.overview_charts(overviews), "summary", formats, made)
    site.write("index.html", frame.index(overviews, charts))
    site.close(made)


def _saved(site: Site, charts: list[Chart], start: str, formats: Sequence[str], made: list[str]) -> list[Chart]:
    """The charts of a page, saved; their files are added to ``made``."""
    charts = [saved.save(each, site.folder, start, formats) for each in charts]
    made += [file for each in charts for file in each.files]
    return charts


def _by_instance(runs: pd.DataFrame, until: Any) -> Iterator[tuple[pd.DataFrame, Any]]:
    """The runs of each instance with their horizons, in the order of the names."""
    places = runs.groupby(["instance", "instance_digest"], observed=True).indices
    for key in sorted(places, key=lambda pair: (_natural(str(pair[0])), str(pair[1]))):
        yield runs.iloc[places[key]], until[places[key]]


def _natural(name: str) -> list[tuple[int, str]]:
    """So that n12 comes after n6."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _tables(site: Site, family: str, summary: Summary) -> None:
    """The tables of a family for papers and other programs."""
    for name, table in (("methods", summary.methods), ("pairs", summary.pairs)):
        start = f"tables/{slug(family)}-{name}"
        caption = f"{family}: methods" if name == "methods" else f"{family}: against {summary.baseline}"
        site.write(f"{start}.md", tabular.markdown(table, WRITTEN))
        site.write(f"{start}.tex", tabular.latex(table, WRITTEN, caption, f"tab:{slug(family)}-{name}"))
        site.write(f"{start}.csv", tabular.csv_text(table))
