"""A small store of results whose report is known, and what a page says, read by an HTML parser."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from ddlopt import instances
from ddlopt.analysis.bench import Store

HOSTILE = '<b>&"odd"'
SCRIPT = '<script>alert("x")</script>'
REAL = "topology/tiny-n4-d2"
"""A bundled instance, so that its solution can be drawn; its optimum is 11.5 s."""

_VOID = {"meta", "link", "br", "hr", "img", "input"}


def instance_row(digest, name, family="topology", sense="minimize", best=None):
    unit = "s" if sense == "minimize" else ""
    return {
        "digest": digest, "name": name, "family": family, "sense": sense, "unit": unit, "sizes": {"n": 4},
        "source": "by hand", "best_objective": best,
    }  # fmt: skip


def run_row(instance, method, seed, status, objective=None, bound=None, runtime_s=1.0, **more):
    return {
        "key": f"{instance['digest'][:9]}-{method}-{seed}", "instance_digest": instance["digest"],
        "instance": instance["name"], "family": instance["family"], "method": method, "options": {"effort": 1},
        "solver": "", "seed": seed, "time_limit_s": 60.0, "gap_limit": 1e-4, "threads": 1, "memory_limit_bytes": None,
        "status": status, "objective": objective, "bound": bound, "gap": None, "checked": objective is not None,
        "scope": None, "scope_bound": None, "runtime_s": runtime_s, "compile_s": 0.0, "evidence": None,
        "answer_s": runtime_s, "wall_s": runtime_s, "peak_memory_bytes": 10**8,
        "message": "", "host": "here", "finished": "2026-02-02T00:00:00+00:00",
        "versions": {"ddlopt": "0.1.0", "numpy": "2.0"}, "revision": "c0ffee", "details": {}, "trace": [],
        "machine": {"cpu": "Abacus 3", "cores": 2, "memory_bytes": 8e9, "system": "Linux"}, "solution": None,
    } | more  # fmt: skip


def make_store(path: Path, seeds: int = 0) -> Path:
    """15 runs: two instances of either sense, failures of all kinds, and ``seeds`` more runs of one method."""
    best = instances.best(REAL)
    real = instance_row(instances.load(REAL).digest, "tiny-n4-d2", best=11.5)
    odd = instance_row("b" * 64, HOSTILE)
    most = instance_row("c" * 64, "most", "scheduling", "maximize", best=10.0)
    none = instance_row("d" * 64, "none", "scheduling", "maximize")
    rows = [
        (real, run_row(real, "exact", 0, "optimal", 11.5, 11.5, 2.0, trace=[[1.0, 12.65, 11.5]],
                       solution=json.loads(best.to_json(indent=None)))),
        (real, run_row(real, "greedy", 0, "feasible", 12.65, 11.5, 0.5)),
        (real, run_row(real, "greedy", 1, "feasible", 23.0, 11.5, 0.5)),
        (real, run_row(real, "ideal", 0, "reference", 5.0)),
        (real, run_row(real, "crash", 0, "crashed", runtime_s=3.0)),
        (odd, run_row(odd, "exact", 0, "feasible", 150.0, 50.0, 10.0, key="old", finished="2026-01-01T00:00:00+00:00")),
        (odd, run_row(odd, "exact", 0, "optimal", 100.0, 100.0, 10.0)),
        (odd, run_row(odd, "greedy", 0, "feasible", 101.0, None, 0.5)),
        (odd, run_row(odd, "greedy", 1, "error", runtime_s=0.5, message=SCRIPT)),
        (odd, run_row(odd, "crash", 0, "killed", runtime_s=80.0)),
        (most, run_row(most, "exact", 0, "optimal", 10.0, 10.0, 5.0)),
        (most, run_row(most, "greedy", 0, "feasible", 8.0, 12.0, 0.1)),
        (most, run_row(most, "liar", 0, "optimal", 9.0, 9.0, 0.1)),
        (none, run_row(none, "exact", 0, "infeasible", runtime_s=1.0)),
        (none, run_row(none, "greedy", 0, "no_solution", runtime_s=60.0)),
    ]  # fmt: skip
    rows += [
        (most, run_row(most, "greedy", seed, "feasible", 8.0 - seed / 1000, 12.0, 0.1 + seed))
        for seed in range(1, seeds + 1)
    ]
    with Store(path) as store:
        for instance, run in rows:
            store.add(run, instance)
    return path


class Table(NamedTuple):
    head: list[str]
    rows: list[list[str]]

    def row(self, first: str) -> dict[str, str]:
        """The row that begins so, by header."""
        (found,) = [row for row in self.rows if row[0] == first]
        return dict(zip(self.head, found, strict=True))


class Page(HTMLParser):
    """What a page says; every tag must be closed in its turn."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.tables: dict[str, Table] = {}
        self._table: Table | None = None
        self.feed(path.read_text(encoding="utf-8"))
        assert self.open == [], f"{path}: not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        assert len(known) == len(attributes), f"{self.path}: an attribute twice in {tag}"
        self.tags.append((tag, known))
        self.ids += [known["id"]] if "id" in known else []
        self.links += [known["href"]] if "href" in known else []
        self.sources += [known["src"]] if "src" in known else []
        if known.get("class") == "table":
            self._table = self.tables[known["id"]] = Table([], [])
        if tag == "tr" and self._table is not None and self._table.head:
            self._table.rows.append([])
        if tag == "th":
            self._table.head.append("")
        if tag == "td":
            self._table.rows[-1].append("")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert "svg" in self.open, f"{self.path}: <{tag}/> is XML"
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open, f"{self.path}: </{tag}> closes nothing"
        assert self.open.pop() == tag, f"{self.path}: </{tag}> at {self.getpos()} does not close what is open"

    def handle_data(self, data):
        self.text += data
        if self.open and self._table is not None:
            if "th" in self.open:
                self._table.head[-1] += data
            elif "td" in self.open:
                self._table.rows[-1][-1] += data
