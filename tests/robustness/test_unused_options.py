"""No option is taken that a method does not use, and no solver that there is not, before anything runs."""

import dataclasses
import functools
import inspect

import pytest
from refusals import one_line
from volume import for_each, slow

import ddlopt
from ddlopt.instances import index
from ddlopt.models.errors import NoSolutionError, OptionError, SolverMissingError, UnknownNameError
from ddlopt.solvers import catalogue
from ddlopt.solvers.backends.pyomo_any import PyomoSolver
from ddlopt.solvers.choice import by_solver
from ddlopt.solvers.contracts import OPTIONS, Limits, solver_of, uses_of
from ddlopt.solvers.heuristic import CertifiedMethod, Heuristic

DANOINT, TINY_ITSELF = ddlopt.load("topology/danoint"), ddlopt.load("topology/tiny-n4-d2")
MODELLED = ddlopt.load("topology/tiny-n4-d3-direct")
NEVER = "topology-finder", "branch-and-bound", "expander"


@for_each("method", [None, "auto", "exact", *NEVER, "rings-and-routes", ddlopt])
def test_solvers_that_there_are_not(method):
    """Misspelt names are refused also where no solver is needed."""
    for solve in (ddlopt.solve, lambda instance, each, **how: ddlopt.compare([instance], [each or "auto"], **how)):
        with pytest.raises(UnknownNameError, match="there is no solver 'no-such-solver'"):
            solve(DANOINT, method, solver="no-such-solver")


@pytest.mark.parametrize("method", NEVER)
def test_solvers_that_a_method_does_not_use(method):
    with pytest.raises(
        OptionError, match=f"{method} on 'danoint' uses no solver that could be chosen; leave 'highs' out"
    ):
        ddlopt.solve(DANOINT, method, solver="highs")
    with pytest.raises(OptionError, match="uses no solver"):
        ddlopt.compare([DANOINT], [method], solver=["highs", "highs"])


def test_default_is_a_method_that_uses_the_solver():
    """By itself ``danoint`` is answered by a search of our own; with a solver by a model."""
    assert not catalogue.uses_solver(catalogue.default(DANOINT), DANOINT)
    assert ddlopt.default_method(DANOINT, "highs") == "rings-and-routes"
    assert ddlopt.default_method(TINY_ITSELF, "highs") == "rings-and-routes"
    assert ddlopt.default_method(MODELLED, "highs") == ddlopt.default_method(MODELLED)


@pytest.mark.parametrize(
    ("asked", "times"),
    [
        ({}, 1),
        ({"method": "rings-and-routes"}, 1),
        ({"method": "rings-and-routes", "start_from": "topology-finder"}, 2),
    ],
)
@pytest.mark.parametrize("solver", [None, "highs"])
def test_a_name_becomes_a_method_once(monkeypatch, asked, times, solver):
    made, method = [], catalogue.method
    monkeypatch.setattr(catalogue, "method", lambda name, *more: made.append(name) or method(name, *more))
    assert ddlopt.solve(TINY_ITSELF, **asked, solver=solver).checked
    assert len(made) == times


def test_one_of_several_methods_is_enough():
    results = ddlopt.compare([TINY_ITSELF], ["topology-finder", "rings-and-routes"], solver="highs")
    assert [str(result.status) for result in results] == ["feasible", "optimal"]
    started = ddlopt.solve(TINY_ITSELF, "rings-and-routes", start_from="topology-finder", solver="highs")
    assert started.provenance["solver"].lower().startswith("highs")


@pytest.mark.parametrize("line", ["solve topology/danoint", "compare topology/danoint --methods branch-and-bound"])
def test_command_line_with_a_solver_that_there_is_not(call, line):
    code, out, says = call(*line.split(), "--solver", "no-such-solver")
    assert (code, out) == (2, "")
    assert says.startswith("ddlopt: there is no solver 'no-such-solver'")
    assert says.count("\n") == 1


