"""A plain branch and bound whose leaves are proven by multipliers alone; HiGHS is asked and never believed.

Linear relaxations are solved warm, depth first, as the incumbent is known before. Branching is by pseudo-costs that a
few trial solves make reliable. A leaf counts when the checker's own arithmetic closes it.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import highspy
import numpy as np
import numpy.typing as npt

from ddlopt.certificates.linear import ExactModel, program_of
from ddlopt.frontier.linear_proof.cuts import only_needed, strengthened
from ddlopt.models.errors import SolverError
from ddlopt.models.tolerances import SOLVER_TOL
from ddlopt.solvers.backends.silent_highs import SilentHighs

Vector = npt.NDArray[np.float64]

_PRECISIONS = (12, 24, 40, 60)
"""Bits of the largest multiplier: the fewest that close a leaf make the smallest file."""
_TRIED = 8
"""Candidates that are tried at a node while their pseudo-costs are known from fewer than ``_RELIABLE`` ends."""
# Each end tried twice: more trials cost more than they save in trees of at most some thousand nodes.
_RELIABLE = 2
_TRIAL_ITERATIONS = 60
"""Of the simplex, in one trial: some tens of them tell a good candidate from a bad one."""
_LEAST_GAIN = 1e-9
"""Of an end, in a product of two: a candidate that gains at one end only still counts. Only steers the search."""
_LEAST_WANTED = 1e-6
"""What a pseudo-cost counts at most for an end without a solution, where hardly anything is left to prove."""

_FIXING_MARGIN = 1.0 + 1e-6
"""Columns whose reduced costs just reach what is missing are not worth a node: whole numbers may say otherwise."""

_LARGE = 20_000
"""Columns from which on the first relaxation is solved by an interior-point method: half a minute, where the simplex
method takes more than six on a network flow of 127 thousand columns."""


@dataclass
class _Case:
    """A node of the tree, with the columns whose bounds differ from the root's."""

    lower: Mapping[int, int]
    upper: Mapping[int, int]
    hint: list[Any] | None
    entry: list[Any] | None = None
    children: "list[_Case]" = field(default_factory=list)
    fixed: bool = False


@dataclass(frozen=True)
class Tree:
    """What a search has proven.

    Parameters
    ----------
    claim : Fraction or None
        What the nodes prove; None where they prove nothing.
    nodes : list
        As :func:`~ddlopt.certificates.linear.check.check_tree` reads them.
    complete : bool
        Whether that is what was to be proven.
    solved : int
        Linear relaxations, those of branchings.
    cuts : list
        As :func:`~ddlopt.certificates.linear.cuts.derive` reads them.
    """

    claim: Fraction | None
    nodes: list[list[Any]]
    complete: bool
    solved: int
    cuts: list[list[Any]] = field(default_factory=list)


def prove(model: ExactModel, claim: Fraction, time_limit: float | None = None, cuts: bool = True) -> Tree:
    """Search for a proof that no solution is below ``claim``; where time is short, for less.

    Parameters
    ----------
    cuts : bool
        Whether cutting planes are looked for at the root.
    """
    return _Search(model, claim, time_limit, cuts).run()


