"""The pages: which figures go into which template."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from ddlopt.analysis.bench.report.cells import Cell, Column, number, table
from ddlopt.analysis.bench.report.names import slug
from ddlopt.analysis.bench.report.pages import asset, environment
from ddlopt.analysis.history import History
from ddlopt.analysis.library_site import profiles
from ddlopt.analysis.tables import NONE, gap_text, objective_text
from ddlopt.instances import checkers
from ddlopt.instances.index import Index, Listed
from ddlopt.instances.library import best_file, certificates, instance_file
from ddlopt.solvers.contracts import relative_gap


class File(NamedTuple):
    """A kind of file to download: its folder, its ending where it is JSON, and what it is."""

    folder: str
    ending: str
    title: str

    def name_for(self, name: str, source: Path) -> str:
        """Where the site has the file of an instance; JSON is packed."""
        ending = f"{self.ending}.json.gz" if ".json" in source.suffixes else source.suffix
        return f"{self.folder}/{stem(name)}{ending}"


FILES = (
    File("files", "", "instance"),
    File("solutions", ".best", "best known solution"),
    File("certificates", ".certificate", "certificate"),
)


def stem(name: str) -> str:
    """The part of a file's name that stands for an instance, a problem or a method."""
    return slug(name.replace("/", "--"))


def _template(name: str) -> str:
    """The text of a template: of this site, or after ``report/`` of a report."""
    if name.startswith("report/"):
        return asset(name.removeprefix("report/"))
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


class Pages:
    """Renders the pages of a site.

    Parameters
    ----------
    known : Index
        Problems, and the instances that the site is to have.
    history : mapping
        What was known of each before.
    losses : mapping
        By instance and method how much worse than the best known a kept run's solution is, as a part of it.
    """

    def __init__(self, known: Index, history: History, losses: Mapping[tuple[str, str], float]) -> None:
        self._known, self._history, self._losses = known, history, losses

    def problems(self) -> list[str]:
        """Paths of the problems that have instances."""
        there = {listed.problem for listed in self._known.instances.values()}
        return [path for path in self._known.problems if path in there]

    def all(self) -> Iterator[tuple[str, str]]:
        """File and text of every page but those of instances."""
        yield "index.html", self._render("index.html", "", problems=self._overview(), counts=self._counts())
        yield "open.html", self._render("open.html", "", instances=self._open())
        for path in self.problems():
            yield f"problems/{stem(path)}.html", self._problem(path)
        for problem, method in self._methods:
            yield f"methods/{stem(f'{problem}--{method}')}.html", self._method(problem, method)

    def instance(self, listed: Listed, picture: str | None) -> str:
        """The page of an instance; its picture is a file of the site."""
        name, sources = listed.name, (instance_file, best_file, certificates.file_of)
        downloads = {
            file.folder: (file.title, f"../{file.name_for(name, path)}", Path(file.name_for(name, path)).name)
            for file, source in zip(FILES, sources, strict=True)
            if (path := source(name)) is not None
        }
        methods = [(method, f"../methods/{stem(f'{listed.problem}--{method}')}.html") for method in listed.methods]
        return self._render(
            "instance.html",
            "../",
            listed=listed,
            problem=self._known.problems[listed.problem],
            problem_file=f"../problems/{stem(listed.problem)}.html",
            picture=picture and f"../{picture}",
            sizes=", ".join(f"{header} = {size}" for header, size in listed.sizes.items()),
            downloads=downloads,
            objective=objective_text(listed.objective, listed.unit),
            bound=objective_text(listed.bound, listed.unit, like=listed.objective),
            gap=gap_text(listed.gap),
            evidence=_evidence(listed),
            history=self._history_of(listed),
            methods=methods,
            key=stem(f"ddlopt {name}").lower(),
            year=max((entry.date or "" for entry in self._history.get(name, ())), default="")[:4],
        )

    def _render(self, template: str, root: str, **values: object) -> str:
        common = {"root": root, "version": version("ddlopt"), "title": "ddlopt library"}
        return environment(_template).get_template(template).render(common | values)

    def _counts(self) -> list[tuple[str, int]]:
        instances = list(self._known.instances.values())
        proven = sum(listed.proven for listed in instances)
        exact = sum(listed.proven and "exact" in _evidence(listed) for listed in instances)
        return [
            ("problems", len(self.problems())),
            ("instances", len(instances)),
            ("proven optimal", proven),
            ("of these with an exact proof", exact),
            ("open", len(instances) - proven),
        ]

    def _overview(self) -> Markup:
        columns = [
            Column("problem"),
            Column("decides"),
            Column("instances", True),
            Column("proven", True),
            Column("open", True),
            Column("largest gap", True),
        ]
        rows = []
        for path in self.problems():
            own = [listed for listed in self._known.instances.values() if listed.problem == path]
            proven = sum(listed.proven for listed in own)
            worst = max((listed.gap for listed in own if listed.gap is not None), default=None)
            rows.append(
                [
                    Cell(path, None, f"problems/{stem(path)}.html"),
                    Cell(self._known.problems[path].title),
                    _count(len(own)),
                    _count(proven),
                    _count(len(own) - proven),
                    number(gap_text(worst), worst),
                ]
            )
        return table("problems", "Problems", columns, rows)

    def _open(self) -> Markup:
        columns = [
            Column("instance"),
            Column("problem", choice=True),
            Column("size", True),
            Column("best known", True),
            Column("bound", True),
            Column("gap", True),
            Column("best known by", choice=True),
            Column("bound by", choice=True),
            Column("since"),
        ]
        rows = []
        for listed in self._known.instances.values():
            if not listed.proven:
                since = next((entry.date for entry in reversed(self._history.get(listed.name, ()))), None)
                rows.append(
                    [
                        Cell(_short(listed), None, f"instances/{stem(listed.name)}.html"),
                        Cell(listed.problem),
                        *_figures(listed),
                        Cell(listed.found_by or NONE),
                        Cell(listed.bound_by or NONE),
                        Cell(since or NONE),
                    ]
                )
        return table("open", "Instances that nobody has proven", columns, rows)

    def _problem(self, path: str) -> str:
        own = [listed for listed in self._known.instances.values() if listed.problem == path]
        columns = [
            Column("instance"),
            *(Column(header, _is_numeric(own, header)) for header in own[0].sizes),
            Column("best known", True),
            Column("bound", True),
            Column("gap", True),
            Column("status", choice=True),
            Column("best known by", choice=True),
            Column("bound by", choice=True),
        ]
        rows = [
            [
                Cell(_short(listed), None, f"../instances/{stem(listed.name)}.html"),
                *(_size(listed.sizes.get(header)) for header in own[0].sizes),
                *_figures(listed)[1:],
                Cell(_evidence(listed)),
                Cell(listed.found_by or NONE),
                Cell(listed.bound_by or NONE),
            ]
            for listed in own
        ]
        checker = checkers.file_of(path)
        methods = [
            (method, f"../methods/{stem(f'{path}--{method}')}.html")
            for problem, method in self._methods
            if problem == path
        ]
        return self._render(
            "problem.html",
            "../",
            problem=self._known.problems[path],
            stem=stem(path),
            checker=checker and checker.name,
            methods=methods,
            instances=table("instances", f"Instances of {path}", columns, rows),
        )

    @cached_property
    def _methods(self) -> dict[tuple[str, str], list[Listed]]:
        """By problem and method the instances that it covers."""
        found: dict[tuple[str, str], list[Listed]] = {}
        for listed in self._known.instances.values():
            for method in listed.methods:
                found.setdefault((listed.problem, method), []).append(listed)
        return found

    def _method(self, path: str, method: str) -> str:
        covered = self._methods[path, method]
        losses = [self._losses.get((listed.name, method)) for listed in covered]
        columns = [
            Column("instance"),
            Column("size", True),
            Column("best known", True),
            Column("bound", True),
            Column("gap", True),
            Column("its part", choice=True),
            Column("loss of the kept run", True),
        ]
        rows = [
            [
                Cell(_short(listed), None, f"../instances/{stem(listed.name)}.html"),
                *_figures(listed),
                Cell(_part(listed, method)),
                number(gap_text(lost), lost),
            ]
            for listed, lost in zip(covered, losses, strict=True)
        ]
        known = [lost for lost in losses if lost is not None]
        found, bound = (
            sum(_leads(getattr(listed, by), method) for listed in covered) for by in ("found_by", "bound_by")
        )
        return self._render(
            "method.html",
            "../",
            method=method,
            problem=self._known.problems[path],
            covered=len(covered),
            found=found,
            bound=bound,
            problem_file=f"../problems/{stem(path)}.html",
            defaults=sum(listed.default_method == method for listed in covered),
            profile=profiles.profile(known) if known else None,
            losses=profiles.told(known) if known else "",
            instances=table("instances", f"Instances that {method} covers", columns, rows),
        )

    def _history_of(self, listed: Listed) -> Markup:
        columns = [
            Column("day"),
            Column("best known", True),
            Column("by"),
            Column("bound", True),
            Column("bound by"),
            Column("gap", True),
        ]
        rows = []
        for entry in self._history.get(listed.name, ()):
            gap = relative_gap(entry.objective, entry.bound, listed.sense)
            rows.append(
                [
                    Cell(entry.date or NONE),
                    number(objective_text(entry.objective, listed.unit), entry.objective),
                    Cell(entry.found_by or NONE),
                    number(objective_text(entry.bound, listed.unit, like=entry.objective), entry.bound),
                    Cell(entry.bound_by or NONE),
                    number(gap_text(gap), gap),
                ]
            )
        return table("history", "Best known solution and bound, whenever one became better", columns, rows)


