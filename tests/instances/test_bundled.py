"""Every bundled instance, in one pass: as made, as the schema says, and with what is recorded of it."""

import itertools
import json

import pytest
from library_cases import bundled
from volume import slow

from ddlopt.instances import best, library_folder, load, names, record, schema
from ddlopt.instances.library.make import text_of
from ddlopt.models import catalogue
from ddlopt.models.catalogue import FAMILY_NAMES
from ddlopt.models.contracts import Instance
from ddlopt.models.tolerances import OBJECTIVE_TOL

OF_EACH_PROBLEM = 1
DEAR = {"compression", "deployment"}
"""Families whose instances take seconds to make."""
REMEDY = "python -m ddlopt.analysis.records --index"


def file_of(instance):
    return library_folder(instance.family) / f"{instance.name}.json"


def first_or_others(family, others):
    """The first instances of each problem of a family as they are made, or all others."""
    for problem in catalogue.family(family).problems:
        library = problem.module("instances.library")
        made = iter(library.instances() if library is not None else ())
        first = list(itertools.islice(made, OF_EACH_PROBLEM))
        yield from made if others else first


@pytest.mark.parametrize("family", FAMILY_NAMES)
@pytest.mark.parametrize("others", [False, slow(True)])
def test_what_is_bundled_holds(family, others):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema checks files against the published schema")
    of_instances, of_solutions = (
        jsonschema.Draft202012Validator(schema(family, solution=solution)) for solution in (False, True)
    )
    kind = catalogue.family(family)
    for instance in first_or_others(family, others):
        name = f"{family}/{instance.name}"
        loaded, solution, known = load(name), best(name), record(name)
        assert loaded == instance, name
        assert isinstance(loaded, Instance)
        assert loaded.family == family
        assert len(instance.source) > 20, name
        text = file_of(instance).read_text(encoding="utf-8")
        assert text == text_of(instance), name
        assert len(text.encode()) < 500_000, name
        of_instances.validate(json.loads(text))

        assert solution is not None, f"no best known solution of {name} is stored"
        assert known is not None, f"what is recorded of {name} is about another instance; run {REMEDY}"
        assert known.found is not None, f"what is recorded of {name} is about another solution; run {REMEDY}"
        assert solution.instance_digest == instance.digest, name
        of_solutions.validate(json.loads(solution.to_json()))
        rounded, exact = kind.evaluate(instance, solution), kind.evaluate(instance, solution, exact=True)
        assert rounded.violations == exact.violations == (), name
        assert float(rounded.objective) == pytest.approx(float(exact.objective), rel=1e-9), name
        assert known.found.objective == float(exact.objective), name

        sign = 1 if instance.sense == "minimize" else -1
        combinatorial = kind.bound(instance)
        if known.bound is not None:
            assert sign * (known.bound.value - known.found.objective) <= 0, f"a bound passes the solution of {name}"
        if combinatorial is not None:
            assert known.bound is not None, f"{name} has no bound; run {REMEDY}"
            slack = 1e-9 * abs(combinatorial) + OBJECTIVE_TOL * abs(known.found.objective)
            assert sign * (combinatorial - known.bound.value) <= slack, f"the bound of {name} is weak; run {REMEDY}"


@pytest.mark.parametrize("family", [slow(each) if each in DEAR else each for each in FAMILY_NAMES])
def test_what_is_made_is_what_is_bundled(family):
    assert set(names(family)) == {f"{family}/{name}" for name in bundled(family)}
