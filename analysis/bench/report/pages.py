"""The pages of a report: which figures go into which template."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined

from ddlopt.analysis import proofs
from ddlopt.analysis.bench.figures import statistics
from ddlopt.analysis.bench.report import graphs, lists
from ddlopt.analysis.bench.report.charts import Chart
from ddlopt.analysis.bench.report.contents import Listed, Overview
from ddlopt.analysis.bench.report.curves import Curves
from ddlopt.analysis.bench.report.data import Data
from ddlopt.analysis.bench.report.names import family_file, slug
from ddlopt.analysis.bench.report.pictures import Picture
from ddlopt.analysis.bench.report.sources import Sources
from ddlopt.analysis.bench.report.summary import PAR_K, SHIFT_S
from ddlopt.analysis.tables import gap_text, objective_text
from ddlopt.solvers.contracts import best_bound

ASSETS = ("report.css", "report.js")


def asset(name: str) -> str:
    """The text of a file of the site."""
    return (files(__package__) / "site" / name).read_text(encoding="utf-8")


@cache
def environment(text: Callable[[str], str]) -> Environment:
    """What renders templates; ``text`` gives them by name."""
    return Environment(
        loader=FunctionLoader(text), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


class Frame:
    """Renders the pages of one report.

    Parameters
    ----------
    title : str
    data : Data
    families : list of str
    """

    def __init__(self, title: str, data: Data, families: list[str]) -> None:
        self.title, self.data, self.families = title, data, families
        self._taken: set[str] = set()
        pairs = data.runs[["family", "label"]].drop_duplicates().astype(str)
        self._styles = graphs.styles_of(pairs.itertuples(index=False, name=None))
        common = {
            "title": title, "families": [(family, family_file(family)) for family in families],
            "version": version("ddlopt"), "target": f"{100 * data.target:g} %",
            "shift_s": f"{SHIFT_S:g}", "par_k": f"{PAR_K:g}",
        }  # fmt: skip
        self._common: dict[str, Any] = common

    def _render(self, template: str, root: str, **values: Any) -> str:
        return environment(asset).get_template(template).render(self._common | {"root": root} | values)

    def listed(self, runs: pd.DataFrame) -> Listed:
        """What the list of a family says of an instance."""
        first = runs.iloc[0]
        digest, family = str(first["instance_digest"]), str(first["family"])
        row = self.data.instances[digest]
        name = f"{slug(family)}--{slug(str(first['instance']))}"
        if name.lower() in self._taken:
            name = f"{name}--{slug(digest[:12])}"
        if name.lower() in self._taken:
            name = f"{name}--{len(self._taken)}"
        self._taken.add(name.lower())
        ranked = runs[runs["current"] & (runs["status"] != statistics.REFERENCE)]
        found = ranked[ranked["objective"].notna()].sort_values(["gap_to_best", "runtime_s"], kind="stable")
        best = float(first["best_objective"])
        bound, by = _best_bound(ranked, float(first["library_bound"]), str(row["sense"]))
        return Listed(
            digest, str(first["instance"]), family, name,
            ", ".join(f"{header} = {size}" for header, size in row["sizes"].items()), str(row["source"]),
            None if pd.isna(best) else best, str(row["unit"]), str(row["sense"]), len(ranked),
            int(ranked["answered"].sum()), str(found["label"].iloc[0]) if len(found) else "",
            bound, by,
        )  # fmt: skip

    def instance_charts(self, curves: Curves) -> list[Chart]:
        """The charts of an instance."""
        chart = graphs.convergence(curves, self._styles)
        return [] if chart is None else [chart]

    def instance(self, entry: Listed, runs: pd.DataFrame, charts: Sequence[Chart], picture: Picture) -> str:
        """The page of an instance."""
        inside = [dataclasses.replace(each, files=[f"../{file}" for file in each.files]) for each in charts]
        return self._render(
            "instance.html", "../", entry=entry, best=objective_text(entry.best, entry.unit),
            bound=objective_text(entry.bound, entry.unit, like=entry.best), proof=_proof(entry.digest),
            gap=gap_text(entry.best_gap), picture=picture, family_file=family_file(entry.family),
            runs=lists.runs(runs, entry.unit), charts=inside,
        )  # fmt: skip

    def charts(self, overview: Overview) -> list[Chart]:
        """The charts of a family."""
        if overview.summary is None:
            return []
        return graphs.profiles(overview.summary, overview.curves, self.data.target, self._styles)

    def overview_charts(self, overviews: list[Overview]) -> list[Chart]:
        """The charts of the first page."""
        return graphs.overview(overviews, self._styles)

    def family(self, overview: Overview, charts: Sequence[Chart]) -> str:
        """The page of a family."""
        summary = overview.summary
        return self._render(
            "family.html", "", family=overview.family, slug=slug(overview.family), summary=summary,
            title_of_family=_title(overview.family),
            methods=None if summary is None else lists.methods(summary.methods, self.data.target),
            pairs=None if summary is None else lists.pairs(summary),
            instances=lists.instances(overview.instances),
            charts=charts,
            references=int((overview.runs["status"] == statistics.REFERENCE).sum()),
        )  # fmt: skip

    def index(self, overviews: list[Overview], charts: Sequence[Chart]) -> str:
        """The first page."""
        runs = self.data.runs
        sources = Sources(runs)
        statuses = Counter(runs["status"].astype(str))
        failed = sum(statuses[status] for status in statistics.FAILURES)
        counts = [
            ("runs", len(runs)), ("instances", runs["instance_digest"].nunique()),
            ("methods", runs["label"].nunique()), ("families", len(self.families)),
            ("answered", int(runs["answered"].sum())), ("failed", failed),
        ]  # fmt: skip
        return self._render(
            "index.html", "", counts=counts, statuses=lists.statuses(overviews, sorted(statuses)),
            superseded=int((~runs["current"]).sum()), wrong=lists.wrong(overviews), sources=sources,
            summaries=lists.summaries(overviews), charts=charts,
        )  # fmt: skip

    def provenance(self, store: str) -> str:
        """The page on where the figures come from."""
        sources = Sources(self.data.runs)
        return self._render(
            "provenance.html", "", store=store, sources=sources, options=lists.options(self.data.runs),
            commands=sources.commands(), counts={
                "versions": lists.counted("versions", sources.versions),
                "commits": lists.counted("commits", sources.revisions),
                "hosts": lists.counted("hosts", sources.hosts),
                "machines": lists.counted("machines", sources.machines),
            },
        )  # fmt: skip


def _best_bound(ranked: pd.DataFrame, library: float, sense: str) -> tuple[float | None, str]:
    """The tightest of the runs' bounds and the library's, and whose it is; of equal ones the library's."""
    own = ranked[ranked["bound"].notna() & ~ranked["wrong"]].sort_values(
        "bound", ascending=sense == "maximize", kind="stable"
    )
    of_runs = float(own["bound"].iloc[0]) if len(own) else None
    known = [of_runs, None if pd.isna(library) else library]
    found = best_bound(known, "maximize" if sense == "maximize" else "minimize")
    if found is None:
        return None, ""
    return found, "the library" if found == library else str(own["label"].iloc[0])


def _proof(digest: str) -> str:
    """How the library proves its bound."""
    found = proofs.known(digest)
    if found is None or found.bound is None:
        return ""
    return "checked in whole numbers" if found.exact else "by solvers, up to floating point"


def _title(family: str) -> str:
    """What a family is about; nothing for one that ddlopt does not have."""
    from ddlopt.models.catalogue import FAMILY_NAMES
    from ddlopt.models.catalogue import family as known

    return known(family).title if family in FAMILY_NAMES else ""
