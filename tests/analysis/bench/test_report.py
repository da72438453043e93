"""The report of a small known store: figures, links, pictures, escapes."""

import json
import math
import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pandas as pd
import pytest
from report_cases import HOSTILE, SCRIPT, Page, instance_row, make_store, run_row

import ddlopt
from ddlopt.analysis.bench import Store
from ddlopt.analysis.bench.figures import anytime, statistics
from ddlopt.analysis.bench.report import cells, charts, curves, graphs, lists, summary, write_report
from ddlopt.analysis.bench.report.data import read
from ddlopt.models.errors import OptionError


def written(store, folder, **options):
    with Store(store, write=False) as opened:
        return write_report(opened, folder, **options).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("report")
    return written(make_store(place / "r.sqlite"), place / "out", title="A <title> & more")


@pytest.fixture(scope="module")
def pages(folder):
    return {path.relative_to(folder).as_posix(): Page(path) for path in folder.rglob("*.html")}


def test_there_is_a_page_for_everything(folder, pages):
    assert set(pages) == {
        "index.html", "provenance.html", "family-topology.html", "family-scheduling.html",
        "instances/topology--tiny-n4-d2.html", "instances/topology--b-odd.html", "instances/scheduling--most.html",
        "instances/scheduling--none.html",
    }  # fmt: skip
    listed = set(json.loads((folder / "report.json").read_text()))
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert there == listed | {"report.json"}


def test_every_link_leads_to_something_in_the_folder(folder, pages):
    for name, page in pages.items():
        for link in [*page.links, *page.sources]:
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            assert not parts.scheme, link
            assert not parts.netloc, link
            target = (folder / name).parent / unquote(parts.path) if parts.path else folder / name
            assert target.resolve().is_relative_to(folder.resolve())
            assert target.is_file(), f"{name}: {link}"
            if parts.fragment:
                assert parts.fragment in Page(target).ids


def test_nothing_comes_from_the_network(folder):
    for path in folder.rglob("*"):
        if path.suffix in {".html", ".css", ".js"}:
            text = path.read_text()
            assert "http:" not in text
            assert "https:" not in text
            assert "@import" not in text


def test_ids_are_unique_and_labels_lead_somewhere(pages):
    for page in pages.values():
        assert len(page.ids) == len(set(page.ids))
        for tag, attributes in page.tags:
            for name in (attributes.get("aria-labelledby") or "").split():
                assert name in page.ids
            if tag == "img":
                assert attributes["alt"]
            if tag == "svg" and "aria-hidden" not in attributes:
                assert attributes["role"] == "img"
                assert attributes["aria-labelledby"]


def test_pages_are_valid_for_a_strict_parser(folder):
    html5lib = pytest.importorskip("html5lib", reason="html5lib is not installed")
    for path in folder.rglob("*.html"):
        html5lib.HTMLParser(strict=True).parse(path.read_text())


def test_markup_in_names_and_messages_is_text(folder, pages):
    page = pages["instances/topology--b-odd.html"]
    assert HOSTILE in page.text
    assert [row[-1] for row in page.tables["runs"].rows if row[2] == "error"] == [SCRIPT]
    assert [attributes.get("src") for tag, attributes in page.tags if tag == "script"] == ["../assets/report.js"]
    assert not any(tag == "b" for tag, _ in page.tags)
    assert "A <title> & more" in pages["index.html"].text


def test_the_summary_counts(pages):
    index = pages["index.html"]
    counts = {"runs": 15, "instances": 4, "methods": 5, "families": 2, "answered": 10, "failed": 4}
    for name, count in counts.items():
        assert f"{name}{count}\n" in index.text
    assert index.tables["statuses"].row("topology") == {
        "family": "topology", "instances": "2", "methods": "4", "runs": "10", "crashed": "1", "error": "1",
        "feasible": "4", "infeasible": "0", "killed": "1", "no solution": "0", "optimal": "2", "reference": "1",
    }  # fmt: skip
    assert "1 runs are superseded" in index.text


