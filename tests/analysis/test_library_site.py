"""The library as a web site."""

import csv
import datetime
import json
import math
import re
from html.parser import HTMLParser

import pytest

from ddlopt.analysis import history
from ddlopt.analysis.history import Entry
from ddlopt.analysis.library_site import write_site
from ddlopt.instances import index
from ddlopt.instances.library.records import Bound, Found, Record
from ddlopt.models.errors import OptionError

NAMES = ("topology/all-to-all-n6-d2", "topology/tiny-n4-d2", "compression/sfb-random-n60", "codesign/dlrm-n12-d4")


class Links(HTMLParser):
    """What a page leads to, and what has no name for a screen reader."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.ids, self.unnamed = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids.add(given.get("id"))
        self.targets += [given[key] for key in ("href", "src") if given.get(key)]
        if (tag == "img" and not given.get("alt")) or (tag == "html" and not given.get("lang")):
            self.unnamed.append(tag)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    losses = {("topology/tiny-n4-d2", "topology-finder"): 0.5, ("topology/all-to-all-n6-d2", "topology-finder"): 0.0}
    write_site(folder, NAMES, folder.parent / "kept", losses)
    return folder


def test_every_link_leads_somewhere(site):
    pages = {file: Links(file.read_text(encoding="utf-8")) for file in site.rglob("*.html")}
    assert len(pages) > len(NAMES)
    outside = {"index.html", "contributing.html", "results/open.html", "reference/methods.html"}
    for file, page in pages.items():
        assert not page.unnamed
        for target in page.targets:
            address, _, part = target.partition("#")
            if address == "data:,":
                continue
            assert not re.match(r"\w+:|/", address), "needs a network"
            to = (file.parent / address).resolve() if address else file.resolve()
            if not to.is_relative_to(site.resolve()):
                assert str(to.relative_to(site.parent.resolve())) in outside
                continue
            assert to.is_file(), f"{file}: {target}"
            assert not part or part in Links(to.read_text(encoding="utf-8")).ids


def test_a_method_that_was_run_has_a_profile(site):
    """Before a test writes the site again, without losses."""
    text = (site / "methods/topology--topology-finder.html").read_text(encoding="utf-8")
    told = "Of 2 solutions 1 within 0.01%, 1 within 1%, 1 within 10%, 2 within 100% of the best known."
    assert f'aria-label="{told}"' in text
    path = re.search(r'<path d="M[\d.]+,158.0H44.0V83.0H([\d.]+)V8.0H464.0"', text)
    assert float(path[1]) == pytest.approx(44 + 420 * (math.log10(0.5) + 4) / 5, abs=0.1)
    assert text.count("<svg") == 1
    assert "<svg" not in (site / "methods/topology--expander.html").read_text(encoding="utf-8")


def test_tables_say_what_the_index_says(site):
    rows = list(csv.DictReader((site / "library.csv").read_text(encoding="utf-8").splitlines()))
    data = json.loads((site / "library.json").read_text(encoding="utf-8"))
    assert {row["name"] for row in rows} == {row["name"] for row in data} == set(NAMES)
    for row in data:
        listed = index.read().instances[row["name"]]
        assert (row["objective"], row["bound"], row["digest"]) == (listed.objective, listed.bound, listed.digest)
        page = (site / "instances" / f"{row['name'].replace('/', '--')}.html").read_text(encoding="utf-8")
        assert listed.digest in page


def test_downloads_check(site, call):
    stem = NAMES[0].replace("/", "--")
    files = [site / "files" / f"{stem}.json.gz", site / "solutions" / f"{stem}.best.json.gz"]
    proof = next((site / "certificates").glob(f"{stem}.*"))
    code, out, err = call("check", *files, "--certificate", proof)
    assert code == 0, err
    assert "feasible" in out
    assert call("check", *files, "--exact")[0] == 0


def test_a_picture_is_drawn_once(site):
    kept = {file: file.stat().st_mtime_ns for file in (site.parent / "kept").iterdir()}
    assert len(kept) == len(list((site / "pictures").iterdir())) == len(NAMES)
    write_site(site, NAMES, site.parent / "kept")
    assert {file: file.stat().st_mtime_ns for file in (site.parent / "kept").iterdir()} == kept


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(OptionError, match="do not belong"):
        write_site(tmp_path, NAMES)


def record(day, objective, bound):
    date = datetime.date(2026, 1, day)
    common = {"seed": 0, "version": "0.1.0", "date": date, "seconds": 1.0}
    found = Found(method="a", objective=objective, digest="d", **common)
    return Record(instance_digest="i", found=found, bound=Bound(method="b", value=bound, **common))


def test_history_has_an_entry_whenever_something_is_better():
    first = history.extended([], record(1, 2.0, 1.0))
    assert first == [Entry("2026-01-01", 2.0, "a", 1.0, "b")]
    assert history.extended(first, record(2, 2.0 * (1 + 1e-12), 1.0)) == first
    assert history.extended(first, None) == first
    better = history.extended(first, record(2, 1.5, 1.0))
    assert better == [*first, Entry("2026-01-02", 1.5, "a", 1.0, "b")]
    assert history.extended(better, record(2, 1.5, 1.25)) == [*first, Entry("2026-01-02", 1.5, "a", 1.25, "b")]


def test_history_ends_with_what_is_known():
    known = history.read()
    for name, listed in index.read().instances.items():
        last = known[name][-1]
        assert (last.objective, last.bound) == (
            pytest.approx(listed.objective, rel=1e-9), pytest.approx(listed.bound, rel=1e-9),
        )  # fmt: skip
