"""Every code block of README, contribution guide and documentation runs, and prints what the page says it prints."""

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from doc_blocks import PAGES, ROOT, Block, all_blocks, blocks
from volume import for_each, some

import ddlopt
from ddlopt.cli import app
from ddlopt.models.errors import SolverMissingError
from ddlopt.solvers.backends import backend
from ddlopt.solvers.names import listed, split

LANGUAGES = {"python", "console", "toml", "json", "text"}
NOT_RUN, SLOW, SHORTENED, VARYING = 13, 1, 2, 7
"""Blocks that nothing runs, that only the slow tests run, that get less time, and whose output is not compared.

Each says why. Only ever make these smaller, or find a very good reason.
"""
QUICK = ("README.md", "docs/families/gossip/matchings.md", "docs/howto/own_instance.md")
"""Pages that the default tests work through; the slow ones take all."""
PICTURES = runpy.run_path(str(ROOT / "docs/pictures.py"))
_SECONDS = re.compile(r"\b\d+\.\d+ s(?= +(yes|no|–|-) *$)", re.MULTILINE)


class Reader:
    """Somebody who works through a page, in a folder of their own."""

    def __init__(self, folder: Path, call, monkeypatch):
        self.folder, self.call, self.monkeypatch = folder, call, monkeypatch
        self.names = {"__name__": "__main__"}

    def follow(self, block: Block):
        place = f"{block.page}:{block.line}"
        if "file" in block.notes:
            file = self.folder / block.notes["file"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as said:
                exec(compile("\n" * block.line + block.text, place, "exec"), self.names)
            self.compare(place, block, block.output, said.getvalue())
        elif block.language == "console":
            for command, expected in block.commands():
                self.compare(f"{place}: {command}", block, expected, self.run(command, block.time_limit))

    def run(self, command: str, time_limit: str | None) -> str:
        """What a command prints."""
        program, *words = shlex.split(command, comments=True)
        if time_limit is not None:
            words[words.index("--time-limit") + 1] = time_limit
        for option in {"--solver", "--solvers"} & set(words):
            need(words[words.index(option) + 1].split(","))
        if program == "ddlopt" and words[0] == "bench":  # which starts processes of its own
            return self.process([Path(sys.executable).with_name("ddlopt"), *words], self.folder)
        if program == "ddlopt":
            code, out, err = self.call(*words)
            assert code == 0, err
            return out
        if program == ".":  # the environment is the one that runs the tests
            return ""
        if program == "make":
            targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert set(words) <= set(targets)
            return ""
        if program == "pip":
            return self.install(words)
        if program in ("cat", "ls", "mkdir", "cd"):
            return self.builtin(program, words)
        if program in ("python", "pytest", "ruff"):
            return self.of_python(program, words)
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
        return self.process([program, *words], self.folder)

    def of_python(self, program: str, words: list[str]) -> str:
        """Python itself on a file of the page, or on one of the repository; tools run in the repository."""
        if find_spec(program) is None and program != "python":  # style is no matter of the tests
            return ""
        here = program == "python" and not words[0].startswith(("examples/", "benchmarks", "docs/reference/"))
        module = [] if program == "python" else ["-m", program]
        return self.process([sys.executable, *module, *words], self.folder if here else ROOT)

    def process(self, words: list[str], folder: Path) -> str:
        path = os.pathsep.join([str(self.folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
        run = subprocess.run(words, capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": path})
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    def install(self, words: list[str]) -> str:
        """``pip install FOLDER`` goes into a folder of the page's own, which Python then looks into."""
        assert words[0] == "install"
        assert len(words) == 2
        options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
        self.process([sys.executable, "-m", "pip", "install", *options, "--target", "site", words[1]], self.folder)
        self.monkeypatch.syspath_prepend(self.folder / "site")
        return ""

    def builtin(self, program: str, words: list[str]) -> str:
        if program == "cd":
            assert (self.folder / words[0]).is_dir()
            self.monkeypatch.chdir(self.folder / words[0])
            return ""
        return self.process([program, *words], Path.cwd())

    def compare(self, place: str, block: Block, expected: list[str] | None, printed: str):
        if expected and any(line.strip() for line in expected) and block.compared:
            assert stable("\n".join(expected)) == stable(printed), place


def need(solvers: list[str]):
    """Skip the page where a solver is missing."""
    for solver in solvers:
        try:
            backend(solver)
        except SolverMissingError as missing:
            pytest.skip(str(missing))


def stable(text: str) -> list[str]:
    """What is the same on every machine: words without times and without the lengths of lines and blanks."""
    lines = (" ".join(line.replace("─", "").split()) for line in _SECONDS.sub("# s", text).splitlines())
    return [line for line in lines if line]


def followed(page: str, slow: bool) -> list[Block]:
    return [block for block in blocks(page) if "not run" not in block.notes and (slow or "slow" not in block.notes)]


def read(page, slow, tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path, call, monkeypatch)
    for block in followed(page, slow):
        reader.follow(block)


def runs(page: str, slow: bool) -> bool:
    return any(block.language in ("python", "console") for block in followed(page, slow))


@pytest.mark.parametrize("page", some([page for page in PAGES if runs(page, slow=False)], QUICK))
def test_page(page, tmp_path, call, monkeypatch):
    read(page, False, tmp_path, call, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if any("slow" in block.notes for block in blocks(page))])
def test_page_with_what_takes_long(page, tmp_path, call, monkeypatch):
    read(page, True, tmp_path, call, monkeypatch)


def test_languages_are_known():
    assert {block.language for block in all_blocks()} <= LANGUAGES
    for block in all_blocks():
        if block.language == "toml":
            assert tomllib.loads(block.text)


def test_what_is_not_run_does_not_grow():
    counts = Counter(kind.rstrip(" 0123456789") for block in all_blocks() for kind in block.notes)
    assert counts["not run"] <= NOT_RUN
    assert counts["slow"] <= SLOW
    assert counts["time limit"] <= SHORTENED
    assert counts["output varies"] <= VARYING


def test_what_is_not_run_names_what_exists():
    """Commands, instances and methods; of all blocks, as those that are run with less time may leave some out."""
    commands = {command.name or command.callback.__name__.replace("_", "-") for command in app.registered_commands}
    commands |= {group.name for group in app.registered_groups}
    asked = [
        shlex.split(line, comments=True)
        for block in all_blocks()
        if block.language == "console"
        for line, _ in block.commands()
        if line.startswith("ddlopt ")
    ]
    assert len(asked) > 20
    for _, command, *words in asked:
        assert command in commands
        families = {word.split("/")[0] for word in words if "/" in word} & set(ddlopt.families())
        assert {word for word in words if word.split("/")[0] in families and "*" not in word} <= set(ddlopt.names())
        if "--methods" in words:
            known = {name for family in families or ddlopt.families() for name in ddlopt.methods(family)}
            chosen = {split(method)[0] for method in listed(words[words.index("--methods") + 1])}
            assert chosen <= {*known, "auto", "all-heuristics", "all-exact", "large-only"}


def test_make_targets_that_pages_name_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"`make ([a-z-]+)`", (ROOT / page).read_text(encoding="utf-8")))
        assert named <= targets, page


def prose(page: str) -> str:
    """A page without code, in which brackets are no links."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\$\$.*?\$\$|\$[^$\n]*\$|`[^`\n]*`", "", text, flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in addresses."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@for_each("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target:
            assert re.fullmatch(r"https?://[\w.-]+\.[a-z]+(/\S*)?", target), target
            continue
        path, _, anchor = target.partition("#")
        file = ((ROOT / page).parent / path) if path else ROOT / page
        if page.startswith("docs/") and path in ("contributing.md", "changelog.md"):
            file = ROOT / path.upper().replace(".MD", ".md")
        drawn = "/_pictures/" in target and file.stem in {name.replace("/", "_") for name in PICTURES["DRAWN"]}
        assert drawn or file.exists(), target
        if anchor:
            assert anchor in anchors(file), target


def test_every_family_has_a_guide_and_a_reference():
    contents = (ROOT / "docs/index.md").read_text() + (ROOT / "docs/reference/api/index.md").read_text()
    for family in ddlopt.families():
        single = (ROOT / "docs/families" / f"{family}.md").exists()  # its folder is the room of a problem
        guide = f"families/{family}" + ("" if single else "/index")
        for page in (f"{guide}.md", f"reference/api/{family}.rst", f"reference/api/{family}_blocks.rst"):
            assert (ROOT / "docs" / page).exists(), page
        assert len(re.findall(rf"^({guide}|{family})$", contents, re.MULTILINE)) == 2, family
