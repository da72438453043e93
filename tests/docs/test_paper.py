"""The page to cite becomes a PDF that has all of it."""

import re
import sys

import pytest
from doc_blocks import ROOT

sys.path.append(str(ROOT / "docs"))

import paper_pdf as paper


def test_what_goes_into_a_pdf():
    page = "<!-- a\nmark -->\n# A title\n\n## One\n\n9 %<!-- = x --> of [a](families/b.md#c), ![p](d.png), [e](https://f)\n\n[g](contributing.md)\n"
    title, text = paper.prepared(page)
    assert title == "A title"
    root = f"{paper.PROJECT['urls']['Homepage']}/blob/main"
    assert text.split("\n\n") == [
        "# One",
        f"9 % of [a]({root}/docs/families/b.md#c), ![p](d.png), [e](https://f)",
        f"[g]({root}/CONTRIBUTING.md)",
    ]


def test_the_page_is_set(tmp_path):
    for name in ("pypandoc", "typst"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'ddlopt[paper]'")
    made = paper.markup(paper.PAGE.read_text(encoding="utf-8"))
    text = paper.PAGE.read_text(encoding="utf-8")
    headings = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert [line.removeprefix("= ") for line in made.splitlines() if line.startswith("= ")] == headings
    assert made.count("#table(") == len(re.findall(r"^\|[-:| ]+\|$", text, re.MULTILINE))
    assert "<!--" not in made
    assert f"Version {paper.PROJECT['version']}" in made
    paper.write(tmp_path / "new" / "paper.pdf")
    assert (tmp_path / "new" / "paper.pdf").read_bytes().startswith(b"%PDF-")
