"""Runs the notebooks of this folder and keeps what their cells print: ``python docs/start/run.py``.

Each notebook is a list of plain Python cells, which run in one process from top to bottom; no kernel is needed.
"""

import base64
import contextlib
import io
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def executed(path: Path) -> dict[str, Any]:
    """The notebook with the outputs that its cells have now: what they print, and the picture ``figure`` they leave."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for count, cell in enumerate(code_cells(notebook), 1):
            names["figure"] = None
            with contextlib.redirect_stdout(io.StringIO()) as said:
                exec(compile("".join(cell["source"]), f"{path.name}, code cell {count}", "exec"), names)
            cell["execution_count"] = count
            cell["outputs"] = list(outputs(said.getvalue(), names["figure"]))
    return notebook


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells that run."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def outputs(printed: str, figure: Any) -> Iterator[dict[str, Any]]:
    """What a cell shows, in the format of notebooks."""
    if printed:
        yield {"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}
    if figure is not None:
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=65, bbox_inches="tight", metadata={"Software": None})
        data = {"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": ["<Figure>"]}
        yield {"data": data, "metadata": {}, "output_type": "display_data"}


def text_of(notebook: dict[str, Any]) -> str:
    """The file of a notebook."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for each in sorted(FOLDER.glob("*.ipynb")):
        each.write_text(text_of(executed(each)), encoding="utf-8")
        print(each.name)
