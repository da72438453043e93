"""What a new problem costs outside its own rooms: the line in which its family lists it."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import ddlopt

FILES = {
    "models/gossip/toy/__init__.py": "",
    "models/gossip/toy/instance.py": """
from typing import ClassVar, Literal
from ddlopt.models.gossip.family import GossipAnswer, GossipProblem

class ToyInstance(GossipProblem):
    kind: ClassVar[str] = "toy instance"
    problem: Literal["toy"] = "toy"
    wanted: float

    @property
    def size(self) -> int:
        return 1

class ToyAnswer(GossipAnswer):
    kind: ClassVar[str] = "toy answer"
    problem: Literal["toy"] = "toy"
    whole: int
""",
    "models/gossip/toy/evaluate.py": """
from ddlopt.models.contracts import Evaluation, Violation

def evaluate_toy(instance, solution, exact=False):
    wrong = () if solution.whole >= 0 else (Violation("not_negative", "whole", solution.whole, 0),)
    return Evaluation(abs(solution.whole - instance.wanted), wrong)
""",
    "models/gossip/toy/bounds.py": """
def toy_bound(instance):
    return abs(round(instance.wanted) - instance.wanted)
""",
    "models/gossip/toy/problem.py": """
from ddlopt.models.gossip.toy.evaluate import evaluate_toy
from ddlopt.models.gossip.toy.instance import ToyAnswer, ToyInstance
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="gossip/toy", title="which whole number is nearest", counts="numbers", limited_by="that it is whole",
    instance=ToyInstance, solution=ToyAnswer, evaluate=evaluate_toy,
    bound=later("ddlopt.models.gossip.toy.bounds:toy_bound"),
)
""",
    "solvers/gossip/toy/__init__.py": "",
    "solvers/gossip/toy/methods.py": """
from dataclasses import dataclass
from typing import ClassVar
from ddlopt.models.gossip.toy.instance import ToyAnswer, ToyInstance
from ddlopt.solvers.contracts import Entry
from ddlopt.solvers.heuristic import Heuristic

@dataclass(frozen=True)
class Round(Heuristic, uses=()):
    name: ClassVar[str] = "round"
    family: ClassVar[str] = "gossip"
    covers: ClassVar[type] = ToyInstance

    def answer(self, instance, seed, clock, start):
        return ToyAnswer(instance=instance.name, whole=round(instance.wanted)), {}

def best(instance, solver):
    return Round()

ENTRIES = (Entry("round", "gossip", "heuristic", "the nearest", lambda _: Round()),)
""",
    "analysis/pictures/gossip/toy.py": """
def draw(axes, instance, solution):
    axes.plot([instance.wanted, solution.whole])
""",
}
LIST = "models/gossip/__init__.py"
LINE = '    "ddlopt.models.gossip.weights.problem",\n'
USED = """
import ddlopt
from ddlopt.analysis.views import picture_of, sizes
from ddlopt.models.catalogue import problem, problem_of, problems

assert "gossip/toy" in problems()
instance = ddlopt.load("toy.json")
assert problem_of(instance) is problem("gossip/toy")
assert problem_of(instance).bound(instance) == 0.25
result = ddlopt.solve(instance)
assert (result.status, result.objective, result.solution.whole) == ("optimal", 0.25, 3), result
answer = type(result.solution)
checked = ddlopt.models.catalogue.family("gossip").evaluate(instance, answer(instance="toy", whole=-1))
assert [each.kind for each in checked.violations] == ["not_negative"]
compared = ddlopt.compare(instance, ["exact", "round"])
assert [each.objective for each in compared] == [0.25, 0.25]
assert sizes(instance) == {"problem": "toy", "size": 1}
assert picture_of(instance).__module__ == "ddlopt.analysis.pictures.gossip.toy"
"""


def linked(source, target, *opened):
    """Fill ``target`` with links to what is in ``source``; the folders ``opened``, one within the other, are real."""
    target.mkdir()
    for entry in source.iterdir():
        if opened and entry.name == opened[0]:
            linked(entry, target / entry.name, *opened[1:])
        elif entry.name != "__pycache__":
            (target / entry.name).symlink_to(entry)


def test_one_line_outside_its_rooms(tmp_path):
    package = tmp_path / "ddlopt"
    package.mkdir()
    for file in Path(ddlopt.__file__).parent.glob("*.py"):
        (package / file.name).symlink_to(file)
    opened = {"models": ["gossip"], "solvers": ["gossip"], "instances": [], "analysis": ["pictures", "gossip"]}
    for storey, folders in opened.items():
        (source,) = import_module(f"ddlopt.{storey}").__path__
        linked(Path(source), package / storey, *folders)
    for name, text in FILES.items():
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text(text)
    listed = (package / LIST).read_text()
    assert LINE in listed
    (package / LIST).unlink()  # the link, not the file
    (package / LIST).write_text(listed.replace(LINE, LINE + LINE.replace("weights", "toy")))
    (tmp_path / "toy.json").write_text('{"family": "gossip", "problem": "toy", "name": "toy", "wanted": 3.25}')
    begun = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    done = subprocess.run([sys.executable, "-c", begun + USED], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
