"""Plans that lose much without a budget: no answer by themselves, and told of where a method was named."""

import math

import pytest
from refusals import one_line

import ddlopt
from ddlopt.cli import run
from ddlopt.models.compression import CompressionInstance, CompressionPlan, Gradient, Option
from ddlopt.models.compression.unlimited_error import ACCEPTED_ERROR
from ddlopt.models.errors import OptionError, SolutionError

HALF = Option(label="half", compressor="fp16", wire_s=2.0, error=0.5)
JOB = CompressionInstance(
    name="job",
    gradients=(Gradient(name="w", shape=(2,), ready_s=1.0, menu=0),),
    menus=((Option(label="none", wire_s=4.0), HALF),),
)


def changed(**changes):
    return CompressionInstance.from_data(JOB.model_dump() | changes)


def test_by_itself_much_loss_is_no_answer_and_the_message_names_both_ways_out():
    found = ddlopt.solve(JOB)
    assert (found.status, found.objective, found.solution, found.checked) == ("no_solution", None, None, False)
    assert found.details["error"] == 0.5
    assert found.bound == pytest.approx(3.0)
    for word in ("0.5", "error_budget", "accept_error", "--accept-error"):
        assert word in found.message


@pytest.mark.parametrize(
    ("instance", "options"),
    [
        (JOB, {"accept_error": 0.5}),
        (JOB, {"accept_error": math.inf}),
        (changed(error_budget=0.7), {}),
        (changed(menus=((HALF.model_copy(update={"error": ACCEPTED_ERROR}),),)), {}),
    ],
)
def test_what_is_accepted_is_an_answer_without_a_word(instance, options):
    found = ddlopt.solve(instance, **options)
    assert (found.status, found.objective, found.checked) == ("optimal", 3.0, True)
    assert "loses" not in found.message


def test_who_names_a_method_is_told_unless_a_limit_was_asked_for():
    found = ddlopt.solve(JOB, "all")
    assert (found.status, found.objective) == ("optimal", 3.0)
    assert "the plan loses 0.5" in found.message
    assert ddlopt.solve(JOB, "all", accept_error=0.4).status == "no_solution"
    lossy, lossless = ddlopt.compare(JOB, ["all", "none"])
    assert (lossy.objective, lossless.objective) == (3.0, 5.0)
    assert "the plan loses 0.5" in lossy.message
    assert lossless.message == ""


def test_a_proof_is_of_all_plans_whatever_the_one_that_is_found_loses():
    result, proof = ddlopt.certify(JOB)
    assert (result.objective, float(ddlopt.check_certificate(JOB, proof).bound)) == (3.0, pytest.approx(3.0, rel=1e-3))
    assert "the plan loses 0.5" in result.message


@pytest.mark.parametrize(
    ("instance", "value", "says"),
    [
        (JOB, -0.1, "accept_error is -0.1"),
        (JOB, math.nan, "accept_error is nan"),
        (changed(error_budget=0.7), 0.5, "error_budget is 0.7; leave it out"),
        ("topology/tiny-n4-d2", 0.5, "no use on 'tiny-n4-d2'"),
    ],
)
def test_odd_limits_are_one_line(instance, value, says):
    with one_line(OptionError, says):
        ddlopt.solve(instance, accept_error=value)


def test_the_command_says_what_the_function_says(tmp_path, capsys):
    job, plan = tmp_path / "job.json", tmp_path / "plan.json"
    job.write_text(JOB.to_json())
    assert run(["solve", str(job), "--out", str(plan)]) == 1
    told = capsys.readouterr().err
    assert ddlopt.solve(JOB).message in told
    assert not plan.exists()
    assert run(["solve", str(job), "--accept-error", "1", "--out", str(plan)]) == 0
    written = CompressionPlan.from_file(plan)
    assert (written.gradients, written.options) == (("w",), ("half",))
    assert ddlopt.check(JOB, written).objective == 3.0


def test_plans_without_names_are_as_they_were():
    plain = CompressionPlan(instance="job", choices=(1,))
    assert "gradients" not in plain.to_json()
    # Of the JSON before plans had names.
    assert plain.digest == "e64c16eb8434f8109d6d4a9be49de0a868e811691ad8fc8ca37ec51287e61a0e"
    assert ddlopt.check(JOB, plain).objective == 3.0


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ({"gradients": ("v",)}, "gradients[0] is 'v', but by its choices and 'job' it is 'w'"),
        ({"options": ("none",)}, "options[0] is 'none', but by its choices and 'job' it is 'half'"),
        ({"gradients": ("w", "w")}, "2 gradients, but 'job' has 1"),
    ],
)
def test_names_of_something_else_are_refused(names, says):
    with one_line(SolutionError, says):
        ddlopt.check(JOB, CompressionPlan(instance="job", choices=(1,), **names))
