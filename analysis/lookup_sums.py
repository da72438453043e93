r"""Sums and differences of numbers as a switch finds them by lookup tables, and how far they can be off.

Let logarithms have errors up to :math:`\epsilon_L`, and :math:`f(d) = \log_2(1 \pm 2^{-d})` up to
:math:`\epsilon_F`, both absolute; powers of two have relative errors up to :math:`\epsilon_E`. With
:math:`\hat\imath, \hat\jmath` for the logarithms that were looked up, :math:`\hat\imath \ge \hat\jmath`,

.. math:: 2^{\hat\imath} \pm 2^{\hat\jmath} = x 2^a \pm y 2^b, \qquad |a|, |b| \le \epsilon_L ,

which is off by at most :math:`(2^{\epsilon_L} - 1)(x + y)`, and what the other two tables make of it is off by at most
:math:`(2^{\epsilon_F}(1 + \epsilon_E) - 1)\, 2^{\epsilon_L} (x + y)`. Together, relative to :math:`|x| + |y|`, for
numbers of equal and of unlike signs,

.. math:: \frac{|\hat s - (x \pm y)|}{x + y} \le 2^{\epsilon_L + \epsilon_F} (1 + \epsilon_E) - 1 .

For equal signs that is the relative error of the sum. For unlike signs the error relative to the difference has no
bound, as with floating-point numbers whose last digit is uncertain.

Where d is beyond the last operand of f, f is taken for 0, and :math:`\epsilon_F` is at least what that leaves out.
Where it is below the first operand :math:`d_0` of :math:`\log_2(1 - 2^{-d})`, the difference is taken for 0, and is off
by at most :math:`\tanh(\ln 2\, (d_0 + 2 \epsilon_L) / 2)`, relative to :math:`x + y`.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.table.evaluate import evaluate_table
from ddlopt.models.aggregation.table.instance import LookupTables, TableInstance, outputs_of
from ddlopt.models.aggregation.table.values import Floats
from ddlopt.models.errors import NotApplicableError

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SumChain:
    """The tables of an instance as a switch uses them: integers in, integers out, and a number in the end.

    Parameters
    ----------
    fraction_bits, operand_bits : int
        Of logarithms, which are integers, and of the numbers that they are of.
    logarithms, sums, powers : array
        Answers by operand: of ``log2``, of ``log2-sum`` and of ``exp2``.
    differences : array, optional
        The same of ``log2-difference``.
    first : int
        Operand of the first logarithm.
    cut : int
        Operand of the first difference.
    normalized : bool
        Whether powers are looked up for the fraction of a logarithm alone, and the rest is a shift.
    bound : float
        By which sums and differences are off at most, relative to the sum of both numbers.
    """

    fraction_bits: int
    operand_bits: int
    logarithms: Ints
    sums: Ints
    powers: Floats
    differences: Ints | None
    first: int
    cut: int
    normalized: bool
    bound: float

    def combined(self, x: Ints, y: Ints, gap: int = 0, minus: bool = False) -> Floats:
        """What the tables find for x + y 2^-gap or x - y 2^-gap, where that is positive, in units of the last bit."""
        i = self.logarithms[x - self.first]
        j = self.logarithms[y - self.first] - (gap << self.fraction_bits)
        distance = np.abs(i - j)
        table, cut = (self.sums, 0) if not minus else (self._differences(), self.cut)
        place = np.clip(distance - cut, 0, len(table) - 1)
        change = np.where(distance - cut < len(table), table[place], 0)
        found = np.ldexp(self._power(np.maximum(i, j) + change), self.operand_bits)
        return np.where(distance < cut, 0.0, found)

    def _differences(self) -> Ints:
        if self.differences is None:
            raise NotApplicableError("there is no table log2-difference, so nothing can be subtracted")
        return self.differences

    def _power(self, logarithm: Ints) -> Floats:
        if not self.normalized:
            # Where a difference is less than 1, its logarithm has no operand of its own.
            return self.powers[np.maximum(logarithm, 0)]
        whole = logarithm >> self.fraction_bits
        return np.asarray(np.ldexp(self.powers[logarithm - (whole << self.fraction_bits)], whole))


def sum_chain(instance: TableInstance, solution: LookupTables) -> SumChain:
    """The tables of an instance that has those of a sum.

    Raises
    ------
    NotApplicableError
        If it has not one table each of log2, log2-sum and exp2, and one of log2-difference at most; or if their
        integers do not fit together.
    """
    by_function = {table.function: k for k, table in enumerate(instance.tables)}
    wanted = {"log2", "log2-sum", "exp2"}
    if len(by_function) < len(instance.tables) or set(by_function) - {"log2-difference"} != wanted:
        raise NotApplicableError(
            f"'{instance.name}' has not the tables of a sum, one each of {', '.join(sorted(wanted))}"
        )
    logarithm, addition, power = (instance.tables[by_function[each]] for each in ("log2", "log2-sum", "exp2"))
    bits = addition.fraction_bits
    others = [instance.tables[k] for name, k in by_function.items() if name == "log2-difference"]
    for table in (logarithm, addition, *others):
        if table.step != 2.0**-bits:
            raise NotApplicableError(
                f"table '{table.name}' of '{instance.name}' has step {table.step}, but logarithms have {bits} fraction "
                f"bits; set it to {2.0**-bits:g}"
            )
    for table in (power, *others):
        if table.fraction_bits != bits:
            raise NotApplicableError(
                f"table '{table.name}' of '{instance.name}' has fraction_bits {table.fraction_bits}, and "
                f"'{addition.name}' has {bits}; make them equal"
            )
    outputs = {name: outputs_of(instance, solution, k) for name, k in by_function.items()}
    integers = {name: np.rint(np.ldexp(found, bits)).astype(np.int64) for name, found in outputs.items()}
    difference, normalized = others[0] if others else None, power.high < 2**bits
    return SumChain(
        bits,
        logarithm.fraction_bits,
        integers["log2"],
        integers["log2-sum"],
        outputs["exp2"],
        integers.get("log2-difference"),
        logarithm.low,
        difference.low if difference else 0,
        normalized,
        _bound(instance, solution, None if normalized else int(np.ptp(integers["log2"]))),
    )


def _bound(instance: TableInstance, solution: LookupTables, farthest: int | None) -> float:
    """The bound of the module's text; ``farthest`` is the largest d that there is, None where there is no limit."""
    details = evaluate_table(instance, solution).details
    error = {table.function: float(details[f"error {table.name}"]) for table in instance.tables}
    changes, cut_error = [0.0], 0.0
    for table in instance.tables:
        if table.function not in ("log2-sum", "log2-difference"):
            continue
        changes.append(error[table.function])
        if farthest is None or farthest > table.high:
            sign = 1 if table.function == "log2-sum" else -1
            changes.append(abs(math.log2(1 + sign * 2.0 ** -math.ldexp(table.high + 1, -table.fraction_bits))))
        if table.function == "log2-difference":
            cut = math.ldexp(table.low, -table.fraction_bits) + 2 * error["log2"]
            cut_error = math.tanh(math.log(2) * cut / 2)
    return max(2 ** (error["log2"] + max(changes)) * (1 + error["exp2"]) - 1, cut_error)


def largest_error(chain: SumChain, gaps: int = 1, minus: bool = False, every: int = 1) -> tuple[float, float]:
    """Largest and mean error over all pairs, relative to the sum of both numbers.

    Parameters
    ----------
    chain : SumChain
    gaps : int
        y is divided by 2 to the 0, 1, …, ``gaps`` - 1.
    minus : bool
        Whether the smaller number is subtracted.
    every : int
        Of the first number, only every k-th operand.
    """
    numbers = np.arange(chain.first, chain.first + len(chain.logarithms))
    worst, total, count = 0.0, 0.0, 0
    for gap in range(gaps):
        for x in numbers[::every]:
            y = numbers if gap else numbers[: x - chain.first + 1]
            small = np.ldexp(y.astype(np.float64), -gap)
            exact = np.abs(x - small) if minus else x + small
            found = chain.combined(np.broadcast_to(x, y.shape), y, gap, minus)
            errors = np.abs(found - exact) / (x + small)
            worst = max(worst, float(errors.max()))
            total, count = total + float(errors.sum()), count + len(errors)
    return worst, total / count
