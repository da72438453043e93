"""A back end and a method that say what they are told to say."""

from dataclasses import dataclass, field

from ddlopt.solvers.contracts import Result, Status


class Canned:
    """A back end that loads the values it is told to, of the variables ``take``, and says what it is told to say."""

    name = "canned"
    options = {}  # noqa: RUF012

    def __init__(self, outcome, values=()):
        self.outcome, self.values = outcome, values

    def solve(self, model, limits, seed=0, progress=None, warm=False):
        self.warm, self.limits = warm, limits
        (block,) = [block for block in model.component_objects() if hasattr(block, "take")] if self.values else [None]
        for k, value in enumerate(self.values):
            block.take[k].set_value(value)
        return self.outcome


@dataclass
class Scripted:
    """A method that gives the figures it was made with, and remembers what it was asked: limits, seed and start."""

    name: str
    figures: dict
    refusal: str | None = None
    raises: Exception | None = None
    asked: list = field(default_factory=list)
    family: str = "topology"

    def refuses(self, instance):
        return self.refusal

    def solve(self, instance, limits, seed=0, progress=None, start=None):
        self.asked.append((limits, seed, start))
        if self.raises:
            raise self.raises
        for point in self.figures.get("trace", ()):
            if progress:
                progress(point)
        solution = f"solution of {self.name}" if "objective" in self.figures else None
        usual = {"sense": instance.sense, "unit": instance.objective_unit, "runtime_s": 1.0}
        figures = {"status": Status.FEASIBLE, "solution": solution, **usual, **self.figures}
        return Result(instance.name, instance.digest, self.family, self.name, **figures)
