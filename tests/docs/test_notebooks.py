"""The notebooks of the documentation run, and print what they show."""

import runpy

import pytest
from doc_blocks import ROOT
from volume import some

RUN = runpy.run_path(str(ROOT / "docs/start/run.py"))
# First the quickest, which always runs.
NOTEBOOKS = sorted(RUN["FOLDER"].glob("*.ipynb"), key=lambda path: (path.stem != "my_heuristic", path.stem))


def shown(cell):
    """What a cell prints, and its pictures; not the text where another machine may find an equal optimum."""
    kinds = [output["output_type"] for output in cell["outputs"]]
    text = [] if "output-varies" in cell["metadata"].get("tags", ()) else [out.get("text") for out in cell["outputs"]]
    return kinds, text


@pytest.mark.parametrize("path", some(NOTEBOOKS, 1), ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(path):
    kept = RUN["json"].loads(path.read_text(encoding="utf-8"))
    again = RUN["executed"](path)
    assert any(cell["outputs"] for cell in RUN["code_cells"](kept))
    for before, now in zip(RUN["code_cells"](kept), RUN["code_cells"](again), strict=True):
        assert shown(now) == shown(before), "".join(before["source"])


def test_the_notebooks_are_there():
    assert [path.stem for path in NOTEBOOKS] == [
        "my_heuristic",
        "my_cluster",
        "my_file",
        "my_job",
        "my_large_model",
        "my_model",
    ]
