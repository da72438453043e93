"""What classes say under the heading *Ports*: all of it is there, and may be coupled to."""

import itertools
from functools import lru_cache

import cvxpy as cp
import embedding_cases
import pyomo.environ as pyo
import pytest
from volume import for_each, slow, some

import ddlopt
from ddlopt.models.errors import NotApplicableError, OptionError, SolverError
from ddlopt.models.ports import Port, ports_of

CASES = embedding_cases.cases()
KINDS = {kind.__name__: kind for _, kind in embedding_cases.classes("build")}
CONVEX = {kind.__name__: (family, kind) for family, kind in embedding_cases.classes("problem")}
LINEAR = (pyo.Var, pyo.Expression)
THROUGHPUTS = {"RingsAndRoutes", "CirculantDesign", "MaxMinCircuits"}
"""Formulations whose objective is a throughput: time is one over it."""
CONVERTED = [case for case in CASES if hasattr(case.kind, "objective_value") and case.kind.__name__ not in THROUGHPUTS]


@lru_cache(maxsize=256)
def filled(formulation, instance):
    """Once for all tests here: they only look at it."""
    model = pyo.ConcreteModel()
    model.part = pyo.Block([7])
    formulation.build(model.part[7], instance)
    return model


def block_of(formulation, instance):
    return filled(formulation, instance).part[7]


def is_there(port, block):
    """Whether the block has the port, with as many indices; one that no member needs counts as there."""
    component = block.component(port.name)
    if component is None:
        return False
    return component.dim() == len(port.indices)


@pytest.mark.parametrize("count", [1, slow(3)])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_ports_without_a_condition_are_always_there(case, count):
    for formulation, instance in itertools.islice(embedding_cases.pairs(case), count):
        block = block_of(formulation, instance)
        for port in ports_of(type(formulation)):
            if not port.where:
                assert is_there(port, block), f"{instance.name}: {port}"
                assert block.component(port.name).ctype in (*LINEAR, pyo.Constraint, pyo.Block)


@pytest.mark.parametrize("case", CONVERTED, ids=str)
def test_an_objective_is_converted_as_an_expression_too(case):
    formulation, instance = embedding_cases.smallest(case)
    block = block_of(formulation, instance)
    before = [(variable, variable.value) for variable in block.component_data_objects(pyo.Var)]
    for number, (variable, _) in enumerate(before):
        variable.set_value(0.25 + number % 3, skip_validation=True)
    told = formulation.objective_value(instance, block.objective)
    value, again = formulation.objective_value(instance, pyo.value(block.objective)), pyo.value(told)
    for variable, value_before in before:
        variable.set_value(value_before, skip_validation=True)
    assert again == pytest.approx(value, rel=1e-12)
    assert told.polynomial_degree() in (0, 1)


@pytest.mark.parametrize("name", some(KINDS, KINDS.keys() - {"PlanChoice", "SlotEmbedding", "TimeIndexed"}))
def test_every_port_is_there_for_some_instance(name):
    """With the smallest instances first, until each has been seen."""
    missing = {str(port): port for port in ports_of(KINDS[name])}
    makers = [case for case in CASES if case.kind is KINDS[name]]
    embedding_cases.smallest(makers[0])
    for built in itertools.zip_longest(*map(embedding_cases.pairs, makers)):
        for formulation, instance in filter(None, built):
            if not missing:
                return
            block = block_of(formulation, instance)
            missing = {key: port for key, port in missing.items() if not is_there(port, block)}
    assert not missing


@pytest.mark.parametrize("name", KINDS)
def test_the_objective_is_a_port_and_linear(name):
    case = next(case for case in CASES if case.kind is KINDS[name])
    ports = {port.name: port for port in ports_of(KINDS[name])}
    assert ports["objective"] == Port("objective", (), "", ports["objective"].meaning)
    block = block_of(*embedding_cases.smallest(case))
    assert block.objective.polynomial_degree() in (0, 1)