def test_sweeps_refuse_them_too():
    from ddlopt.analysis.bench.tasks import plan
    from ddlopt.solvers.contracts import Limits

    with pytest.raises(UnknownNameError, match="there is no solver 'no-such-solver'"):
        plan(["topology/tiny-n4-d2"], ["topology-finder"], [0], Limits(), ["no-such-solver"])


def test_a_solver_that_is_not_installed_is_told_though_a_heuristic_would_do(monkeypatch):
    monkeypatch.setattr(PyomoSolver, "installed", lambda self: self.name != "cplex")
    with pytest.raises(SolverMissingError, match="the solver 'cplex' is not installed"):
        ddlopt.solve(TINY_ITSELF, solver="cplex")


TINY = ddlopt.load("topology/tiny-n4-d2")


def _smallest():
    """(method, instance) of the smallest instance of each problem for every method that covers one."""
    found = {}
    for listed in index.read().instances.values():
        for method in listed.methods:
            key = listed.problem, method
            if key not in found or listed.size < found[key].size:
                found[key] = listed
    return [(method, listed.name) for (_, method), listed in sorted(found.items())]


PAIRS = _smallest()
loaded = functools.cache(ddlopt.load)


def test_every_method_says_what_it_uses():
    silent = []
    for method, name in PAIRS:
        instance = loaded(name)
        uses = uses_of(catalogue.method(method, instance.family), instance)
        if uses is None or not uses <= set(OPTIONS):
            silent.append((method, name, uses))
    assert silent == []


def _declared():
    """Classes of methods with the functions in which they answer."""
    for entry in catalogue.own_entries():
        kind = type(entry.make("highs"))
        if issubclass(kind, CertifiedMethod) and "uses_for" not in vars(kind):
            yield kind


def test_what_a_method_is_given_and_never_looks_at_is_not_said_to_be_used():
    """Of a parameter that is handed over and ignored the name is in the head of ``answer`` or ``find`` only."""
    wrong = []
    for kind in dict.fromkeys(_declared()):
        own = [kind.answer] if issubclass(kind, Heuristic) else [kind.find]
        source = "".join(map(inspect.getsource, own))
        for option in ("seed", "start"):
            mentioned = source.replace(f"{option}:", "").count(option) > 0
            if (option in kind.uses) and not mentioned:
                wrong.append((kind.__name__, option))
    assert wrong == []


@for_each("part", [slice(4), *(slow(slice(4 + k, None, 8)) for k in range(8))])
def test_without_use_for_a_seed_the_answer_is_the_same(part):
    asked = [(catalogue.method(method, name.partition("/")[0]), loaded(name)) for method, name in PAIRS]
    unseeded = [
        (method, instance) for method, instance in asked if "seed" not in (uses_of(method, instance) or {"seed"})
    ]
    for method, instance in unseeded[part]:
        answers = []
        for seed in (0, 1):
            try:
                result = method.solve(instance, Limits(time_s=20), seed)
            except NoSolutionError as none:
                answers.append(str(none))
            else:
                answers.append((result.status, result.objective, result.solution))
        assert answers[0] == answers[1], (method, instance.name)


@for_each(
    ("method", "options", "says"),
    [
        ("topology-finder", {"threads": 2}, "topology-finder on 'tiny-n4-d2' has no use for more than one thread"),
        ("ideal-switch", {"seed": 1}, "ideal-switch on 'tiny-n4-d2' has no use for a seed; leave seed out, or take"),
        ("expander", {"start_from": "topology-finder"}, "expander on 'tiny-n4-d2' has no use for a start"),
        ("expander", {"start": "no-such-file"}, "take a method that has: exact, rings-and-routes, link-"),
    ],
)
def test_solve_refuses(method, options, says):
    with one_line(OptionError, match=says):
        ddlopt.solve(TINY, method, **options)


