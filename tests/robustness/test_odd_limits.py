"""Limits that are none, and limits at the edge of what is one: one line, or an answer."""

import math

import pytest
from refusals import one_line
from volume import for_each, slow

import ddlopt
from ddlopt.instances.odd import odd_instance
from ddlopt.models.catalogue import problems
from ddlopt.models.errors import DdloptError, OptionError
from ddlopt.solvers import catalogue

TINY = "topology/tiny-n4-d2"
NONE = {
    "time_limit": (0, -1.0, math.nan, -math.inf, "5", True, [1]),
    "gap": (-1e-9, 1, 1e300, math.nan, math.inf, "0.1"),
    "threads": (0, -1, 10**9, 10**30, 1.5, math.nan, True, "2"),
    "seed": (-1, 2**63, 10**30, 0.5, math.nan, "1"),
    "memory": (0, -1, math.nan, math.inf, 1e300, "1"),
}
EDGE = {
    "time_limit": (1e-300, 1e-9, 1e300, math.inf),
    "gap": (0, 1e-300, 0.999999),
    "threads": (1, 2),
    "seed": (0, 2**63 - 1),
    "memory": (1e-9, 8, 10**9),
}


@for_each(("option", "value"), [(name, value) for name, values in NONE.items() for value in values])
def test_what_is_no_limit(option, value):
    for ask in (ddlopt.solve, ddlopt.compare):
        with one_line(OptionError, match=r"must be|at least"):
            ask(TINY, "rings-and-routes", **{option: value})


@pytest.mark.parametrize(("option", "value"), [(name, value) for name, values in EDGE.items() for value in values])
def test_what_is_one(option, value):
    (result,) = ddlopt.compare(TINY, "rings-and-routes", **{option: value})
    assert str(result.status) in ("optimal", "feasible", "no_solution", "error")
    if result.status == "error":
        assert option == "memory"
        assert "needs more than 1e-09 GB of memory" in result.message


@for_each("path", [path if path == "compression/forward" else slow(path) for path in problems()])
def test_no_time_at_all_is_no_option_of_what_is_solved_within(path):
    instance = odd_instance(path, None, 0)
    for entry in catalogue.own_entries(instance.family):
        if entry.make("highs").refuses(instance) is None:
            try:
                ddlopt.solve(instance, entry.name, time_limit=1e-9)
            except OptionError:
                raise
            except DdloptError:  # no solution, or one that fails the check
                pass


@pytest.mark.parametrize(
    "options",
    [
        "--time-limit 0",
        "--time-limit -1",
        "--time-limit nan",
        "--gap nan",
        "--gap 1",
        "--threads 0",
        "--threads 1000000000",
        "--threads 99999999999999999999",
        "--seed -1",
        "--seed 18446744073709551616",
        "--memory 0",
        "--memory nan",
        "--memory inf",
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        "solve topology/tiny-n4-d2 --method rings-and-routes",
        "compare topology/tiny-n4-d2 --methods rings-and-routes",
        "bench topology/tiny-n4-d2 --methods rings-and-routes --store x.sqlite",
    ],
)
def test_command_line(refused, tmp_path, monkeypatch, command, options):
    monkeypatch.chdir(tmp_path)
    options = options.replace("--seed ", "--seeds ") if command.startswith("bench") else options
    refused(*command.split(), *options.split())
    assert list(tmp_path.iterdir()) == []


def test_more_seeds_than_anybody_waits_for(call):
    for seeds in ("0-99999999999", "0-999999,7"):
        code, out, says = call("bench", TINY, "--store", "x.sqlite", "--seeds", seeds)
        assert (code, out) == (2, "")
        assert "more than 1000000 seeds" in says