class _Search:
    def __init__(self, model: ExactModel, claim: Fraction, time_limit: float | None, cutting: bool) -> None:
        self.model, self.program = model, program_of(model, claim)
        self.cutting, self.time_limit = cutting, time_limit
        self.cuts: list[list[Any]] = []
        self.end = None if time_limit is None else time.perf_counter() + time_limit
        self.whole = np.flatnonzero(np.array(model.integer, dtype=bool)).astype(np.int32)
        self.solved = 0
        program = self.program
        infinity = highspy.kHighsInf
        self.lower = np.array([-infinity if v is None else v / program.grid for v in program.lower])
        self.upper = np.array([infinity if v is None else v / program.grid for v in program.upper])
        self.highs = _relaxation(model, self.lower, self.upper)
        columns = len(model.integer)
        self.cost_of = np.zeros((2, columns))
        self.known = np.zeros((2, columns), dtype=np.int64)

    def run(self) -> Tree:
        root = _Case({}, {}, None)
        waiting, open_cases = [root], []
        if len(self.model.integer) >= _LARGE:
            waiting = [] if self._begin(root) else waiting
        elif self.cutting and len(self.whole):
            self._cut(root)
        while waiting:
            if self.end is not None and time.perf_counter() > self.end:
                open_cases += waiting
                break
            case = waiting.pop()
            if not self._expand(case):
                open_cases.append(case)
            waiting += case.children
        return self._told(root, open_cases)

    def _begin(self, root: _Case) -> bool:
        """Close the root by an interior-point method, or leave its basis to the simplex method."""
        # Bounds that the claim implies may leave no solution, and then there would be no basis.
        lower, upper = (
            np.array([fill if v is None else float(v) for v in bounds])
            for bounds, fill in ((self.model.lower, -highspy.kHighsInf), (self.model.upper, highspy.kHighsInf))
        )
        highs = _relaxation(self.model, lower, upper)
        highs.setOptionValue("presolve", "on")
        highs.setOptionValue("solver", "ipm")
        if self.end is not None:
            highs.setOptionValue("time_limit", max(self.end - time.perf_counter(), 0.0))
        highs.run()
        self.solved += 1
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return False
        root.entry = self._leaf("dual", np.array(highs.getSolution().row_dual), root)
        self.highs.setBasis(highs.getBasis())
        return root.entry is not None

    def _cut(self, root: _Case) -> None:
        """Look for cutting planes, unless the root needs none."""
        status, _, _ = self._solve()
        if status != "optimal" or self._leaf("dual", np.array(self.highs.getSolution().row_dual), root) is not None:
            return
        found = strengthened(self.model, self.program.claim, self.highs, self.time_limit)
        if found is not None:
            self.program, self.cuts = found
        else:
            self.highs = _relaxation(self.model, self.lower, self.upper)

    def _told(self, root: _Case, open_cases: list[_Case]) -> Tree:
        claim = self.program.claim
        for case in open_cases:
            if case.hint is None:
                return Tree(None, [], False, self.solved)
            _, exponent, rows, multipliers = case.hint
            found = self.program.value(exponent, dict(zip(rows, multipliers, strict=True)), case.lower, case.upper)
            if found is None:
                return Tree(None, [], False, self.solved)
            case.entry = case.hint
            claim = min(claim, found)
        nodes, waiting = [], [root]
        while waiting:
            case = waiting.pop()
            assert case.entry is not None
            nodes.append(case.entry)
            waiting += case.children  # the one with at most v is popped first
        if not self.cuts:
            return Tree(claim, nodes, not open_cases, self.solved)
        cuts, number = only_needed(
            self.cuts, len(self.model.rows), {row for node in nodes if node[0] != "branch" for row in node[2]}
        )
        told = [
            node if node[0] == "branch" else [*node[:2], [number.get(row, row) for row in node[2]], node[3]]
            for node in nodes
        ]
        return Tree(claim, told, not open_cases, self.solved, cuts)

    def _expand(self, case: _Case) -> bool:
        """Close a case or branch on it; False if neither can be."""
        self._set_bounds(case)
        status, point, objective = self._solve()
        entry = None
        if status == "infeasible":
            entry = self._leaf("farkas", self._ray(), case)
        elif status == "optimal":
            duals = np.array(self.highs.getSolution().row_dual)
            entry = self._leaf("dual", duals, case)
            case.hint = self._rounded("dual", duals, _PRECISIONS[-1])
        if entry is not None:
            case.entry = entry
            return True
        if status != "optimal" or point is None:
            return False
        part = np.abs(point[self.whole] - np.round(point[self.whole]))
        candidates = self.whole[part > SOLVER_TOL]
        if not len(candidates):
            return False
        if not case.fixed and self._fix(case, objective):
            return True
        column = self._chosen(case, candidates, point, objective)
        split = int(np.floor(point[column]))
        case.entry = ["branch", int(column), split]
        below = _Case(case.lower, {**case.upper, int(column): split}, case.hint)
        above = _Case({**case.lower, int(column): split + 1}, case.upper, case.hint)
        case.children = [above, below]
        return True

    def _fix(self, case: _Case, objective: float) -> bool:
        """Leave out what reduced costs leave out, if that is anything."""
        reduced = np.array(self.highs.getSolution().col_dual)[self.whole]
        low, high = self.now_lower[self.whole], self.now_upper[self.whole]
        room = max(float(self.program.claim) - objective, 0.0) * _FIXING_MARGIN
        span = np.where(reduced == 0, 0.0, high - low)
        if not (np.abs(reduced) * span > room)[high > low].any():
            return False
        entry = case.hint
        assert entry is not None
        _, exponent, rows, multipliers = entry
        found = self.program.fixed(exponent, dict(zip(rows, multipliers, strict=True)), case.lower, case.upper)
        if not found:
            return False
        below = {column: limit for side, column, limit in found if side == 0}
        above = {column: limit for side, column, limit in found if side == 1}
        case.entry = ["fix", *entry[1:]]
        case.children = [_Case({**case.lower, **below}, {**case.upper, **above}, case.hint, fixed=True)]
        return True

    def _chosen(self, case: _Case, candidates: Any, point: Vector, objective: float) -> int:
        """The column whose two ends raise the bound most; a few are tried while their pseudo-costs are not known."""
        down, up = point[candidates] - np.floor(point[candidates]), np.ceil(point[candidates]) - point[candidates]
        mean = [self.cost_of[k][self.known[k] > 0] / self.known[k][self.known[k] > 0] for k in (0, 1)]
        usual = [float(each.mean()) if len(each) else 1.0 for each in mean]
        rates = [
            np.where(
                self.known[k][candidates] > 0,
                self.cost_of[k][candidates] / np.maximum(self.known[k][candidates], 1),
                usual[k],
            )
            for k in (0, 1)
        ]
        scores = np.maximum(rates[0] * down, _LEAST_GAIN) * np.maximum(rates[1] * up, _LEAST_GAIN)
        order = np.argsort(-scores, kind="stable")
        best, chosen = -1.0, int(candidates[order[0]])
        for place in order[:_TRIED].tolist():
            column = int(candidates[place])
            if min(self.known[0][column], self.known[1][column]) >= _RELIABLE:
                score = float(scores[place])
            else:
                gains = []
                for k, distance in ((0, down[place]), (1, up[place])):
                    gain = self._tried(column, k, float(point[column]), objective)
                    gains.append(gain)
                    self.cost_of[k][column] += gain / float(distance)
                    self.known[k][column] += 1
                score = max(gains[0], _LEAST_GAIN) * max(gains[1], _LEAST_GAIN)
            if score > best:
                best, chosen = score, column
        return chosen

    def _tried(self, column: int, side: int, value: float, objective: float) -> float:
        """By how much the bound rises on one side, after a few iterations."""
        highs = self.highs
        basis = highs.getBasis()
        low, high = self.now_lower[column], self.now_upper[column]
        if side == 0:
            highs.changeColBounds(column, low, float(np.floor(value)))
        else:
            highs.changeColBounds(column, float(np.ceil(value)), high)
        highs.setOptionValue("simplex_iteration_limit", _TRIAL_ITERATIONS)
        status, _, reached = self._solve()
        highs.setOptionValue("simplex_iteration_limit", 2**31 - 1)
        highs.changeColBounds(column, low, high)
        highs.setBasis(basis)
        most = max(float(self.program.claim) - objective, _LEAST_WANTED)
        if status == "infeasible":
            return 2 * most
        return min(max(0.0, reached - objective), 2 * most) if reached is not None else 0.0

    def _set_bounds(self, case: _Case) -> None:
        lower, upper = self.lower.copy(), self.upper.copy()
        for column, limit in case.lower.items():
            lower[column] = max(lower[column], limit)
        for column, limit in case.upper.items():
            upper[column] = min(upper[column], limit)
        self.now_lower, self.now_upper = lower, upper
        if len(self.whole):
            self.highs.changeColsBounds(len(self.whole), self.whole, lower[self.whole], upper[self.whole])

    def _solve(self) -> tuple[str, Vector | None, float]:
        self.highs.run()
        self.solved += 1
        status = self.highs.getModelStatus()
        objective = self.highs.getInfo().objective_function_value
        if status == highspy.HighsModelStatus.kOptimal:
            return "optimal", np.array(self.highs.getSolution().col_value), objective
        if status == highspy.HighsModelStatus.kInfeasible:
            return "infeasible", None, objective
        return "unknown", None, objective if np.isfinite(objective) else 0.0

    def _ray(self) -> Vector | None:
        found = self.highs.getDualRay()
        return np.array(found[2]) if found[1] else None

    def _leaf(self, kind: str, duals: Vector | None, case: _Case) -> list[Any] | None:
        """The leaf that multipliers make, if it is closed."""
        if duals is None or not np.isfinite(duals).all():
            return None
        for sign in (1.0, -1.0) if kind == "farkas" else (1.0,):
            for bits in _PRECISIONS:
                entry = self._rounded(kind, sign * duals, bits)
                _, exponent, rows, multipliers = entry
                given = dict(zip(rows, multipliers, strict=True))
                found = self.program.value(exponent, given, case.lower, case.upper, kind == "farkas")
                if self.program.suffices(found, kind == "farkas"):
                    return entry
        return None

    def _rounded(self, kind: str, duals: Vector, bits: int) -> list[Any]:
        largest = float(np.abs(duals).max(initial=0.0))
        exponent = 0 if largest == 0 else min(max(0, bits - int(np.frexp(largest)[1])), 1000)
        rows, multipliers = [], []
        for row in np.flatnonzero(duals).tolist():
            low, _, high = self.program.rows[row]
            whole = round(Fraction(float(duals[row])) * 2**exponent)
            if whole and (low if whole > 0 else high) is not None:
                rows.append(row)
                multipliers.append(whole)
        return [kind, exponent, rows, multipliers]


def _relaxation(model: ExactModel, lower: Vector, upper: Vector) -> Any:
    infinity = highspy.kHighsInf
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(model.integer), len(model.rows)
    cost = np.zeros(lp.num_col_)
    for column, value in model.cost:
        cost[column] = float(value)
    lp.col_cost_, lp.offset_ = cost, float(model.offset)
    lp.col_lower_, lp.col_upper_ = lower, upper
    lp.row_lower_ = np.array([-infinity if low is None else float(low) for low, _, _ in model.rows])
    lp.row_upper_ = np.array([infinity if high is None else float(high) for _, _, high in model.rows])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(terms) for _, terms, _ in model.rows)]).astype(np.int32)
    lp.a_matrix_.index_ = np.array([column for _, terms, _ in model.rows for column, _ in terms], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([float(value) for _, terms, _ in model.rows for _, value in terms])
    highs = SilentHighs()
    for option, wanted in (("presolve", "off"), ("solver", "simplex"), ("threads", 1)):
        highs.setOptionValue(option, wanted)
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise SolverError("HiGHS does not take the model")
    return highs