def _evidence(listed: Listed) -> str:
    """Whether it is proven, and by what."""
    if listed.objective is None:
        return "no solution known"
    return f"optimal ({certificates.label(listed.name, listed.digest)})" if listed.proven else "open"


def _short(listed: Listed) -> str:
    return listed.name.partition("/")[2]


def _count(count: int) -> Cell:
    return number(str(count), count)


def _figures(listed: Listed) -> list[Cell]:
    """Size, best known objective, bound and gap."""
    return [
        _count(listed.size),
        number(objective_text(listed.objective, listed.unit), listed.objective),
        number(objective_text(listed.bound, listed.unit, like=listed.objective), listed.bound),
        number(gap_text(listed.gap), listed.gap),
    ]


def _is_numeric(own: list[Listed], header: str) -> bool:
    return all(isinstance(listed.sizes.get(header, 0), int) for listed in own)


def _size(size: int | str | None) -> Cell:
    return Cell(NONE) if size is None else _count(size) if isinstance(size, int) else Cell(size)


def _leads(by: str | None, method: str) -> bool:
    """Whether a record names the method, with or without options."""
    return by is not None and by.partition(":")[0] == method


def _part(listed: Listed, method: str) -> str:
    """What a method did for an instance."""
    parts: Mapping[str, bool] = {
        "found the best known": _leads(listed.found_by, method),
        "proved the bound": _leads(listed.bound_by, method),
    }
    return ", ".join(part for part, did in parts.items() if did) or NONE
