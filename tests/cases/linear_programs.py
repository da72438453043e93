"""Small programs in fractions, with and without bounds of columns, and a proof by hand."""

from fractions import Fraction

from ddlopt.certificates.linear import ExactModel


def knapsack(claim=Fraction(-3)):
    """Maximise 2 a + 2 b + z with a + b + z <= 1.5, a and b of 0 and 1, 0 <= z: the best is 2.5."""
    rows = ((None, ((0, Fraction(1)), (1, Fraction(1)), (2, Fraction(1))), Fraction(3, 2)),)
    cost = ((0, Fraction(-2)), (1, Fraction(-2)), (2, Fraction(-1)))
    return ExactModel(
        True, cost, Fraction(0), rows, (Fraction(0),) * 3, (Fraction(1), Fraction(1), None), (True, True, False)
    )


GOOD = [["branch", 0, 0], ["dual", 0, [0], [-1]], ["branch", 1, 0], ["dual", 0, [0], [-1]], ["farkas", 0, [0], [-1]]]


def random_model(rng):
    """A small program with bounded whole columns, and a continuous one that may have no upper bound."""
    columns, odd = rng.randrange(2, 5), rng.choice((1, 3, 7))

    def number():
        return Fraction(rng.randrange(-6, 7), odd)

    integer = tuple(rng.random() < 0.8 for _ in range(columns))
    upper = tuple(Fraction(rng.randrange(0, 4)) if whole else None for whole in integer)
    lower = tuple(Fraction(rng.randrange(-2, 1)) if whole else Fraction(0) for whole in integer)
    rows = []
    for _ in range(rng.randrange(1, 4)):
        terms = tuple((j, value) for j in range(columns) if (value := number()))
        low, high = sorted((number() * 2, number() * 2))
        kind = rng.randrange(3)
        rows.append((low if kind != 1 else None, terms, high if kind != 0 else None))
    # A row that keeps what has no bound within some.
    rows.append((None, tuple((j, Fraction(1)) for j in range(columns)), Fraction(9)))
    cost = tuple((j, value) for j in range(columns) if (value := number()))
    return ExactModel(False, cost, number(), tuple(rows), lower, upper, integer)


def open_model(rng):
    """A small program in which many columns lack bounds, and rows give some of them one after the other."""
    count, bottoms = rng.randrange(2, 7), (1, 1, 2, 3, 2**30)

    def number():
        return Fraction(rng.randrange(-20, 21), rng.choice(bottoms))

    rows = []
    for _ in range(rng.randrange(1, 9)):
        terms = tuple(
            (j, value) for j in sorted(rng.sample(range(count), rng.randrange(1, count))) if (value := number())
        )
        low, high = sorted((number(), number()))
        rows.append((low if rng.random() < 0.5 else None, terms, high if rng.random() < 0.7 else None))
    lower = tuple(number() - 10 if rng.random() < 0.6 else None for _ in range(count))
    upper = tuple(number() + 10 if rng.random() < 0.3 else None for _ in range(count))
    integer = tuple(rng.random() < 0.5 for _ in range(count))
    cost = tuple((j, value) for j in range(count) if rng.random() < 0.7 and (value := number()))
    return ExactModel(False, cost, number(), tuple(rows), lower, upper, integer)
