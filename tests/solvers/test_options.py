"""Options of methods, in one syntax everywhere; and what methods say of themselves, through whatever wraps them."""

import dataclasses
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args, get_origin

import pytest
from refusals import one_line
from volume import some

import ddlopt
from ddlopt.instances import index
from ddlopt.models.catalogue import FAMILY_NAMES
from ddlopt.models.errors import NotApplicableError, OptionError
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import formulation_of, solver_of
from ddlopt.solvers.options import options_of, settable, with_options
from ddlopt.solvers.wrappers.guarded import Guarded

TINY = "topology/tiny-n4-d2"
DIRECT = "topology/tiny-n4-d3-direct"


@dataclass(frozen=True)
class Odd:
    """A method with options of many types."""

    whole: int = 1
    share: float = 0.5
    on: bool = True
    rule: Literal["one", "two", "none"] = "one"
    label: str = ""
    some: tuple[int, ...] = ()
    least: float | None = None
    pool: Executor | None = None
    inner: Any = field(default_factory=lambda: Odd(inner=None))

    name: ClassVar[str] = "odd"
    family: ClassVar[str] = "topology"

    def __post_init__(self):
        if self.whole < 0:
            raise OptionError(f"whole must not be negative, got {self.whole}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("whole=3", {"whole": 3}),
        ("share=2", {"share": 2.0}),
        ("on=false,rule=two", {"on": False, "rule": "two"}),
        ("on=False", {"on": False}),
        ("least=none", {"least": None}),
        ("rule=none", {"rule": "none"}),
        ("label=5", {"label": "5"}),
        ("least=1e-3", {"least": 1e-3}),
        ("some=[1,2],whole=3", {"some": [1, 2], "whole": 3}),
    ],
)
def test_values_have_the_type_of_the_option(text, value):
    asked = with_options(Odd(), f"odd:{text}")
    assert options_of(asked).items() >= value.items()
    assert asked.name == f"odd:{text}"
    assert {type(options_of(asked)[name]) for name in value} == set(map(type, value.values()))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("odd:", "ends with a colon"),
        ("odd:whole", "has no option 'whole'"),
        (
            "odd:other=1",
            "has no option 'other=1'; write NAME=VALUE, it has: whole, share, on, rule, label, some, least",
        ),
        ("odd:inner=1", "has no option 'inner=1'"),
        ("odd:pool=1", "has no option 'pool=1'"),
        ("odd:name=x", "has no option 'name=x'"),
        ("odd:whole=1.5", "whole is '1.5'"),
        ("odd:whole=true", "whole is 'true'"),
        ("odd:whole=-1", "method 'odd': whole must not be negative, got -1"),
        ("odd:share=nan", "share is 'nan'"),
        ("odd:share=NaN", "share is 'NaN'"),
        ("odd:share=Infinity", "share is 'Infinity'"),
        ("odd:on=1", "on is '1'"),
        ("odd:rule=three", "rule is 'three'"),
        ("odd:whole=", "whole is ''"),
        ("odd:whole=1,whole=2", "whole is given twice"),
        ("odd:whole=[1]", "whole is"),
        (f"odd:whole={'[' * 100_000}", "whole is"),
    ],
)
def test_what_is_no_option_is_refused_in_one_line(asked, says):
    with one_line(OptionError, says):
        with_options(Odd(), asked)


def test_the_same_words_in_every_command(call, tmp_path):
    asked = "link-exchange:effort=0.1"
    assert ddlopt.solve(TINY, asked).method == asked
    assert [each.method for each in ddlopt.compare(TINY, ["link-exchange", asked])] == ["link-exchange", asked]
    code, out, _ = call("compare", TINY, "--methods", f"link-exchange,{asked}", "--csv")
    assert code == 0
    assert asked in out
    code, _, err = call("solve", TINY, "--method", "link-exchange:efort=1")
    assert code == 2
    assert err == "ddlopt: method 'link-exchange' has no option 'efort=1'; write NAME=VALUE, it has: effort\n"
    code, _, err = call(
        "export", DIRECT, "--formulation", "rings-and-routes:rings=all", "--to", "lp", "--out", tmp_path / "all.lp"
    )
    assert (code, err) == (0, "")
    code, _, _ = call("export", DIRECT, "--formulation", "exact", "--to", "lp", "--out", tmp_path / "same.lp")
    assert (tmp_path / "all.lp").read_bytes() == (tmp_path / "same.lp").read_bytes()


def test_what_only_hands_on_has_no_options():
    for name in ("exact", "none"):
        with pytest.raises(OptionError, match="it has: none"):
            catalogue.method(f"{name}:argument=scip", "aggregation")


def test_options_are_those_of_the_result():
    plain, wide = (ddlopt.solve(TINY, name) for name in ("fat-tree", "fat-tree:cost_ratio=1"))
    assert plain.objective != wide.objective
    assert options_of(catalogue.method("fat-tree:cost_ratio=1", "topology")) == {"cost_ratio": 1.0}


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_every_method_says_what_it_is(family):
    """Each hands a formulation to the solver that is asked for, or says in one line that it is none."""
    listed = {name: each for name, each in index.read().instances.items() if name.startswith(f"{family}/")}
    for entry in catalogue.own_entries(family):
        covered = [name for name, each in listed.items() if entry.name in each.methods]
        if not covered:
            continue
        instance = ddlopt.load(min(covered, key=lambda name: listed[name].size))
        method = entry.make("highs")
        assert (method.family, method.name) == (family, entry.name)
        formulation, wrapped = formulation_of(method, instance), Guarded(method, 10**9)
        assert formulation_of(wrapped, instance) == formulation
        assert solver_of(wrapped, instance) == solver_of(method, instance)
        assert set(settable(method)) <= options_of(method).keys()
        if solver_of(method, instance) is not None:
            assert solver_of(entry.make("scip"), instance) == "scip", entry.name
        if formulation is None:
            with pytest.raises(NotApplicableError, match=f"{entry.name} is no formulation of "):
                catalogue.formulation_named(entry.name, instance)
        else:
            assert formulation.refuses(instance) is None, entry.name
            assert solver_of(method, instance) is not None, entry.name


def _words(kind):
    """The words of a ``Literal``, alone or among other things that an option may be."""
    own = get_args(kind) if get_origin(kind) is Literal else ()
    return own or tuple(word for each in get_args(kind) for word in _words(each))


@pytest.mark.parametrize("family", some(FAMILY_NAMES, 1))
def test_misspelt_words_are_refused_where_a_method_or_formulation_is_made(family):
    """Also in Python, where nobody coerces them; ``form="congestoin"`` once built another model."""
    for entry in catalogue.entries(family):
        made = entry.make("highs")
        for each in (made, getattr(made, "formulation", None)):
            for option in dataclasses.fields(each) if dataclasses.is_dataclass(each) else ():
                if option.init and _words(option.type):
                    with pytest.raises(ValueError, match=option.name):
                        dataclasses.replace(each, **{option.name: "no such word"})


@pytest.mark.parametrize("asked", ["time-indexed:done=[1]", "slot-embedding:gains=[[0,1]]"])
def test_what_a_host_sets_is_no_option_of_a_method(asked):
    with pytest.raises(OptionError, match=r"has no option .(done|gains)="):
        catalogue.method(asked, "scheduling")
