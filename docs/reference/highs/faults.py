"""Two tiny models on which HiGHS 1.15.1 is wrong, and what settles it: ``python docs/reference/highs/faults.py``.

Needs highspy alone. A solution found with a rule of presolve turned off is checked in rational arithmetic, so nobody's
tolerance is trusted.
"""

from fractions import Fraction
from pathlib import Path

import highspy

SPARSIFY, ENUMERATION = 14, 16
"""Numbers of the two rules of presolve that are wrong together."""


def solved(path: Path, rules_off: int) -> highspy.Highs:
    """The model, after a run with the rules of these bits turned off."""
    highs = highspy.Highs()
    highs.silent()
    highs.readModel(str(path))
    highs.setOptionValue("presolve_rule_off", rules_off)
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


def main() -> None:
    """Print what HiGHS says of both models, under each setting."""
    print(f"HiGHS {highspy.Highs().version()}")
    for path in sorted(Path(__file__).parent.glob("*.mps")):
        for told, off in (
            ("as it comes", 0),
            ("without sparsifying", 1 << SPARSIFY),
            ("without enumeration", 1 << ENUMERATION),
        ):
            highs = solved(path, off)
            status = highs.modelStatusToString(highs.getModelStatus())
            wrong = f", breaks a row by {violation(highs):.1g}" if status == "Optimal" else ""
            print(f"{path.name:15} {told:20} {status}{wrong}")


if __name__ == "__main__":
    main()
