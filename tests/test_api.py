"""The public functions of :mod:`ddlopt`."""

from dataclasses import dataclass

import pytest
from volume import for_each

import ddlopt
from ddlopt.models.errors import InstanceError, NotApplicableError, OptionError, SolutionError, UnknownNameError
from ddlopt.solvers.contracts import Limits

TINY = "topology/tiny-n4-d2"


@dataclass
class Spy:
    """A method of one's own that notes what it is given."""

    name: str = "spy"
    family: str = "topology"

    def refuses(self, instance):
        return None

    def solve(self, instance, limits, seed=0, progress=None, start=None):
        self.given = (instance.name, limits, seed, progress, start)
        return ddlopt.solve(instance, "topology-finder")


def test_everything_promised_is_there():
    assert set(dir(ddlopt)) == set(ddlopt.__all__)
    for name in ddlopt.__all__:
        assert getattr(ddlopt, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        ddlopt.magic  # noqa: B018


def test_lists():
    assert "topology" in ddlopt.families()
    assert TINY in ddlopt.names("topology")
    assert set(ddlopt.names("topology")) <= set(ddlopt.names())
    assert "rings-and-routes" in ddlopt.methods("topology")
    assert tuple(name for name, _, _ in ddlopt.describe("topology")) == ddlopt.methods("topology")
    for question in (ddlopt.names, ddlopt.methods, ddlopt.describe, ddlopt.schema):
        with pytest.raises(UnknownNameError, match="no family 'magic'"):
            question("magic")


def test_what_is_no_instance_or_no_method_is_told_in_a_line():
    with pytest.raises(InstanceError, match="a dict is no instance: give a name, a file or an Instance"):
        ddlopt.load({"family": "topology"})
    with pytest.raises(OptionError, match=r"^\['exact'\] is no method: give the name of one"):
        ddlopt.solve(TINY, ["exact"])
    with pytest.raises(OptionError, match=r"Spy is a class, and a method is an object of one: Spy\(\)"):
        ddlopt.solve(TINY, Spy)
    with pytest.raises(OptionError, match="a positive number of seconds, got '5'"):
        ddlopt.solve(TINY, time_limit="5")


def test_a_problem_has_a_schema_of_its_own():
    for solution in (False, True):
        one, family = ddlopt.schema("gossip/period", solution), ddlopt.schema("gossip", solution)
        assert one["properties"]["problem"]["const"] == "period"
        assert one["title"] in family["$defs"]
    with pytest.raises(UnknownNameError, match="no family 'gossip/period', which is a problem of the family 'gossip'"):
        ddlopt.methods("gossip/period")


def test_load_takes_names_files_and_instances(tmp_path):
    instance = ddlopt.load(TINY)
    file = tmp_path / "a.json"
    file.write_text(instance.to_json())
    assert ddlopt.load(file) == ddlopt.load(str(file)) == ddlopt.load(instance) == instance


def test_solve_hands_everything_on(monkeypatch):
    monkeypatch.setenv("DDLOPT_GUARD", "off")  # what the spy notes in a process of its own would be lost
    spy, start = Spy(), ddlopt.solve(TINY, "topology-finder").solution
    ddlopt.solve(TINY, spy, time_limit=3, gap=0.01, threads=2, seed=5, start=start, progress=print)
    name, limits, seed, progress, given = spy.given
    assert (name, limits, seed, given) == ("tiny-n4-d2", Limits(3, 0.01, 2), 5, start)
    assert callable(progress)


def test_solve_takes_the_default_method():
    result = ddlopt.solve(TINY)
    assert result.method == ddlopt.default_method(TINY)
    assert result.status == "optimal"
    assert result.checked


def test_an_exact_method_is_at_least_as_good_as_a_heuristic_and_never_below_its_bound():
    exact, heuristic = ddlopt.compare([TINY], ["rings-and-routes", "topology-finder"])
    assert exact.bound <= exact.objective * (1 + 1e-9)
    assert exact.objective <= heuristic.objective * (1 + 1e-9)


def test_compare_goes_instance_by_instance_and_reports_as_it_goes():
    told, watched = [], []
    names = (TINY, ddlopt.load("topology/tiny-n5-d2"))
    results = ddlopt.compare(
        names, [Spy(), "auto"], on_result=told.append, progress=lambda *news: watched.append(news[:2])
    )
    assert told == results
    assert [(r.instance, r.method) for r in results] == [
        ("tiny-n4-d2", "spy"),
        ("tiny-n4-d2", ddlopt.default_method(TINY)),
        ("tiny-n5-d2", "spy"),
        ("tiny-n5-d2", ddlopt.default_method("topology/tiny-n5-d2")),
    ]
    assert watched[0] == ("tiny-n4-d2", "spy")


def test_all_heuristics_are_those_that_cover_the_instance_each_once():
    told = [result.method for result in ddlopt.compare("compression/sfb-random-n60", ["all-heuristics", "tag"])]
    assert len(set(told)) == len(told)
    assert set(told) >= {"tag", "poseidon"}
    assert "espresso" not in told
    with pytest.raises(OptionError, match="nothing to do"):
        ddlopt.compare("topology/tiny-n4-d2", [])


def test_compare_refuses_a_wrong_wish_before_it_solves():
    spy = Spy()
    with pytest.raises(UnknownNameError):
        ddlopt.compare([TINY], [spy, "magic"])
    with pytest.raises(UnknownNameError):
        ddlopt.compare([TINY, "magic"], [spy])
    with pytest.raises(OptionError):
        ddlopt.compare([TINY], [spy], time_limit=0)
    assert not hasattr(spy, "given")


@for_each("wish", [{"seed": -1}, {"gap": 1.0}, {"threads": 0}, {"time_limit": float("nan")}])
def test_options_out_of_range_are_refused(wish):
    with pytest.raises(OptionError):
        ddlopt.solve(TINY, "topology-finder", **wish)


def test_check_takes_objects_and_files(tmp_path):
    instance, design = ddlopt.load(TINY), ddlopt.solve(TINY, "topology-finder").solution
    files = tmp_path / "instance.json", tmp_path / "design.json"
    files[0].write_text(instance.to_json())
    files[1].write_text(design.to_json())
    assert ddlopt.check(*files) == ddlopt.check(instance, design)
    with pytest.raises(SolutionError, match="made for instance 'tiny-n4-d2'"):
        ddlopt.check("topology/tiny-n5-d2", design)


def test_a_method_that_does_not_cover_the_instance_says_why():
    with pytest.raises(NotApplicableError, match="forest does not cover 'tiny-n4-d2'"):
        ddlopt.solve(TINY, "forest")


def test_generate_is_reproducible():
    wish = {"servers": 6, "degree": 2, "seed": 4, "optics": "duplex"}
    assert ddlopt.generate("topology", "random", **wish) == ddlopt.generate("topology", "random", **wish)
    assert ddlopt.generate("topology", "random", **wish) != ddlopt.generate("topology", "random", **{**wish, "seed": 5})