def test_contradictions_are_shown(pages):
    assert pages["index.html"].tables["wrong"].rows == [["scheduling/most", "liar", "0", "optimal", "9", "9", "10"]]
    row = pages["instances/scheduling--most.html"].tables["runs"].row("liar")
    assert row["message"] == "contradicted by another result"


def test_the_methods_of_a_family_by_hand(folder, pages):
    table = pages["family-topology.html"].tables["methods"]
    assert [row[0] for row in table.rows] == ["exact", "greedy", "crash"]
    # SGM √(3 · 11) - 1; times to a gap of 1 %: 2 and 10; integrals (1 + 1.15/12.65) / 60 and 10 / 60
    assert table.row("exact") == {
        "method": "exact", "instances": "2", "runs": "2", "answered": "100 %", "within target": "100 %", "wins": "2",
        "mean gap to best": "0 %", "mean gap to bound": "0 %", "time (SGM)": "4.74 s",
        "time to target (PAR-10)": "6 s", "primal integral": "9.2 %", "dual integral": "9.2 %",
    }  # fmt: skip
    # Primal gaps 1 for half a second, then 1.15/12.65, 1/2 and 1/101, and 1 for the error; dual gaps 0, 0, 1 and 1.
    # To best 1.15/12.65, 1/2 and 1/101, to the bound 1.15/12.65 and 1/2; one of four within 1 %: (0.5 + 3 · 600) / 4
    assert table.row("greedy") == {
        "method": "greedy", "instances": "2", "runs": "4", "answered": "75.0 %", "within target": "25.0 %",
        "wins": "0", "mean gap to best": "20.03 %", "mean gap to bound": "29.55 %",
        "time (SGM)": f"{(1.5**3 * 61) ** 0.25 - 1:.3g} s", "time to target (PAR-10)": "450 s",
        "primal integral": "40.5 %", "dual integral": "50.4 %",
    }  # fmt: skip
    assert table.row("crash")["time to target (PAR-10)"] == "600 s"
    assert table.row("crash")["mean gap to best"] == "–"
    csv = (folder / "tables" / "topology-methods.csv").read_text().splitlines()
    exact = dict(zip(csv[0].split(","), csv[1].split(","), strict=True))
    assert float(exact["time (SGM)"]) == pytest.approx(math.sqrt(33) - 1)
    assert float(exact["primal integral"]) == pytest.approx((1 + 1.15 / 12.65 + 10) / 120)
    assert r"\toprule" in (folder / "tables" / "topology-methods.tex").read_text()
    assert (folder / "tables" / "topology-methods.md").read_text().startswith("| method |")


def test_methods_in_pairs_by_hand(pages):
    table = pages["family-topology.html"].tables["pairs"]
    assert table.row("greedy") == {
        "method": "greedy", "wins": "0", "ties": "0", "losses": "2", "p": "0.500", "p (Holm)": "1.000",
    }  # fmt: skip


def test_in_pairs_only_instances_count_that_both_were_run_on():
    costs = np.array([[[0.1], [0.2]], [[0.1], [np.nan]], [[0.1], [np.inf]]])
    table = summary.pairs_table(costs, ["base", "other"], "base")
    assert table[["wins", "ties", "losses"]].to_numpy().tolist() == [[0, 0, 2]]


def test_a_proof_of_infeasibility_is_an_answer(pages):
    table = pages["family-scheduling.html"].tables["methods"]
    assert table.row("exact")["answered"] == "100 %"
    assert table.row("exact")["within target"] == "100 %"
    assert table.row("exact")["wins"] == "2"
    assert table.row("greedy")["answered"] == "50.0 %"
    assert table.row("greedy")["mean gap to best"] == "25.00 %"


