"""Four tiny models on which HiGHS 1.15.1 or 1.16.0 is wrong: ``python docs/reference/highs/faults.py``.

Needs highspy and NumPy. Solutions are checked in rational arithmetic, so nobody's tolerance is trusted.
"""

import sys
from fractions import Fraction
from pathlib import Path

import highspy
import numpy as np

RULES = 17
"""Of presolve, by the bits of the option ``presolve_rule_off``."""
STARTS = {"start_kept.mps": (1, 5, 7, 11)}
"""Binaries that are 1 in the start that a model is given, counted from 0."""


def solved(path: Path, presolve: str, seed: int = 0) -> highspy.Highs:
    """The model, after a run with presolve ``"on"`` or ``"off"``, and with its start where it has one."""
    highs = highspy.Highs()
    highs.silent()
    highs.readModel(str(path))
    highs.setOptionValue("presolve", presolve)
    highs.setOptionValue("random_seed", seed)
    if path.name in STARTS:
        columns = range(highs.getNumCol())
        ones = [float(column in STARTS[path.name]) for column in columns]
        highs.setSolution(len(ones), np.array(columns, dtype=np.int32), np.array(ones))
    highs.run()
    return highs


def violation(highs: highspy.Highs) -> float:
    """By how much the solution breaks a row or a bound, its binaries rounded; exact until it is told."""
    model = highs.getLp()
    kinds = [str(kind).endswith("kInteger") for kind in model.integrality_]
    values = [
        Fraction(round(value) if whole else value)
        for value, whole in zip(highs.getSolution().col_value, kinds, strict=True)
    ]
    rows = [Fraction(0)] * model.num_row_
    matrix = model.a_matrix_
    by_column = matrix.format_ == highspy.MatrixFormat.kColwise
    for outer in range(len(matrix.start_) - 1):
        for place in range(matrix.start_[outer], matrix.start_[outer + 1]):
            row, column = (matrix.index_[place], outer) if by_column else (outer, matrix.index_[place])
            rows[row] += Fraction(matrix.value_[place]) * values[column]
    limits = [
        *zip(rows, model.row_lower_, model.row_upper_, strict=True),
        *zip(values, model.col_lower_, model.col_upper_, strict=True),
    ]
    below = [Fraction(lower) - value for value, lower, _ in limits if abs(lower) < highspy.kHighsInf]
    above = [value - Fraction(upper) for value, _, upper in limits if abs(upper) < highspy.kHighsInf]
    return float(max(0, *below, *above))


def worth(highs: highspy.Highs) -> float:
    """The objective of the solution, recomputed."""
    model = highs.getLp()
    return float(np.dot(model.col_cost_, highs.getSolution().col_value)) + model.offset_


def rules(path: Path) -> list[int]:
    """Numbers of the rules of presolve without any one of which HiGHS says something else of the model."""

    def said(off: int) -> tuple[str, float]:
        highs = highspy.Highs()
        highs.silent()
        highs.readModel(str(path))
        if off:
            highs.setOptionValue("presolve_rule_off", off)
        highs.run()
        return highs.modelStatusToString(highs.getModelStatus()), round(highs.getInfo().objective_function_value, 6)

    usual = said(0)
    return [rule for rule in range(RULES) if said(1 << rule) != usual]


def main() -> None:
    """Print what HiGHS says of the models, with presolve and without; with ``--rules``, which rules matter."""
    if "--rules" in sys.argv:
        for path in sorted(Path(__file__).parent.glob("*.mps")):
            print(f"{path.name:15} another answer without one of the rules {rules(path)}")
        return
    print(f"HiGHS {highspy.Highs().version()}")
    for path in sorted(Path(__file__).parent.glob("*.mps")):
        for presolve in ("on", "off"):
            highs = solved(path, presolve)
            status = highs.modelStatusToString(highs.getModelStatus())
            said = f" {highs.getInfo().objective_function_value:.5g}"
            found = f"{said}, solution has {worth(highs):.5g}, breaks a row by {violation(highs):.1g}"
            print(f"{path.name:15} presolve {presolve:4} {status}{found if status == 'Optimal' else ''}")


if __name__ == "__main__":
    main()
