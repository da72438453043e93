"""A page for every problem, all with the same headings, that says of data and models what the code says; and names.

Whatever a page of the documentation calls by name is there: classes, modules, files.
"""

import importlib
import inspect
import re
import runpy
from functools import cache
from importlib import metadata

import pytest
from doc_blocks import PAGES, ROOT
from volume import some

from ddlopt.models.catalogue import FAMILY_NAMES
from ddlopt.models.catalogue import family as family_of

CODE = runpy.run_path(str(ROOT / "docs/families/from_code.py"))
PICTURES = runpy.run_path(str(ROOT / "docs/pictures.py"))
HEADINGS = [
    "The question",
    "Data",
    "Decisions",
    "Objective",
    "The model",
    "Bounds",
    "Methods",
    "What was found",
    "What is not modelled",
]
QUICK = ("compression/sfb", "gossip/weights")
ELSEWHERE = {"Disjunct", "DynFlatScheduler", "LinearExpression", "None", "SkylakeX", "Zen"}
"""Names of others."""
PROBLEMS = CODE["problems"]()
GROUPS = {point.group for point in metadata.distribution("ddlopt").entry_points}
"""Of entry points, by which packages are found."""


def text_of(page):
    return (ROOT / "docs/families" / f"{page}.md").read_text(encoding="utf-8")


def all_of(page):
    """The page of a problem, and those beside it."""
    return "\n".join(file.read_text(encoding="utf-8") for file in CODE["pages"](page))


@pytest.mark.parametrize("page", PROBLEMS)
def test_every_problem_has_a_page_with_the_same_headings(page):
    text = re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    for heading, part in zip(HEADINGS, re.split(r"^## .*$", text, flags=re.MULTILINE)[1:], strict=True):
        assert len(part.split()) > 5, heading
    assert f"_pictures/{page.replace('/', '_')}.png" in text
    assert page in PICTURES["DRAWN"]
    marks = {kind for _, kind, *_ in CODE["MARK"].findall(all_of(page))}
    assert marks | {"model"} == {"data", "model", "methods"}
    assert "model" in marks or "There is no formulation" in text


@pytest.mark.parametrize("page", some(PROBLEMS, QUICK))
def test_a_page_says_what_the_code_says(page):
    for file in CODE["pages"](page):
        text = file.read_text(encoding="utf-8")
        assert CODE["written"](page, text) == text, "run: python docs/families/from_code.py"


@pytest.mark.parametrize("page", some(PROBLEMS, QUICK))
def test_every_component_of_every_formulation_is_in_a_table(page):
    """Counted on the models themselves, not by what wrote the tables."""
    family, problem = PROBLEMS[page]
    siblings = [all_of(other) for other, (its, _) in PROBLEMS.items() if its == family]
    tables = {
        names: set(re.findall(r"^\| `(\w+)", body, re.MULTILINE))
        for text in siblings
        for names, body in re.findall(r"<!-- from code: model (\w+) -->(.*?)<!-- end -->", text, re.DOTALL)
    }
    found = CODE["formulations"](family, problem)
    assert found or "There is no formulation" in all_of(page)
    for kind in found:
        for block in CODE["builds"](family, problem, kind):
            if hasattr(block, "component_objects"):
                built = {each.local_name for each in block.component_objects(descend_into=False)}
                left_out = {each.local_name for each in block.component_objects(set_types(), descend_into=False)}
                assert built - left_out <= tables[kind.__name__], kind
                assert {each for each in built & left_out if block.component(each).doc} <= tables[kind.__name__]
            else:
                assert set(block.var_dict) <= tables[kind.__name__], kind


def set_types():
    from pyomo.environ import RangeSet, Set

    return Set, RangeSet


@pytest.mark.slow
def test_no_formulation_is_forgotten():
    """Every class with ports is on the page of a problem."""
    shown = {name for page in PROBLEMS for name in re.findall(r"from code: model (\w+)", all_of(page))}
    for family in FAMILY_NAMES:
        for name, kind in CODE["classes"](family).items():
            if "\nPorts\n-----" in (inspect.getdoc(kind) or "") and kind.__module__.startswith(
                f"ddlopt.models.{family}"
            ):
                assert name in shown, name


@pytest.mark.parametrize("family", sorted({family for family, _ in PROBLEMS.values() if family not in PROBLEMS}))
def test_the_page_of_a_family_names_the_classes_of_its_problems(family):
    text = (ROOT / "docs/families" / family / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[?`(\w+)`.*?\| `(\w+)`, `(\w+)` \|", text, re.MULTILINE)
    kind = family_of(family)
    assert {problem: names for problem, *names in rows} == {
        problem: [kind.instance.variants[problem].__name__, kind.solution.variants[problem].__name__]
        for its, problem in PROBLEMS.values()
        if its == family
    }


# Names ------------------------------------------------------------------------------------------------------------


@cache
def our_names():
    """Names of all that is defined in a module of ours; to import all modules takes longer than to read them."""
    defined = re.compile(r"^(?:class|def) (\w+)|^(\w+)(?:: [^=\n]+)? = ", re.MULTILINE)
    files = (file for room in ("models", "certificates", "solvers", "instances", "analysis", "frontier")
             for file in (ROOT / room).rglob("*.py"))  # fmt: skip
    return {name for file in files for found in defined.findall(file.read_text(encoding="utf-8")) for name in found}


def spans(page):
    """What stands in backticks on a page, outside of blocks of code."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return set(re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text))


def test_classes_that_pages_name_exist():
    for page in PAGES:
        named = {match[1] for span in spans(page) if (match := re.match(r"([A-Z][a-z]\w*)(?:[.(]|$)", span))}
        assert named - ELSEWHERE <= our_names(), page


def test_dotted_names_that_pages_name_exist():
    for page in PAGES:
        for span in spans(page):
            for name in re.findall(r"\bddlopt(?:\.\w+)+", span):
                assert name in GROUPS or resolved(name), f"{page}: {name}"


def resolved(name):
    """Whether a dotted name is a module or something in one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            fields = getattr(thing, "model_fields", {}) | getattr(thing, "__dataclass_fields__", {})
            if not hasattr(thing, part) and part not in fields:
                return False
            thing = getattr(thing, part, None)
        return True
    return False


def test_files_that_pages_name_exist():
    rooms = (
        r"(?:models|certificates|solvers|instances|analysis|frontier|ddlopt|tests|benchmarks|examples|docs)/[\w./-]*\w"
    )
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for path in re.findall(rf"(?:`|python )({rooms}\.(?:py|md|json|txt))\b", text):
            made_up = re.search(r"[A-Z]{3}", path.rpartition("/")[0] + path.rpartition("/")[2].partition(".")[0])
            assert made_up or (ROOT / path).exists(), f"{page}: {path}"


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("warm start", "howto/solvers"),
        ("embed", "howto/embedding"),
        ("Gurobi", "howto/solvers"),
        ("big-M", "families/topology"),
        ("valid inequalit", "families/topology/proofs"),
        ("reduced cost", "families/aggregation/hot"),
        ("incumbent", "howto/solvers"),
        ("incumbent", "families/topology/proofs"),
        ("residual capacit", "families/aggregation/tree"),
        ("neighbourhood", "families/topology/proofs"),
    ],
)
def test_search_finds_the_words_of_the_field(words, page):
    """The index of the site is made of these sources."""
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    assert words.lower() in " ".join(text.lower().split())