@for_each("name", CONVEX)
def test_ports_of_convex_programs_are_there(name):
    family, kind = CONVEX[name]
    missing = {str(port): port for port in ports_of(kind)}
    assert any(port.name == "objective" and not port.where for port in missing.values())
    for instance in embedding_cases.instances(family):
        if embedding_cases.convex(kind, instance).refuses(instance) is not None:
            continue
        problem = embedding_cases.program(kind, instance)
        here = {key for key, port in missing.items() if _is_in(port, problem)}
        assert all(key in here for key, port in missing.items() if not port.where), instance.name
        missing = {key: port for key, port in missing.items() if port.where and key not in here}
        if not missing:
            return
    assert not missing


def _is_in(port, problem):
    if port.name == "constraints":
        return int(port.indices[0]) < len(problem.constraints)
    if port.name == "objective":
        return isinstance(problem.objective, cp.problems.objective.Objective)
    return port.name in problem.var_dict


def test_meanings_are_sentences():
    for kind in (*KINDS.values(), *(kind for _, kind in CONVEX.values())):
        for port in ports_of(kind):
            assert port.meaning.endswith("."), f"{kind.__name__}: {port}: {port.meaning}"


@pytest.mark.parametrize("name", [name for name in KINDS if hasattr(KINDS[name], "read")])
def test_a_block_that_nobody_has_solved_is_not_read(name, capfd):
    case = next(case for case in CASES if case.kind is KINDS[name])
    formulation, instance = embedding_cases.smallest(case)
    with pytest.raises(SolverError, match=f"^{name} cannot read: the block has no values; solve it first$"):
        formulation.read(block_of(formulation, instance), instance)
    assert capfd.readouterr() == ("", "")


class Told:
    """Says nothing of ports."""


class Garbled:
    """Says it badly.

    Ports
    -----
    ``link[i, j]`` or so
        Number of links.
    """


class Mute:
    pass


class Unmarked:
    """Says nothing of what one means.

    Ports
    -----
    ``link[i, j]``
    """


class Odd:
    """Has a name that is none.

    Ports
    -----
    ``link[i, j]``, ``two words``
        Number of links.
    """


@pytest.mark.parametrize("kind", [Told, Mute])
def test_what_documents_no_ports_is_told(kind):
    with pytest.raises(OptionError, match=f"^{kind.__name__} documents no ports"):
        ports_of(kind)


@pytest.mark.parametrize("kind", [Garbled, Unmarked, Odd])
def test_odd_sections_are_refused(kind):
    with pytest.raises(
        OptionError, match=rf"^the ports of {kind.__name__} have an entry that is none: ``link\[i, j\]``"
    ):
        ports_of(kind)


def test_a_port_is_written_with_its_indices():
    assert str(Port("link", ("i", "j"), "", "Links.")) == "link[i, j]"
    assert str(Port("objective", (), "", "Seconds.")) == "objective"


@pytest.mark.parametrize("kind", ["RingsAndRoutes", "SlotPatterns"])
def test_what_is_not_its_own_instance_is_told(kind):
    gossip = ddlopt.load("gossip/matcha-n8-20")
    for given, told in ((gossip, "does not cover 'matcha-n8-20'"), ("gossip/matcha-n8-20", r"ddlopt\.load")):
        with pytest.raises(NotApplicableError, match=told):
            KINDS[kind]().build(pyo.Block(concrete=True), given)


def test_a_block_that_does_not_fit_is_told():
    formulation, instance = KINDS["RingsAndRoutes"](), ddlopt.load("topology/danoint")
    blank, built = pyo.ConcreteModel(), pyo.ConcreteModel()
    formulation.build(built, instance)
    for call, told in (
        (lambda: formulation.build(built, instance), "is built into a block without an objective"),
        (lambda: formulation.build(None, instance), "is built into a Pyomo block, .* not into nothing"),
        (lambda: formulation.build(instance, built), "not into a TopologyInstance"),
        (lambda: formulation.build(blank, {}), "is built of an instance, not of a dict"),
        (lambda: formulation.read(blank, instance), "cannot read: it has not been built into this block"),
        (lambda: formulation.start(blank, instance, instance), "cannot start: it has not been built into this block"),
        (lambda: formulation.start(built, instance, {}), "starts from a solution, not from a dict"),
    ):
        with pytest.raises(NotApplicableError, match=f"^RingsAndRoutes .*{told}"):
            call()
