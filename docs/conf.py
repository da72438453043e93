"""The documentation site: `make docs` builds it into build/docs."""

import re
import runpy
import shutil
import sys
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "ddlopt"
author = "ddlopt maintainers"
project_copyright = "ddlopt maintainers, Apache-2.0"
release = version = version_of("ddlopt")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax", "family"]
exclude_patterns = ["_*"]
nb_execution_mode = "off"  # what notebooks show is put in by docs/start/run.py, and compared by a test
nitpicky = True
# Names of other libraries are not looked up, as that would take a network; our own must all exist.
nitpick_ignore_regex = [("py:.*", r"(?!ddlopt\b).*"), ("py:.*", r"ddlopt\..*(\b_\w+|<locals>.*|\.[A-Z])")]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "exclude-members": "model_config, model_post_init"}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = ["Ports"]

highlight_language = "none"
python_maximum_signature_line_length = 100
html_theme = "furo"
html_title = f"ddlopt {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_search_summary = False  # they are fetched page by page, which takes a server
html_show_sourcelink = False
# MathJax is part of the site, so that reading it takes no network.
mathjax_path = "mathjax/tex-svg.js"
mathjax_options = {"defer": "defer"}


def _copy_mathjax(app: Any, failure: Exception | None) -> None:
    """Put the one file of MathJax that the pages load beside them."""
    if failure is None and app.builder.format == "html":
        package = find_spec("sphinx-mathjax-offline")
        (origin,) = package.submodule_search_locations
        target = Path(app.outdir, "_static", mathjax_path)
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(Path(origin, "static", mathjax_path), target)


def _draw_pictures(_app: Any) -> None:
    """Draw what the pages of problems show."""
    runpy.run_path(str(HERE / "pictures.py"))["draw_all"]()


def _write_library(app: Any, failure: Exception | None) -> None:
    """Put the library beside the pages, as a site of its own."""
    if failure is None and app.builder.format == "html":
        from ddlopt.analysis.library_site import write_site

        sys.path.insert(0, str(HERE.parent))  # for the benchmarks, which know the kept runs
        losses = runpy.run_path(str(HERE / "results" / "figures.py"))["kept_losses"]()
        write_site(Path(app.outdir, "library"), drawn=HERE.parent / "build" / "pictures", losses=losses)


def _without_long_signature(_app: Any, what: str, _name: str, thing: Any, *_rest: Any) -> tuple[str, str] | None:
    """Leave out the signature of a data class of fields: its docstring lists them with their units."""
    if what == "class" and hasattr(thing, "model_fields"):
        return "", ""
    return None


def _stay_inside(_app: Any, page: str, source: list[str]) -> None:
    """Show the index of the library, which lies outside of this folder, as a page of the site, and lead links there."""
    if page == "results/best_known":
        index = (HERE.parent / "instances/library/INDEX.md").read_text(encoding="utf-8")
        source[0] = re.sub(r"\[([^\]]+)\]\([^)]*\.json\)", r"\1", index)
    source[0] = re.sub(r"\]\((\.\./)+instances/library/INDEX\.md", "](/results/best_known.md", source[0])


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("builder-inited", _draw_pictures)
    app.connect("source-read", _stay_inside)
    app.connect("build-finished", _copy_mathjax)
    app.connect("build-finished", _write_library)
    app.connect("autodoc-process-signature", _without_long_signature)
