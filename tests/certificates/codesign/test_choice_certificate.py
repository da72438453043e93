"""Proofs by choices of strategies: what is accepted is no more than the best of all plans takes."""

import json
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from codesign_cases import best_of_all, drawn
from refusals import one_line
from volume import for_each, slow

import ddlopt
from ddlopt import instances
from ddlopt.certificates.codesign import ChoiceCertificate
from ddlopt.certificates.codesign.choices import Choices
from ddlopt.certificates.codesign.exact import ExactFigures, part_of
from ddlopt.frontier.codesign.prove import prove
from ddlopt.instances.library import certificates
from ddlopt.models.codesign import job_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import NotApplicableError, RefutedError, SolutionError, SolverError
from ddlopt.solvers import proofs

NAME = "codesign/tiny-cosets-n6-d2"
TINY = instances.load(NAME)


@cache
def bundled(name=NAME):
    """The file of an instance, as data."""
    return proofs.read(certificates.file_of(name), instances.load(name))


def proven(instance, claim, jobs):
    return proofs.check(instance, ChoiceCertificate(instance.name, instance.digest, Fraction(claim), jobs)).bound


def random_choices(instance, seed):
    rng = np.random.default_rng(seed)
    return tuple(int(rng.integers(len(layer.strategies))) for layer in instance.layers)


@for_each("seed", [12, 17, 27, *map(slow, range(8))])
def test_the_optimum_is_proven_and_nothing_above_it(seed):
    instance = drawn(seed, 4, 3)
    best = best_of_all(instance)
    if np.isinf(best):
        return  # there is no plan, and any claim holds
    worth = Fraction(best)
    certificate = prove(instance, None, worth * Fraction(9999, 10_000), lambda: False)
    assert certificate is not None
    assert proven(instance, certificate.claim, certificate.jobs) == worth * Fraction(9999, 10_000)
    for more in (Fraction(1, 10**6), Fraction(1, 100), Fraction(10**300)):
        with one_line(RefutedError, "is left, so that the claim of"):
            proven(instance, worth * (1 + more), certificate.jobs)


@for_each("seed", range(300))
def test_figures_are_those_of_the_check(seed):
    """What the checker reads of a random choice is what everybody else does, up to rounding."""
    instance = drawn(seed, 6, 4)
    tables, figures, choices = tables_of(instance), ExactFigures(instance), random_choices(instance, seed)
    assert float(figures.compute(choices)) == pytest.approx(tables.compute_of(choices), rel=1e-12)
    groups, pairs = figures.sent(choices)
    job = job_of(instance, choices)
    if job is None:
        assert not pairs
        assert not any(groups.values())
        return
    assert {each.members: pytest.approx(each.gradient_bytes) for each in job.allreduce_groups} == {
        members: float(amount) for members, amount in groups.items() if amount
    }
    traffic = np.zeros((instance.servers,) * 2)
    for pair, amount in pairs.items():
        traffic[pair] = amount
    assert traffic == pytest.approx(job.traffic_bytes)