def test_start_makes_the_default_one_that_uses_it():
    listed = [each for each in index.read().instances.values() if each.problem == "scheduling"]
    for each in listed:
        instance = ddlopt.load(each.name)
        chosen = ddlopt.default_method(instance, start=True)
        assert "start" in uses_of(catalogue.method(chosen, "scheduling"), instance), each.name
    began = ddlopt.solve(TINY, start_from="topology-finder")
    assert began.status == "optimal"


def test_compare_refuses_what_none_uses():
    with pytest.raises(OptionError, match=r"^topology-finder, expander on 'tiny-n4-d2' have no use for more than one"):
        ddlopt.compare([TINY], ["topology-finder", "expander"], threads=2)
    with pytest.raises(OptionError, match="ideal-switch, fat-tree on 'tiny-n4-d2' have no use for a seed"):
        ddlopt.compare([TINY], ["ideal-switch", "fat-tree"], seed=1)
    results = ddlopt.compare([TINY], ["topology-finder", "rings-and-routes"], threads=2, seed=1, time_limit=20)
    assert [str(result.status) for result in results] == ["feasible", "optimal"]


def test_methods_of_other_packages_may_use_anything():
    @dataclasses.dataclass(frozen=True)
    class Other(Heuristic):
        name = "other"
        family = "topology"

        def answer(self, instance, seed, clock, start):
            return catalogue.method("topology-finder", "topology").answer(instance, seed, clock, start)

    assert uses_of(Other(), TINY) is None
    assert ddlopt.solve(TINY, Other(), threads=2, seed=1).objective is not None

    class Said(Other, uses=("seed",)):
        pass

    assert ddlopt.solve(TINY, Said(), seed=1).objective is not None
    with pytest.raises(OptionError, match="other on 'tiny-n4-d2' has no use for more than one thread"):
        ddlopt.solve(TINY, Said(), threads=2)


def test_a_solver_without_threads(monkeypatch):
    monkeypatch.setattr(PyomoSolver, "installed", lambda self: True)
    with pytest.raises(OptionError, match="rings-and-routes on 'tiny-n4-d2' has no use for more than one thread"):
        ddlopt.solve(TINY, "rings-and-routes", solver="glpk", threads=2)


def test_every_solver_that_is_asked_for_answers(monkeypatch):
    """Also through methods that have a formulation inside."""
    monkeypatch.setattr(PyomoSolver, "installed", lambda self: True)
    methods = by_solver("exact", MODELLED, ["highs", "scip"])
    assert [solver_of(method, MODELLED) for method in methods] == ["highs", "scip"]
    assert len(by_solver("topology-finder", TINY, ["highs", "scip"])) == 1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("solve topology/tiny-n4-d2 --method expander --threads 2", "has no use for more than one thread"),
        ("solve topology/tiny-n4-d2 --method ideal-switch --seed 4", "has no use for a seed"),
        ("solve topology/tiny-n4-d2 --method expander --start-from topology-finder", "has no use for a start"),
        ("compare topology/tiny-n4-d2 --methods expander,fat-tree --threads 2", "have no use for more than one thread"),
        ("bench topology/tiny-n4-d2 --store x.sqlite --methods fat-tree --threads 2", "has any use for --threads"),
        ("bench topology/tiny-n4-d2 --store x.sqlite --methods fat-tree --seeds 0-3", "has any use for --seeds"),
        ("bench topology/tiny-n4-d2 --store x.sqlite --methods fat-tree --solvers scip", "has any use for --solvers"),
        ("export topology/tiny-n4-d2 --formulation rings-and-routes -o x.mps --seed 3", "--seed is for the start"),
        ("export topology/tiny-n4-d2 --formulation rings-and-routes -o x.mps --time-limit 3", "--time-limit is for"),
        ("export topology/tiny-n4-d2 --formulation rings-and-routes -o x.mps --start-for cbc", "--start-for is for"),
    ],
)
def test_command_line(call, tmp_path, monkeypatch, line, says):
    monkeypatch.chdir(tmp_path)
    code, out, told = call(*line.split())
    assert (code, out) == (2, "")
    assert told.startswith("ddlopt: ")
    assert says in told
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