def test_the_runs_of_an_instance(pages):
    table = pages["instances/topology--tiny-n4-d2.html"].tables["runs"]
    assert table.head == [
        "method", "seed", "status", "objective", "bound", "gap", "gap to best", "time", "memory", "message",
    ]  # fmt: skip
    assert table.rows == [
        ["exact", "0", "optimal (floating point)", "11.5 s", "11.5 s", "0 %", "0 %", "2 s", "100 MB", ""],
        ["greedy", "0", "feasible", "12.65 s", "11.5 s", "9.09 %", "9.09 %", "500 ms", "100 MB", ""],
        ["greedy", "1", "feasible", "23 s", "11.5 s", "50.00 %", "50.00 %", "500 ms", "100 MB", ""],
        ["ideal", "0", "reference", "5 s", "–", "–", "–", "1 s", "100 MB", ""],
        ["crash", "0", "crashed", "–", "–", "–", "–", "3 s", "100 MB", ""],
    ]
    odd = pages["instances/topology--b-odd.html"].tables["runs"]
    assert odd.rows[0][-1] == "superseded by a later run"


def test_the_librarys_bound_stands_beside_the_best(tmp_path):
    """A heuristic alone, without a bound: the library knows how far from optimal it can be."""
    instance = instance_row(ddlopt.load("topology/danoint").digest, "danoint")
    with Store(tmp_path / "r.sqlite") as store:
        store.add(run_row(instance, "greedy", 0, "feasible", 97.0, None), instance)
        store.add(run_row(instance, "wonder", 0, "feasible", 65.0, None), instance)
        folder = write_report(store, tmp_path / "out", pictures=0).parent
    page = Page(folder / "instances" / "topology--danoint.html")
    assert "Best bound65.6601 s; of the library, checked in whole numbers" in page.text
    assert "from the best known objective to the best bound, relative to the objective" in page.text
    assert page.tables["runs"].row("wonder")["message"] == "contradicted by another result"
    listed = Page(folder / "family-topology.html").tables["instances"].row("danoint")
    assert listed["best bound"] == "65.6601 s"


def test_lines_differ_by_more_than_colour():
    styles = range(charts.COLOURS * len(charts.DASHES))
    looks = [(style % charts.COLOURS, charts.dashes_of(style)) for style in styles]
    assert len(set(looks)) == len(looks)
    assert all(one[0] != other[0] and one[1] != other[1] for one, other in pairwise(looks))


def test_the_best_solution_is_drawn(folder, pages):
    (file,) = (folder / "pictures").iterdir()
    assert file.read_bytes().startswith(b"\x89PNG")
    assert pages["instances/topology--tiny-n4-d2.html"].sources[-1] == f"../pictures/{file.name}"
    assert "no solution to draw" in pages["instances/topology--b-odd.html"].text


def test_where_figures_come_from(pages):
    page, text = pages["provenance.html"], pages["provenance.html"].text
    assert page.tables["versions"].rows == [["ddlopt 0.1.0, numpy 2.0", "15"]]
    assert page.tables["commits"].rows == [["c0ffee", "15"]]
    assert page.tables["machines"].rows == [["Abacus 3, 2 cores, 8 GB, Linux", "15"]]
    assert "2026-01-01T00:00:00+00:00 to 2026-02-02T00:00:00+00:00" in text
    assert "--seeds 0-1" in text
    assert "effort = 1" in text


def test_runs_that_do_not_say_where_they_come_from(tmp_path):
    instance = instance_row("e" * 64, "one")
    with Store(tmp_path / "r.sqlite") as store:
        store.add(run_row(instance, "exact", 0, "optimal", 1.0, 1.0, machine={}, revision=None, versions={}), instance)
        page = Page(write_report(store, tmp_path / "out").parent / "provenance.html")
    tables = [page.tables[name].rows for name in ("versions", "commits", "machines")]
    assert tables == [[["not recorded", "1"]], [["none: an installed package", "1"]], [["not recorded", "1"]]]


def test_charts_say_in_words_what_they_show(pages):
    text = pages["family-topology.html"].text
    assert "exact meets the best known on 100 %" in text
    assert "exact gets there on 100 %; greedy gets there on 25 %; crash gets there on 0 %." in text


