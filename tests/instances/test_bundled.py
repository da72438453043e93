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

OF_EACH_PROBLEM = 2
REMEDY = "python -m ddlopt.analysis.records --index"


def file_of(instance):
    return library_folder(instance.family) / f"{instance.name}.json"


def smallest_and_others(family):
    """The smallest instances of each problem of a family, and all others."""
    by_size = sorted(bundled(family).values(), key=lambda each: (str(type(each)), file_of(each).stat().st_size))
    problems = [list(group) for _, group in itertools.groupby(by_size, type)]
    return [each for group in problems for each in group[:OF_EACH_PROBLEM]], [
        each for group in problems for each in group[OF_EACH_PROBLEM:]
    ]


@pytest.mark.parametrize("family", FAMILY_NAMES)
@pytest.mark.parametrize("others", [False, slow(True)])
def test_what_is_bundled_holds(family, others):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema checks files against the published schema")
    of_instances, of_solutions = (
        jsonschema.Draft202012Validator(schema(family, solution=solution)) for solution in (False, True)
    )
    kind = catalogue.family(family)
    for instance in smallest_and_others(family)[others]:
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


def test_what_is_made_is_what_is_bundled():
    for family in FAMILY_NAMES:
        assert set(names(family)) == {f"{family}/{name}" for name in bundled(family)}
