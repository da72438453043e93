r"""Which parameters of a sparse model a batch touches: fields whose values follow Zipf's law.

A row of a click log has one value in each field, and each value has a parameter (an embedding row, or a weight). The
value of field f with rank r = 1 … V is drawn with probability

.. math:: q_{fr} = r^{-a} \Big/ \sum_{k=1}^{V} k^{-a},

with the field's own vocabulary V and exponent a, independently of other fields and rows. A batch of R rows touches
a parameter with probability :math:`1 - \prod_f (1 - q_f)^R`, where :math:`q_f` is the probability that a value of
field f has this parameter (with hashing, several values may).

:data:`CRITEO_SAMPLE` is fitted to the public sample of Criteo's click log in aksnzhy/xlearn
(``demo/classification/criteo_ctr``: 400 rows, 17 fields, 7 008 values, 876 parameters). For each field, vocabulary
and exponent were chosen so that 400 draws see as many different values as the sample has, and the cumulative shares of
its 1, 2, 4, … 64 most frequent values are as near as can be. The model was not fitted to the totals:

============================== ====== =====================
of 400 rows                    sample model (mean of draws)
============================== ====== =====================
parameters touched             876    877
share of the 10 hottest        40.2 % 40.2 %
share of the 20 hottest        58.1 % 55.5 %
share of the 32 hottest        65.0 % 63.2 %
share of the 64 hottest        73.7 % 73.2 %
============================== ====== =====================

In the sample values depend on each other (fields 1 to 17 describe one click); in the model they do not.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import OptionError


@dataclass(frozen=True)
class ZipfField:
    """A field of a click log.

    Parameters
    ----------
    vocabulary : int
        How many values it has.
    exponent : float
        The value of rank r is drawn in proportion to ``r ** -exponent``.
    """

    vocabulary: int
    exponent: float

    @cached_property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """Of the values by rank, (vocabulary,)."""
        weights: npt.NDArray[np.float64] = np.arange(1.0, self.vocabulary + 1.0) ** -self.exponent
        return np.asarray(weights / weights.sum())


@dataclass(frozen=True)
class ZipfModel:
    """Fields, and which parameter each of their values has.

    Parameters
    ----------
    fields : tuple of ZipfField
    buckets : int, optional
        Values are hashed to this many parameters, so that some share one; without, each has its own.
    salt : int
        Of the hash: without ``buckets`` it says in which order parameters are numbered.
    """

    fields: tuple[ZipfField, ...]
    buckets: int | None = None
    salt: int = 0

    def __post_init__(self) -> None:
        if not self.fields:
            raise OptionError("fields is empty; a model has at least one")
        for place, field in enumerate(self.fields):
            if field.vocabulary < 1:
                raise OptionError(f"fields[{place}] has vocabulary {field.vocabulary}; it must be at least 1")
        if self.buckets is not None and self.buckets < 1:
            raise OptionError(f"buckets is {self.buckets}; it must be at least 1")

    @property
    def parameters(self) -> int:
        """How many there are, touched or not."""
        return self.buckets or sum(field.vocabulary for field in self.fields)

    @cached_property
    def ids(self) -> tuple[npt.NDArray[np.int64], ...]:
        """For each field the parameters of its values, by rank."""
        rng = np.random.default_rng(self.salt)
        total = sum(field.vocabulary for field in self.fields)
        numbers = rng.integers(self.buckets, size=total) if self.buckets else rng.permutation(total)
        return tuple(np.split(numbers, np.cumsum([field.vocabulary for field in self.fields])[:-1]))

    def of_size(self, parameters: int) -> "ZipfModel":
        """The same with vocabularies in proportion, so that there are this many values in all.

        Raises
        ------
        OptionError
            If there are fewer than fields.
        """
        if parameters < len(self.fields):
            raise OptionError(
                f"parameters is {parameters}, but each of {len(self.fields)} fields has a value; use at least "
                f"{len(self.fields)}"
            )
        sizes = np.array([field.vocabulary for field in self.fields])
        scaled = 1 + np.floor(sizes / sizes.sum() * (parameters - len(sizes))).astype(np.int64)
        scaled[sizes.argmax()] += parameters - scaled.sum()
        fields = (ZipfField(int(size), field.exponent) for size, field in zip(scaled, self.fields, strict=True))
        return ZipfModel(tuple(fields), self.buckets, self.salt)


CRITEO_SAMPLE = ZipfModel(
    tuple(
        ZipfField(vocabulary, exponent)
        for vocabulary, exponent in (
            (10000, 1.4), (823, 1.4), (12, 1.6), (2, 0.9), (441, 0.8), (2, 3.9), (108, 0.8), (79, 1.3), (10000, 1.8),
            (19, 1.4), (1, 0.0), (823, 1.5), (4, 3.6), (10, 3.6), (126, 1.9), (704, 1.3), (322, 1.3),
        )
    )
)  # fmt: skip
"""Fields 1 to 17 of the public sample; 10 000, as many as its hash has, where its rows do not tell a vocabulary."""


def zipf_batches(
    rng: np.random.Generator, batches: int, rows: int, model: ZipfModel = CRITEO_SAMPLE
) -> list[npt.NDArray[np.int64]]:
    """Parameters that batches touch.

    Parameters
    ----------
    rng : numpy.random.Generator
    batches, rows : int
        How many, and rows of each.
    model : ZipfModel

    Returns
    -------
    list of (k,) int64 arrays
        For each batch its parameters, each once, ascending.
    """
    for option, value in (("batches", batches), ("rows", rows)):
        if value < 1:
            raise OptionError(f"{option} is {value}; it must be at least 1")
    columns = []
    for field, ids in zip(model.fields, model.ids, strict=True):
        up_to = np.cumsum(field.probabilities)
        ranks = np.searchsorted(up_to, rng.random((batches, rows)) * up_to[-1], side="right")
        columns.append(ids[np.minimum(ranks, field.vocabulary - 1)])
    touched = np.concatenate(columns, axis=1)
    return [np.unique(row) for row in touched]


def zipf_frequencies(rows: int, model: ZipfModel = CRITEO_SAMPLE) -> npt.NDArray[np.float64]:
    """Probability that a batch of ``rows`` rows touches each parameter, (parameters,)."""
    if rows < 1:
        raise OptionError(f"rows is {rows}; it must be at least 1")
    missed = np.zeros(model.parameters)
    with np.errstate(divide="ignore"):
        for field, ids in zip(model.fields, model.ids, strict=True):
            own = np.bincount(ids, weights=field.probabilities, minlength=model.parameters)
            missed += np.log1p(-np.minimum(own, 1.0))
    return np.asarray(-np.expm1(rows * missed))