def test_a_baseline_and_a_target_of_ones_own(tmp_path):
    folder = written(make_store(tmp_path / "r.sqlite"), tmp_path / "out", baseline="greedy", target=0.1, pictures=0)
    page = Page(folder / "family-topology.html")
    assert page.tables["pairs"].row("exact")["wins"] == "2"
    assert page.tables["methods"].row("greedy")["within target"] == "50.0 %"
    assert "Against greedy" in page.text
    assert not (folder / "pictures").exists()


def test_a_report_takes_the_place_of_an_earlier_one(tmp_path):
    store = make_store(tmp_path / "r.sqlite")
    folder = written(store, tmp_path / "out", pictures=0)
    first = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    stale = folder / "instances" / "gone.html"
    stale.write_text("")
    listed = json.loads((folder / "report.json").read_text())
    (folder / "report.json").write_text(json.dumps([*listed, "instances/gone.html", "../r.sqlite"]))
    (folder / "notes.txt").write_text("mine")
    written(store, folder, pictures=0)
    assert not stale.exists()
    assert store.exists()
    assert (folder / "notes.txt").read_text() == "mine"
    assert {path: path.read_bytes() for path in first} == first


def test_runs_with_several_solvers_are_told_apart(tmp_path):
    instance = instance_row("e" * 64, "one")
    with Store(tmp_path / "r.sqlite") as store:
        for solver in ("highs", "scip"):
            store.add(run_row(instance, "exact", 0, "optimal", 1.0, 1.0, key=solver, solver=solver), instance)
        store.add(run_row(instance, "fast", 0, "feasible", 1.0, solver="highs"), instance)
        labels = read(store, 0.01).runs["label"].astype(str).tolist()
    assert labels == ["exact [highs]", "exact [scip]", "fast"]


def test_two_instances_of_one_name_have_a_page_each(tmp_path):
    with Store(tmp_path / "r.sqlite") as store:
        for digest in ("e" * 64, "f" * 64):
            instance = instance_row(digest, "One" if digest[0] == "e" else "one")
            store.add(run_row(instance, "exact", 0, "optimal", 1.0, 1.0, trace=[[0.5, 2.0, 1.0]]), instance)
        folder = write_report(store, tmp_path / "out").parent
    assert len(list((folder / "instances").iterdir())) == 2


def test_what_traces_say_is_what_the_functions_on_one_trace_say(tmp_path):
    store = make_store(tmp_path / "r.sqlite")
    with Store(store, write=False) as opened:
        data = read(opened, 0.01)
        runs = data.runs[data.runs["instance"] == "tiny-n4-d2"]
        family = curves.Curves(curves.grid(runs))
        more, own = curves.follow(opened, runs, curves.horizons(runs), family, data.target)
    trace = [[1.0, 12.65, 11.5], [2.0, 11.5, 11.5]]
    assert more["primal_part"].iloc[0] == pytest.approx(anytime.integral(trace, 11.5, 60.0) / 60)
    assert more["dual_part"].iloc[0] == pytest.approx(anytime.integral(trace, 11.5, 60.0, anytime.BOUND) / 60)
    assert more["to_target_s"].iloc[0] == statistics.time_to_target(trace, 11.5, 0.01) == 2.0
    assert own.primal["exact"].curve == pytest.approx(anytime.gap_at(trace, 11.5, family.at_s))
    assert "ideal" not in own.primal
    assert set(family.primal) == {"exact", "greedy", "crash"}