@for_each("seed", range(200))
def test_no_choice_of_a_shorter_time_is_excluded(seed):
    """Sums of whole numbers leave whatever is below the claim."""
    instance = drawn(seed, 5, 3)
    tables, figures = tables_of(instance), ExactFigures(instance)
    kept = {choices: tables.fits(choices) for choices in np.ndindex(*tables.sizes)}
    bounds = {choices: bound_s(figures, choices) for choices, fits in kept.items() if fits}
    for claim in sorted(set(bounds.values()))[:: max(1, len(bounds) // 4)]:
        if claim > 0:
            left = set(Choices(figures, claim).left(lambda: False))
            assert left >= {choices for choices, value in bounds.items() if value < claim}


def bound_s(figures, choices):
    """Time of any plan with these strategies at least, by the same figures all at once."""
    compute, loads = figures.compute(choices), figures.loads(figures.sent(choices))
    return max(compute, max(loads)) if figures.instance.overlap == "full" else compute + max(loads)


def test_parts_of_what_is_sent():
    more = {(0, 1): Fraction(3)}, {(0, 1): Fraction(2), (1, 2): Fraction(1)}
    less = {(0, 1): Fraction(2)}, {(0, 1): Fraction(4)}
    assert part_of(more, less) == Fraction(1, 2)
    assert part_of(less, more) == 0


@for_each("name", ["tiny-cosets-n6-d2", "tiny-factors-n6-d3"])
def test_bundled_ones_hold(name):
    full = f"codesign/{name}"
    found = ddlopt.check_certificate(full, certificates.file_of(full))
    objective = ddlopt.check(full, instances.best(full), exact=True).objective
    assert objective * Fraction(9999, 10_000) <= found.bound <= objective
    with one_line(RefutedError, "is left"):
        proven(instances.load(full), objective * (1 + Fraction(1, 10**6)), bundled(full).jobs)


def test_without_its_jobs_a_choice_is_left():
    good = bundled()
    for place in range(len(good.jobs)):
        with one_line(RefutedError, "of 'tiny-cosets-n6-d2' the choice of"):
            proven(TINY, good.claim, good.jobs[:place])


def test_certify_writes_it(tmp_path):
    name = "codesign/tiny-factors-n6-d3"
    result, certificate = ddlopt.certify(name, out=tmp_path / "proof.json.gz")
    assert isinstance(certificate, ChoiceCertificate)
    assert (str(result.status), str(result.evidence)) == ("optimal", "certificate")
    assert ddlopt.check_certificate(name, tmp_path / "proof.json.gz").bound == certificate.claim


def changed_job(**fields):
    """The bundled proof with other fields in its first job."""
    data = json.loads(bundled().text)
    return data | {"jobs": [data["jobs"][0] | fields, *data["jobs"][1:]]}


def changed_design(**fields):
    return changed_job(design=bundled().jobs[0]["design"] | fields)


@for_each(
    "changed, error, line",
    [
        (changed_job(choices=[0]), RefutedError, "jobs[0] has other layers or strategies"),
        (changed_job(choices=[0, 0, 0, 0, 5]), RefutedError, "jobs[0] has other layers or strategies"),
        (changed_job(choices=[0, 0, 0, 0, -1]), SolutionError, "jobs[0].choices has at most"),
        (changed_job(choices=[0, 0, 0, 0, True]), SolutionError, "jobs[0].choices has at most"),
        (changed_job(choices=[0, 0, 0, 0, 0]), RefutedError, ""),
        (changed_job(more=1), SolutionError, "jobs[0] has choices and a design"),
        (changed_design(bound_units=0), RefutedError, "bound is not a whole number"),
        (changed_design(bound_units=2.0), SolutionError, "a unit and a bound in whole numbers"),
        (changed_design(unit_exponent=900), RefutedError, ""),
        (changed_design(unit_exponent=2**30), RefutedError, "unit is not 2^e"),
        (changed_design(words=[]), RefutedError, "do not make up its words"),
        (changed_design(words=[2**31]), SolutionError, "jobs[0].design.words is no array of type int32"),
        (changed_design(lengths=[[0], [0, 1]]), SolutionError, "jobs[0].design.lengths is no array of type uint16"),
        (changed_design(lengths=[[]]), RefutedError, "columns"),
        (changed_design(prices=None), SolutionError, "jobs[0].design.prices is no array of type int64"),
    ],
)
def test_what_proves_nothing(changed, error, line):
    with one_line(error, line):
        proofs.check(TINY, ChoiceCertificate.from_data(changed))


def test_claims_that_say_nothing():
    assert proven(TINY, -1, []) == -1


def test_what_is_not_gone_through():
    with one_line(NotApplicableError, "32 servers are too many"):
        proven(instances.load("codesign/vgg16-n32-d4"), 1, [])
    with one_line(NotApplicableError, "choices are too many"):
        proven(instances.load("codesign/resnet50-n12-d4"), 1, [])


def test_long_checks_are_given_up():
    with one_line(SolverError, "given up after 1e-06 s"):
        ddlopt.check_certificate(NAME, certificates.file_of(NAME), time_limit=1e-6)
