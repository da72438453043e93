"""What README and reference say of methods, examples and results is the truth; code blocks and links: ``test_docs``."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import ddlopt
from ddlopt.instances import record as library_record

ROOT = Path(__file__).resolve().parents[2]
DRAWN = (("tag", "sfb-bert-base-b4-w2-25g"), ("espresso", "espresso-resnet101-dgc-pcie"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("script", ["own_instance", "own_heuristic"])
def test_examples_run(script, tmp_path):
    words = [sys.executable, ROOT / "examples" / f"{script}.py"]
    run = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout


@pytest.mark.slow
def test_the_example_that_trains_runs(tmp_path):
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn: pip install 'ddlopt[train]'")
    words = [sys.executable, ROOT / "examples" / "run_plan.py", "--steps", "1", "--train", "2"]
    run = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "error of the whole gradient over 1 steps" in run.stdout
    assert "accuracy after 2 steps with the plan and error feedback" in run.stdout


@pytest.mark.slow
def test_the_demo_has_a_table_and_a_picture_for_each_pillar(tmp_path):
    """The pillar that solves quickest; the table fits on a terminal, and what is called proven is."""
    words = [sys.executable, ROOT / "examples" / "demo.py", "--only", "compression"]
    run = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert [file.name for file in (tmp_path / "demo").iterdir()] == ["compression.png"]
    assert max(len(line.rstrip()) for line in run.stdout.splitlines()) <= 80
    rows = re.findall(r"(tag|min-cut|espresso|exact) +[\d.]+ ms +(optimal, proven|[\d.]+ % worse) ", run.stdout)
    tag, espresso = (losses("compression_gap", method, instance) for method, instance in DRAWN)
    expected = ["optimal, proven"] * 6
    expected[2], expected[4] = (f"{loss:.3g} % worse" for (loss,) in (tag.values(), espresso.values()))
    assert [verdict for _, verdict in rows] == expected


def test_the_demo_asks_for_what_there_is():
    demo = runpy.run_path(str(ROOT / "examples/demo.py"), run_name="demo")
    cases = [case for pillar in demo["PILLARS"] for case in pillar.cases] + list(demo["OTHERS"])
    assert {name.partition("/")[0] for name, _, _ in cases} == set(ddlopt.families())
    assert {name for name, _, _ in cases} | set(demo["LIMITS_S"]) <= set(ddlopt.names())
    for name, _, methods in cases:
        assert set(methods) <= set(ddlopt.methods(name.partition("/")[0]))
    assert all(page.exists() for page in map(ROOT.joinpath, re.findall(r"docs/[\w/]+\.md", demo["READ_ON"])))


def test_the_page_of_methods_is_what_the_catalogue_says():
    script = runpy.run_path(str(ROOT / "docs/reference/methods.py"))
    page = script["page"]()
    assert page == script["PAGE"].read_text(encoding="utf-8"), "run: python docs/reference/methods.py"
    for family, part in zip(ddlopt.families(), re.split(r"^## .*\n", page, flags=re.MULTILINE)[1:], strict=True):
        rows = re.findall(r"^\| `([a-z-]+)` \| (\w+) \| ", part, re.MULTILINE)
        assert set(rows) == {(name, kind) for name, kind, _ in ddlopt.describe(family)}


def test_the_front_page_stays_short():
    """What is longer belongs into the documentation."""
    assert len(README.splitlines()) <= 180


# What came out ----------------------------------------------------------------------------------------------------


def losses(page, method, instances):
    """Percent that a method loses against the best known solution, by the generated table of a family."""
    found = {}
    text = (ROOT / f"docs/results/{page}.md").read_text(encoding="utf-8")
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
        for row in rows:
            if method in header and re.fullmatch(instances, row[0]):
                found[row[0]] = float(re.sub(r"[<% ]", "", row[header.index(method)]))
    assert found
    return found


def recorded(name):
    """Best known objective, and the gap that is left to the best known bound."""
    record = library_record(name)
    found, bound = float(record.found.objective), float(record.bound.value)
    return found, abs(bound - found) / max(found, bound)


def said(pattern):
    """The figures in a sentence of the README."""
    (figures,) = re.findall(pattern, " ".join(README.split()))
    return [float(each) for each in ([figures] if isinstance(figures, str) else figures)]


def about(figure, value):
    """The figure is the value, rounded to the figure's last digit."""
    digits = len(str(figure).partition(".")[2]) if figure != int(figure) else 0
    return abs(value - figure) <= 0.5 * 10**-digits + 1e-9


def test_topology_came_out_like_this():
    least, most, danoint = said(r"([\d.]+) to ([\d.]+) % from the best known on DLRM, and ([\d.]+) % on MIPLIB")
    dlrm = losses("topology_gap", "topology-finder", r"dlrm-n.*").values()
    assert about(least, min(dlrm))
    assert about(most, max(dlrm))
    assert about(danoint, *losses("topology_gap", "topology-finder", "danoint").values())
    assert said(r"its links are ([\d.]+) % worse") == [danoint]
    optimum, gap = recorded("topology/danoint")
    assert optimum == pytest.approx(197 / 3)
    assert gap < 2e-4
    only_all_reduce = r"(bert|candle|resnet50|vgg16)-n.*"
    assert set(losses("topology_gap", "topology-finder", only_all_reduce).values()) == {0.0}


def test_scheduling_came_out_like_this():
    elastic, hour = said(r"it is within ([\d.]+) %, on a real hour of Philly ([\d.]+) %")
    assert max(losses("scheduling_gap", "gadget", r"elastic-.*").values()) <= elastic
    assert losses("scheduling_gap", "gadget", "departures-half") == {"departures-half": 50.0}
    optimum, gap = recorded("scheduling/philly-hour-j49-t48-g32")
    assert gap < 1e-4
    greedy = ddlopt.solve("scheduling/philly-hour-j49-t48-g32", "gadget").objective
    assert about(hour, 100 * (1 - greedy / optimum))


def test_compression_came_out_like_this():
    least, most = said(r"Espresso's greedy loses (\d+) to (\d+) % on PCIe")
    lost = losses("compression_gap", "espresso", r"espresso-.*-pcie").values()
    assert about(least, min(lost))
    assert about(most, max(lost))
    assert set(losses("compression_gap", "tag", r"sfb-.*-tag").values()) == {0.0}
    assert max(losses("compression_gap", "espresso-all-sizes", r"espresso-.*-pcie").values()) < 1


def test_codesign_came_out_like_this():
    (times,) = said(r"up to ([\d.]+) times as fast as in turn")
    assert about(times, 1 + max(losses("codesign_gap", "alternating", r".*-n(12|16|32|64|128)-d\d").values()) / 100)


def test_deployment_came_out_like_this():
    times, bound = said(r"ours is ([\d.]+) times as fast as both, within (\d+) % of a bound")
    for method in ("tag", "data-parallel"):
        assert about(times, 1 + losses("deployment_gap", method, "vgg19-testbed")["vgg19-testbed"] / 100)
    assert 100 * recorded("deployment/vgg19-testbed")[1] <= bound


def test_gossip_came_out_like_this():
    matcha, ours = said(r"falls from ([\d.]+) to ([\d.]+) at the same budget")
    assert about(matcha, ddlopt.solve("gossip/matcha-n8-50", "matcha").objective)
    assert about(ours, recorded("gossip/matcha-n8-50")[0])