def test_claims_that_others_refute_and_what_was_reached_before_a_failure(tmp_path):
    instance = instance_row("e" * 64, "one")
    runs = [
        run_row(instance, "right", 0, "feasible", 10.0, 10.0),
        run_row(instance, "close", 0, "optimal", 10.0005, 10.0),
        run_row(instance, "none", 0, "infeasible"),
        run_row(instance, "worse", 0, "optimal", 11.0, None),
        run_row(instance, "beyond", 0, "feasible", 10.0, 12.0),
        run_row(instance, "ended", 0, "killed", None, 9.0, trace=[[0.5, 10.0, 9.0]]),
    ]
    with Store(tmp_path / "r.sqlite") as store:
        for run in runs:
            store.add(run, instance)
        folder = write_report(store, tmp_path / "out").parent
    wrong = Page(folder / "index.html").tables["wrong"]
    assert [row[1] for row in wrong.rows] == ["none", "worse", "beyond"]
    methods = Page(folder / "family-topology.html").tables["methods"]
    answered = {row[0]: methods.row(row[0])["answered"] for row in methods.rows}
    assert {name for name, part in answered.items() if part == "0.0 %"} == {"none", "ended"}
    assert methods.row("ended")["within target"] == methods.row("none")["within target"] == "0.0 %"
    assert methods.row("none")["wins"] == "0"
    assert methods.row("right")["within target"] == "100 %"


def test_the_typical_answer_of_the_seeds_wins(tmp_path):
    instance = instance_row("e" * 64, "one")
    with Store(tmp_path / "r.sqlite") as store:
        for seed, objective in enumerate((10.0, 15.0, 16.0)):
            store.add(run_row(instance, "lucky", seed, "feasible", objective), instance)
            store.add(run_row(instance, "steady", seed, "feasible", 11.0), instance)
        folder = write_report(store, tmp_path / "out").parent
    methods = Page(folder / "family-topology.html").tables["methods"]
    assert [methods.row(name)["wins"] for name in ("lucky", "steady")] == ["0", "1"]


def test_time_to_target_is_when_it_was_reached_not_when_the_run_ended(tmp_path):
    instance = instance_row("e" * 64, "one")
    with Store(tmp_path / "r.sqlite") as store:
        trace = [[1.0, 12.0, 9.0], [3.0, 10.0, 9.0]]
        store.add(run_row(instance, "early", 0, "feasible", 10.0, 9.0, 50.0, trace=trace), instance)
        store.add(run_row(instance, "late", 0, "feasible", 12.0, 9.0, 2.0), instance)
        folder = write_report(store, tmp_path / "out").parent
    methods = Page(folder / "family-topology.html").tables["methods"]
    assert methods.row("early")["time to target (PAR-10)"] == "3 s"
    assert methods.row("early")["time (SGM)"] == "50 s"
    assert methods.row("late")["time to target (PAR-10)"] == "600 s"


def test_a_sweep_may_go_on_meanwhile(tmp_path, monkeypatch):
    store, late = make_store(tmp_path / "r.sqlite"), instance_row("c" * 64, "most", "scheduling", "maximize", best=10.0)

    def follow(*arguments, first=curves.follow):
        with Store(store) as writing:
            writing.add(run_row(late, "late", 0, "feasible", 9.0), late)
        return first(*arguments)

    monkeypatch.setattr(curves, "follow", follow)
    folder = written(store, tmp_path / "out", pictures=0)
    assert len(Page(folder / "instances" / "scheduling--most.html").tables["runs"].rows) == 3
    folder = written(store, tmp_path / "out", pictures=0)
    assert len(Page(folder / "instances" / "scheduling--most.html").tables["runs"].rows) == 4


def test_large_tables_are_data_and_the_data_cannot_end_the_script(monkeypatch):
    monkeypatch.setattr(cells, "LARGEST_PLAIN", 2)
    columns = [cells.Column("name"), cells.Column("value", numeric=True)]
    values = [None, float("inf"), 2.0]
    rows = [[cells.Cell("</script>x", None, "a.html"), cells.number("n", value)] for value in values]
    text = str(cells.table("big", "Big", columns, rows))
    data = json.loads(text.partition('<script type="application/json">')[2].partition("</script>")[0])
    assert [row[0] for row in data] == [["</script>x", None, "a.html"]] * 3
    assert [row[1][1] for row in data] == [None, 1e300, 2.0]
    assert text.count("<tr>") == 3  # the head and two rows
    assert "2 of 3 rows" in text


