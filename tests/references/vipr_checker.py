"""A checker of VIPR's format 1.0, written from the specification of the format alone, in fractions.

K. Cheung, A. Gleixner, D. Steffy, "Verifying integer programming results", IPCO 2017, and ``cert_spec_v1_0.md`` of
https://github.com/scipopt/vipr.
"""

from fractions import Fraction
from math import ceil, floor

SENSES = {"L": -1, "E": 0, "G": 1}


class ViprError(Exception):
    """The file is none, or proves nothing."""


def require(holds, told):
    """Raise unless something holds."""
    if not holds:
        raise ViprError(told)


class _File:
    def __init__(self, text):
        lines = [line for line in text.splitlines() if not line.startswith("%")]
        self.words = iter(" ".join(lines).split())
        self.objective = {}

    def word(self, *expected):
        found = next(self.words, None)
        require(found is not None and (not expected or found in expected), f"{found} stands where {expected} should")
        return found

    def index(self, end=None):
        found = int(self.word())
        require(found >= 0 and (end is None or found < end), f"there is no index {found}")
        return found

    def value(self):
        return Fraction(self.word())

    def pairs(self, end, count=None):
        found = {}
        for _ in range(self.index() if count is None else count):
            place = self.index(end)
            require(place not in found, f"index {place} is there twice")
            found[place] = self.value()
        return found

    def constraint(self, columns):
        """Sense, right-hand side, coefficients."""
        self.word()
        sense, right = SENSES[self.word(*SENSES)], self.value()
        first = self.word()
        terms = self.objective if first == "OBJ" else self.pairs(columns, int(first))
        return sense, right, {column: value for column, value in terms.items() if value}


def check_vipr(text):
    """The lower and the upper limit that are proven of the optimum (None: none is), of a problem to be minimised.

    Raises
    ------
    ViprError
        If the file is wrong somewhere, or proves less than it says.
    """
    file = _File(text)
    file.word("VER")
    file.word("1.0")
    file.word("VAR")
    columns = file.index()
    names = {file.word() for _ in range(columns)}
    require(len(names) == columns, "two variables have one name")
    file.word("INT")
    whole = {file.index(columns) for _ in range(file.index())}
    file.word("OBJ")
    file.word("min")
    file.objective = file.pairs(columns)
    file.word("CON")
    count = file.index()
    file.index(count + 1)
    known = [file.constraint(columns) for _ in range(count)]
    assumed = [frozenset()] * count
    file.word("RTP")
    wanted = file.word("range", "infeas")
    low, high = (file.word(), file.word()) if wanted == "range" else ("-inf", "inf")
    file.word("SOL")
    solutions = [(file.word(), file.pairs(columns))[1] for _ in range(file.index())]
    _check_solutions(solutions, known, whole, file.objective, high)
    file.word("DER")
    for _ in range(file.index()):
        derived = file.constraint(columns)
        file.word("{")
        known.append(derived)
        assumed.append(_check_reason(file, derived, known, assumed, whole))
        file.word("}")
        file.word()
    require(next(file.words, None) is None, "something follows")
    require(not assumed[-1], "what is derived last rests on assumptions")
    goal = (1, Fraction(low) if low != "-inf" else Fraction(0), {c: v for c, v in file.objective.items() if v})
    require(
        (low == "-inf" and wanted == "range") or _dominates(known[-1], goal if wanted == "range" else (1, 1, {})),
        "it is not what is to be proven",
    )
    return tuple(None if each in ("inf", "-inf") else Fraction(each) for each in (low, high))


def _check_reason(file, derived, known, assumed, whole):
    """The assumptions of a derived constraint, which is the last one of those known."""
    place = len(known) - 1
    reason = file.word("asm", "lin", "rnd", "uns")
    if reason == "asm":
        return frozenset([place])
    if reason == "uns":
        one, first, other, second = (file.index(place) for _ in range(4))
        for each in (one, other):
            require(_dominates(known[each], derived), f"constraint {place} is not what {each} says")
        (less, top, terms), (more, bottom, same) = sorted((known[first], known[second]), key=lambda each: each[0])
        split = (less, more) == (-1, 1) and terms == same and bottom == top + 1 and top.denominator == 1
        split &= all(column in whole and value.denominator == 1 for column, value in terms.items())
        require(split, f"constraints {first} and {second} are not all cases")
        return (assumed[one] - {first}) | (assumed[other] - {second})
    parts = file.pairs(place)
    signs = {_sign(times) * known[each][0] for each, times in parts.items()} - {0}
    require(len(signs) <= 1, f"constraint {place} adds up both sides")
    sense, right, terms = signs.pop() if signs else 0, Fraction(0), {}
    for each, times in parts.items():
        right += times * known[each][1]
        for column, value in known[each][2].items():
            terms[column] = terms.get(column, 0) + times * value
    terms = {column: value for column, value in terms.items() if value}
    if reason == "rnd":
        rounds = all(column in whole and value.denominator == 1 for column, value in terms.items())
        require(rounds and sense, f"constraint {place} cannot be rounded")
        right = Fraction(floor(right) if sense < 0 else ceil(right))
    require(_dominates((sense, right, terms), derived), f"constraint {place} does not follow")
    return frozenset().union(*(assumed[each] for each in parts))


def _dominates(one, other):
    sense, right, terms = one
    if not terms and (right > 0 if sense > 0 else right < 0 if sense < 0 else right != 0):
        return True  # a falsehood
    if terms != other[2] or (sense != other[0] and sense):
        return False
    return right >= other[1] if other[0] > 0 else right <= other[1] if other[0] < 0 else right == other[1]


def _check_solutions(solutions, known, whole, objective, high):
    for point in solutions:
        require(all(point.get(column, Fraction(0)).denominator == 1 for column in whole), "a solution is not whole")
        for sense, right, terms in known:
            left = sum(value * point.get(column, 0) for column, value in terms.items())
            require(left == right if not sense else sense * (left - right) >= 0, "a solution misses a constraint")
    values = [sum(value * point.get(column, 0) for column, value in objective.items()) for point in solutions]
    require(
        high == "inf" or (min(values, default=None) is not None and min(values) <= Fraction(high)),
        "no solution is as good",
    )


def _sign(value):
    return (value > 0) - (value < 0)
