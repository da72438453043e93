"""Every formulation inside somebody else's model: several at once, in indexed blocks, and the same every time."""

import io
import os
import subprocess
import sys
from pathlib import Path

import embedding_cases
import numpy as np
import pyomo.environ as pyo
import pytest
from volume import some

from ddlopt.solvers.backends import Highs
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.contracts import Limits, Status

CASES = [case for case in embedding_cases.cases() if case.name not in embedding_cases.HARD]
LIGHT = {
    "RingsAndRoutes, given",
    "RingsAndRoutes, open",
    "Configurations",
    "milp",
    "StrategiesOnRoutes",
    "strategy-selection",
    "hot-plain",
    "tree",
    "graph",
    "rate-messages",
    "TablePath",
    "exchange-path",
    "circulant-gap",
    "EdgeColouring",
}
"""Of every problem one that is solved quickly, where there is one."""
every_case = pytest.mark.parametrize("case", CASES, ids=str)
TIGHT = Limits(gap=1e-7)
RESERVED = {*dir(pyo.ConcreteModel())}
"""Names that Pyomo lets no component of a model have."""
SIGN = {"minimize": 1, "maximize": -1}

WRITE = """
import itertools
import sys
from pathlib import Path

sys.path.append(sys.argv[1])
import embedding_cases
from ddlopt.solvers.backends.files import write_model

for case in embedding_cases.cases():
    for formulation, instance in itertools.islice(embedding_cases.pairs(case), 1):
        for kind in ("mps", "lp"):
            write_model(formulation, instance, Path(sys.argv[2]) / f"{case}.{kind}")
"""


def optimum(model):
    outcome = Highs().solve(model, TIGHT)
    assert outcome.status is Status.OPTIMAL
    return outcome.objective


def names(block):
    """Of all components, as seen from the block."""
    return [part.getname(fully_qualified=True, relative_to=block) for part in block.component_data_objects()]


def alone(formulation, instance):
    model = pyo.ConcreteModel()
    model.only = pyo.Block()
    embedding_cases.build(model.only, formulation, instance)
    model.objective = pyo.Objective(expr=SIGN[formulation.sense] * model.only.objective)
    return model


@pytest.mark.parametrize("case", some(CASES, [case for case in CASES if case.name in LIGHT]), ids=str)
def test_several_in_one_host_are_the_sum_of_their_parts(case):
    neighbour = CASES[(CASES.index(case) + 1) % len(CASES)]
    built = [*embedding_cases.two_of(case), embedding_cases.smallest(neighbour)]
    host = pyo.ConcreteModel()
    host.part = pyo.Block([0, 1])
    host.other = pyo.Block()
    blocks = [host.part[0], host.part[1], host.other]
    for block, (formulation, instance) in zip(blocks, built, strict=True):
        embedding_cases.build(block, formulation, instance)
    host.objective = pyo.Objective(
        expr=sum(
            SIGN[formulation.sense] * block.objective for block, (formulation, _) in zip(blocks, built, strict=True)
        )
    )
    expected = sum(optimum(alone(formulation, instance)) for formulation, instance in built)
    assert optimum(host) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    for block, (formulation, instance) in zip(blocks, built, strict=True):
        if hasattr(formulation, "read"):
            assert formulation.read(block, instance) is not None


@every_case
def test_nothing_but_the_block_is_touched(case, capfd):
    formulation, instance = embedding_cases.smallest(case)
    host = pyo.ConcreteModel()
    host.link = pyo.Var(bounds=(0, 1))
    host.limit = pyo.Constraint(expr=host.link <= 1)
    host.part = pyo.Block([0, 1])
    said = io.StringIO()
    host.pprint(said)
    before = said.getvalue()
    formulation.build(host.part[0], instance)
    assert list(host.component_map()) == ["link", "limit", "part"]
    assert names(host.part[1]) == []
    assert RESERVED.isdisjoint(host.part[0].component_map()), "the host may be the model itself"
    owners = {id(part.parent_block().model()) for part in host.part[0].component_data_objects()}
    assert owners == {id(host)}

    formulation.build(host.part[1], instance)
    assert names(host.part[0]) == names(host.part[1])
    host.del_component(host.part)
    host.part = pyo.Block([0, 1])
    said = io.StringIO()
    host.pprint(said)
    assert said.getvalue() == before
    assert capfd.readouterr() == ("", "")


@every_case
def test_rows_and_columns_are_of_the_block_alone(case):
    """Also in a copy of the host, as transformations of Pyomo make them."""
    formulation, instance = embedding_cases.smallest(case)
    host = pyo.ConcreteModel()
    host.part = pyo.Block([0, 1])
    embedding_cases.build(host.part[1], formulation, instance)
    single = alone(formulation, instance)
    expected = linear_model(single)
    for model in (host, host.clone()):
        found = linear_model(model)
        assert all(column.model() is model for column in found.columns)
        assert [each.name for each in found.columns] == [
            each.name.replace("only.", "part[1].", 1) for each in expected.columns
        ]
        assert (found.matrix != expected.matrix).nnz == 0
        for name in ("lower", "upper", "integer", "row_lower", "row_upper"):
            assert np.array_equal(getattr(found, name), getattr(expected, name)), name


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Folders of models as files, each written by a process that hashes strings in another way."""
    folders, running = [], []
    for seed in ("1", "2"):
        folders.append(tmp_path_factory.mktemp("models"))
        words = [sys.executable, "-c", WRITE, Path(embedding_cases.__file__).parent, folders[-1]]
        environment = os.environ | {"PYTHONHASHSEED": seed}
        running.append(subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment))
    for process in running:
        _, complaints = process.communicate()
        assert process.returncode == 0, complaints
    return folders


@pytest.mark.slow
@every_case
@pytest.mark.parametrize("kind", ["mps", "lp"])
def test_files_are_the_same_to_the_byte(written, case, kind):
    embedding_cases.smallest(case)
    for end in (kind, f"{kind}.names.json"):
        one, other = ((folder / f"{case}.{end}").read_bytes() for folder in written)
        assert len(one) > 100
        assert one == other