def test_the_report_of_a_store_is_the_same_every_time(tmp_path):
    store = make_store(tmp_path / "r.sqlite")
    one, other = (written(store, tmp_path / name, pictures=0) for name in ("one", "other"))
    for path in one.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (other / path.relative_to(one)).read_bytes()
    assert Path(one / "index.html").is_file()


# Charts ---------------------------------------------------------------------------------------------------------------


def test_a_method_has_one_colour_on_all_pages(folder):
    styles = {}
    for path in folder.rglob("*.html"):
        text = path.read_text()
        keys = re.findall(r'<svg class="key (\w+)"[^>]*><path d="M0 5H28"([^>]*)/></svg><span>([^<]+)</span>', text)
        for colour, dashes, method in keys:
            if colour != "quiet":
                styles.setdefault(method, set()).add((colour, dashes))
    assert {"exact", "greedy", "liar", "crash"} <= set(styles)
    assert all(len(each) == 1 for each in styles.values())
    assert len({next(iter(each)) for each in styles.values()}) == len(styles)


def test_methods_of_a_family_never_share_a_style():
    pairs = [("f", f"m{k}") for k in range(40)] + [("g", "m39"), ("g", "other"), ("g", "m0")]
    styles = graphs.styles_of(pairs)
    for family in "fg":
        own = [styles[method] for each, method in pairs if each == family]
        assert len(set(own)) == len(own)


@pytest.mark.slow
def test_charts_are_saved_where_asked(tmp_path):
    store = make_store(tmp_path / "r.sqlite")
    folder = written(store, tmp_path / "out", save_charts=("png", "svg", "pdf"), pictures=0)
    names = {path.name for path in (folder / "charts").iterdir()}
    for start in ("topology-quality", "topology-performance", "scheduling-data", "summary-quality-0"):
        assert {f"{start}.{each}" for each in ("png", "svg", "pdf")} <= names
    assert (folder / "charts/topology-data.pdf").read_bytes().startswith(b"%PDF")
    linked = set()
    for path in folder.rglob("*.html"):
        for link in Page(path).links:
            if "charts/" in link:
                linked.add((path.parent / link).resolve().relative_to(folder.resolve()).as_posix())
                assert (path.parent / link).is_file(), f"{path}: {link}"
    assert linked == {f"charts/{name}" for name in names}, "each is on the page that it was drawn for"
    over_time = (folder / "charts/topology--tiny-n4-d2-convergence.svg").read_text()
    assert all(each in over_time for each in ("exact", "greedy", "best bound of all", "Mean primal gap over time"))
    assert not any("scheduling--none" in name for name in names), "no answer, no curve"
    assert {f"charts/{name}" for name in names} <= set(json.loads((folder / "report.json").read_text()))
    folder = written(store, folder, pictures=0)
    assert not list(folder.glob("charts/*")), "a later report without them leaves none behind"


def test_a_chart_is_saved_in_known_formats_only(tmp_path):
    store = make_store(tmp_path / "r.sqlite")
    with pytest.raises(OptionError, match="save_charts is 'gif'; use one of: png, pdf, svg"):
        written(store, tmp_path / "out", save_charts=("gif",))


def test_what_plans_lose_stands_behind_their_times():
    """In the table of runs of an instance, where any plan loses something."""
    row = {
        "label": "all", "seed": 0.0, "status": "feasible", "evidence": "solver", "objective": 0.02, "bound": 0.01,
        "gap_to_bound": 0.5, "gap_to_best": 0.0, "runtime_s": 1.0, "peak_memory_bytes": 1e6, "message": "",
        "current": True, "wrong": False,
    }  # fmt: skip
    shown = str(lists.runs(pd.DataFrame([row | {"error": 0.25}, row | {"error": math.nan}]), "s"))
    assert re.search(r"objective</th><th[^>]*>error</th>", shown)
    assert ">0.25</td>" in shown
    assert ">error</th>" not in str(lists.runs(pd.DataFrame([row | {"error": 0.0}]), "s"))
