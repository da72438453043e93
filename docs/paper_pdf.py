"""The page to cite, ``docs/paper.md``, as a PDF of A4 pages.

``make paper`` writes ``build/paper.pdf``; by hand, ``python docs/paper_pdf.py paper.pdf``. Pandoc makes Typst's markup
of the page, and Typst sets it; both are in the extra ``paper``.
"""

import re
import sys
import tempfile
import tomllib
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "paper.md"
PROJECT = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOOKS = """
#set document(title: "TITLE")
#set page(paper: "a4", margin: (x: 2cm, y: 2.1cm), numbering: "1", header: context if counter(page).get().first() > 1 [
  #set text(size: 8pt, fill: luma(35%))
  TITLE #h(1fr) VERSION
])
#set text(size: 10pt, lang: "en", region: "gb")
#set par(justify: true, leading: 0.58em)
#set heading(numbering: "1")
#show heading: set block(above: 1.3em, below: 0.7em)
#show heading: set text(size: 11pt)
#show raw: set text(size: 8.5pt)
#show link: set text(fill: rgb("#1f4e8c"))
#show figure: set block(breakable: true)
#show table: set text(size: 8.6pt)
#show table: set par(justify: false)
#show table: set align(left)
#show table: it => { show raw: set text(size: 7.4pt); it }
#set table(stroke: none, inset: (x: 5pt, y: 2.6pt))
#set image(width: 100%)
#align(center)[
  #text(size: 16pt, weight: "bold")[TITLE]

  #text(size: 9pt)[AUTHORS. VERSION. #link("HOME")]
]
#v(0.6em)
"""


def prepared(page: str) -> tuple[str, str]:
    """The title, and the page below it: without comments, sections one level up, links out of it to the repository."""
    title, _, text = re.sub(r"<!--.*?-->", "", page, flags=re.DOTALL).lstrip().partition("\n")
    text = re.sub(r"^##", "#", text, flags=re.MULTILINE)
    text = re.sub(r"(?<!!)(\[[^\]]*\])\(([^)\s]+)\)", lambda found: f"{found[1]}({_address(found[2])})", text)
    return title.removeprefix("# "), text.strip()


def _address(target: str) -> str:
    """Where a link leads for whoever has the PDF alone."""
    if "://" in target or target.startswith("#"):
        return target
    if target.startswith("contributing.md"):  # the page that this one includes
        return f"{PROJECT['urls']['Homepage']}/blob/main/CONTRIBUTING.md{target.removeprefix('contributing.md')}"
    return f"{PROJECT['urls']['Documentation'].replace('/tree/', '/blob/')}/{target}"


def markup(page: str) -> str:
    """The page in Typst's markup."""
    import pypandoc

    title, text = prepared(page)
    body = pypandoc.convert_text(text, "typst", format="gfm+tex_math_dollars-tex_math_gfm", extra_args=["--wrap=none"])
    looks = LOOKS.replace("TITLE", title).replace("VERSION", f"Version {PROJECT['version']}")
    looks = looks.replace("AUTHORS", PROJECT["authors"][0]["name"]).replace("HOME", PROJECT["urls"]["Homepage"])
    return f"{looks}\n#let horizontalrule = line(length: 100%)\n{body}"


def write(path: Path) -> None:
    """Set the page."""
    import typst

    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "paper.typ")
        source.write_text(markup(PAGE.read_text(encoding="utf-8")).replace('image("', f'image("{DOCS}/'), "utf-8")
        typst.compile(source, output=path, root="/")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
    print(sys.argv[1])
