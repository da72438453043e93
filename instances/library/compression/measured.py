"""The bundled instances whose errors were measured: ``python -m ddlopt.instances.library.compression.measured``.

What was measured differs in the last digits from machine to machine, so that the files are the originals; running the
module measures again and writes them, and a test compares.
"""

from collections.abc import Iterator

from ddlopt.instances.generators import generate
from ddlopt.instances.library import library_folder
from ddlopt.instances.library.make import text_of
from ddlopt.models.compression import CompressionProblem
from ddlopt.models.files import write_whole


def instances(of_kind: str) -> Iterator[CompressionProblem]:
    """The instances of a kind as they were measured."""
    for name, (kind, _) in measurements().items():
        if kind == of_kind:
            yield CompressionProblem.from_file(library_folder("compression") / f"{name}.json")


def measurements() -> dict[str, tuple[str, dict[str, object]]]:
    """Kind and options by name; the seed is 1."""
    return {
        "measured-digits-w8-10g": ("measured", {}),
        "measured-digits-w8-1g": ("measured", {"network_gigabit_per_s": 1.0}),
        "levels-measured-digits-powersgd": ("levels-measured", {"error_budget_part": 0.05}),
        "levels-measured-digits-top-k": ("levels-measured", {"compressor": "top_k", "error_budget_part": 0.6}),
    }


def measured(name: str) -> CompressionProblem:
    """One of them, measured anew.

    Raises
    ------
    OptionError
        If scikit-learn is not installed.
    """
    kind, options = measurements()[name]
    made = generate("compression", kind, seed=1, name=name, **options)
    assert isinstance(made, CompressionProblem)
    return made


if __name__ == "__main__":
    for each in measurements():
        write_whole(library_folder("compression") / f"{each}.json", text_of(measured(each)))
