"""Forged certificates: what once was accepted or crashed, mutations of true ones, and a forger that learns.

Each is given as what a certificate holds; nothing here knows how the checker works, except that the last kind of forger
reads its message for the place of the first fault.
"""

import dataclasses
import re

import numpy as np

from ddlopt.certificates.topology import DesignCertificate, check_certificate
from ddlopt.certificates.topology.format import BRANCH, CLOSED, ELSEWHERE, END, FIRST_WEIGHT, IMAGE, UNCOLOURABLE
from ddlopt.models.errors import SolutionError

SMALLEST, LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
ODD_PRICES = (SMALLEST, LARGEST, 2**46, -(2**46), 2**46 + 1, -(2**46) - 1, 2**62, -(2**62), -1, 0, 1)
WORDS = (CLOSED, BRANCH, END, ELSEWHERE, IMAGE, UNCOLOURABLE, FIRST_WEIGHT)
ODD_WORDS = (-7, -8, -9, 2**31 - 1, -(2**31), 127, 10**6, -(10**6))


def made(instance, unit_exponent, units, parts, lengths=(), prices=None, images=()):
    """A certificate from lists; the weights have no prices unless they are given."""
    n = instance.servers
    columns = (n * n if instance.optics == "duplex" else n) + 1
    lengths = np.array(lengths, dtype=np.uint16).reshape(len(lengths), n * n)
    prices = np.zeros((len(lengths), columns), np.int64) if prices is None else np.array(prices, dtype=np.int64)
    return DesignCertificate(
        instance.name,
        instance.digest,
        unit_exponent,
        units,
        np.array([word for part in parts for word in part], dtype=np.int32),
        np.array([len(part) for part in parts], dtype=np.uint32),
        lengths,
        prices,
        np.array(images, dtype=np.int32).reshape(len(images), n + 1),
    )


class Forger:
    """Changes a certificate in ways that its writer never would.

    Parameters
    ----------
    automorphisms : list of permutations
        Some that leave the instance as it is, the identity among them.
    """

    def __init__(self, instance, certificate, automorphisms, rng):
        self.instance, self.true, self.automorphisms, self.rng = instance, certificate, automorphisms, rng
        self.n = instance.servers
        self.kinds = [getattr(self, name) for name in dir(type(self)) if name.startswith("forge_")]

    def one(self):
        """A forgery of one to three kinds, often with a bound that is too good to be true; and what was done."""
        rng, forged, done = self.rng, self.true, []
        for _ in range(rng.integers(1, 4)):
            kind = self.kinds[rng.integers(len(self.kinds))]
            try:
                forged = kind(forged)
            except (ValueError, IndexError, OverflowError):  # the change before left nothing to change here
                continue
            done.append(kind.__name__.removeprefix("forge_"))
        if rng.random() < 0.5:
            forged = self._claim(forged, rng.choice([1.002, 1.05, 1.5, 4.0]))
            done.append("claim")
        if rng.random() < 0.1:
            last = (self.odd_type, self.odd_figures)[rng.integers(2)]
            forged = last(forged)
            done.append(last.__name__)
        return forged, "+".join(done)

    def _claim(self, c, factor):
        return dataclasses.replace(c, bound_units=min(2**30, int(c.bound_units * factor)))

    # Words and parts.

    def _parts(self, c):
        return [part.tolist() for part in np.split(c.words, np.cumsum(c.part_words.astype(np.int64))[:-1])]

    def _with(self, c, parts, images=None):
        words = np.array([word for part in parts for word in part], dtype=np.int32)
        counts = np.array([len(part) for part in parts], dtype=np.uint32)
        images = c.images if images is None else np.array(images, dtype=np.int32).reshape(len(images), self.n + 1)
        return dataclasses.replace(c, words=words, part_words=counts, images=images)

    def _some_word(self, c):
        rng = self.rng
        few = [*WORDS, FIRST_WEIGHT - int(rng.integers(len(c.lengths) + 2)), *range(4), len(c.part_words) - 1]
        return int(rng.choice([*few, int(rng.integers(len(c.part_words) + 1)), *ODD_WORDS]))

    def forge_word(self, c):
        """One word or two become others."""
        words = c.words.copy()
        for place in self.rng.integers(len(words), size=self.rng.integers(1, 3)):
            words[place] = self._some_word(c)
        return dataclasses.replace(c, words=words)

    def forge_more_words(self, c):
        """A word more, or one less, within a part."""
        parts = self._parts(c)
        part = parts[self.rng.integers(len(parts))]
        place = int(self.rng.integers(len(part)))
        if self.rng.random() < 0.5:
            part.insert(place, self._some_word(c))
        else:
            del part[place]
        return self._with(c, parts)

    def forge_truncated(self, c):
        """Words are cut off, with or without the counts to go with it."""
        length = int(self.rng.integers(len(c.words)))
        if self.rng.random() < 0.3:
            return dataclasses.replace(c, words=c.words[:length])
        counts = np.diff(np.minimum(np.cumsum(c.part_words.astype(np.int64)), length), prepend=0)
        return dataclasses.replace(c, words=c.words[:length], part_words=counts[counts > 0].astype(np.uint32))

    def forge_child(self, c):
        """A case of a branching is skipped: everything between two sets of a part."""
        parts = self._parts(c)
        part = parts[self.rng.integers(len(parts))]
        first, last = sorted(self.rng.integers(len(part), size=2).tolist())
        del part[first:last]
        return self._with(c, parts)

    def forge_parts_swapped(self, c):
        """The words of two parts change places."""
        parts = self._parts(c)
        i, j = self.rng.integers(len(parts), size=2)
        parts[i], parts[j] = parts[j], parts[i]
        return self._with(c, parts)

    def forge_part_counts(self, c):
        """Parts begin and end elsewhere."""
        counts = c.part_words.astype(np.int64)
        i, j = self.rng.integers(len(counts), size=2)
        counts[i] += 1
        counts[j] -= 1
        return dataclasses.replace(c, part_words=counts.astype(np.uint32))

    def forge_part_counts_extreme(self, c):
        """Counts that do not add up, or add up beyond 32 bits."""
        counts = c.part_words.copy()
        counts[self.rng.integers(len(counts))] = self.rng.choice([0, 2**31, 2**32 - 1, 1])
        return dataclasses.replace(c, part_words=counts[: self.rng.integers(len(counts) + 1)])

    def forge_part_twice(self, c):
        """A part is named where another should be, or by itself."""
        parts = self._parts(c)
        places = [(p, i + 1) for p, part in enumerate(parts) for i, word in enumerate(part[:-1]) if word == ELSEWHERE]
        p, i = places[self.rng.integers(len(places))]
        parts[p][i] = int(self.rng.choice([p, int(self.rng.integers(len(parts))), len(parts) - 1, len(parts), -1]))
        return self._with(c, parts)

    # Images.

    def _order(self):
        rng = self.rng
        if rng.random() < 0.25:
            return rng.permutation(self.n).tolist()
        order = list(self.automorphisms[rng.integers(len(self.automorphisms))])
        if rng.random() < 0.2:
            i, j = rng.integers(self.n, size=2)
            order[i], order[j] = order[j], order[i]
        return order

    def forge_image_of_part(self, c):
        """A part becomes the image of another one, or of itself; parts that it named may be lost or kept."""
        parts, images = self._parts(c), c.images.tolist()
        p = int(self.rng.integers(len(parts)))
        origin = int(self.rng.choice([p, int(self.rng.integers(len(parts))), max(0, p - 1), len(parts) - 1]))
        kept = parts[p][: self.rng.integers(len(parts[p]))] if self.rng.random() < 0.3 else []
        parts[p] = [*kept, IMAGE, len(images)]
        return self._with(c, parts, [*images, [origin, *self._order()]])

    def forge_image_within(self, c):
        """The end of a case becomes the image of some part."""
        parts, images = self._parts(c), c.images.tolist()
        part = parts[self.rng.integers(len(parts))]
        closed = [i for i, word in enumerate(part) if word in (CLOSED, END)]
        i = closed[self.rng.integers(len(closed))]
        part[i : i + 1] = [IMAGE, len(images)]
        return self._with(c, parts, [*images, [int(self.rng.integers(len(parts))), *self._order()]])

    def forge_image_of_each_other(self, c):
        """Two parts become images of each other."""
        parts, images = self._parts(c), c.images.tolist()
        i, j = (int(p) for p in self.rng.choice(len(parts), size=2, replace=False))
        order = self._order()
        back = np.argsort(order).tolist()
        parts[i], parts[j] = [IMAGE, len(images)], [IMAGE, len(images) + 1]
        return self._with(c, parts, [*images, [j, *back], [i, *order]])

    def forge_part_behind_image(self, c):
        """A part goes on in a new one, which is its image; the new one is put first, last or anywhere."""
        parts, images = self._parts(c), c.images.tolist()
        p, at = int(self.rng.integers(len(parts))), int(self.rng.integers(len(parts)))

        def moved(number):
            return number + (number >= at)

        for part in parts:
            for i, word in enumerate(part[:-1]):
                if word == ELSEWHERE:
                    part[i + 1] = moved(part[i + 1])
        images = [[moved(origin), *order] for origin, *order in images]
        parts[p] = [ELSEWHERE, at]
        parts.insert(at, [IMAGE, len(images)])
        return self._with(c, parts, [*images, [moved(p), *self._order()]])

    def forge_image_row(self, c):
        """An image is of another part, or by another permutation, or both come twice."""
        images = c.images.copy()
        i = self.rng.integers(len(images))
        kind = self.rng.integers(4)
        if kind == 0:
            images[i, 0] = self.rng.choice([0, len(c.part_words) - 1, -1, 2**31 - 1, -(2**31)])
        elif kind == 1:
            images[i, 1:] = self._order()
        elif kind == 2:
            images[i, 1 + self.rng.integers(self.n)] = self.rng.choice([-1, self.n, 0, 2**31 - 1])
        else:
            images[i] = images[self.rng.integers(len(images))]
        return dataclasses.replace(c, images=images)

    # Ends of cases.

    def forge_end(self, c):
        """A part consists of one claim."""
        parts = self._parts(c)
        weight = FIRST_WEIGHT - int(self.rng.integers(len(c.lengths) + 1))
        claims = [[CLOSED], [UNCOLOURABLE], [weight, CLOSED], [weight, UNCOLOURABLE], [BRANCH, 0, END]]
        parts[self.rng.integers(len(parts))] = claims[self.rng.integers(len(claims))]
        return self._with(c, parts)

    # Weights.

    def forge_price(self, c):
        """Prices of servers, arcs and links: too large, negative, wrapping around."""
        prices = c.prices.copy()
        row = self.rng.integers(len(prices))
        for column in self.rng.integers(prices.shape[1], size=self.rng.integers(1, 4)):
            prices[row, column] = self.rng.choice(np.array(ODD_PRICES, dtype=object))
        return dataclasses.replace(c, prices=prices)

    def forge_lengths(self, c):
        """Lengths of one weight: none, all the longest, others'."""
        lengths = c.lengths.copy()
        row = self.rng.integers(len(lengths))
        choice = self.rng.integers(3)
        lengths[row] = (0, 2**16 - 1, lengths[self.rng.integers(len(lengths))])[choice]
        return dataclasses.replace(c, lengths=lengths)

    def forge_weights_swapped(self, c):
        """Rows of lengths are in another order."""
        return dataclasses.replace(c, lengths=self.rng.permutation(c.lengths))

    # Types and shapes, figures.

    def odd_type(self, c):
        """An array of another type, shape or memory order, or none at all."""
        name = self.rng.choice(["words", "part_words", "lengths", "prices", "images"])
        array = getattr(c, name)
        kind = self.rng.integers(9)
        if kind == 0:
            types = [np.float64, np.int8, np.int64, np.uint64, np.bool_, object, "U5", array.dtype.newbyteorder()]
            return dataclasses.replace(c, **{name: array.astype(types[self.rng.integers(len(types))])})
        if kind == 1:
            return dataclasses.replace(c, **{name: array[..., None]})
        if kind == 2:
            return dataclasses.replace(c, **{name: array[:0]})
        if kind == 3:
            return dataclasses.replace(c, **{name: np.asfortranarray(array)})
        if kind == 4:
            return dataclasses.replace(c, **{name: array.T.copy()})
        if kind == 5:
            return dataclasses.replace(c, **{name: np.ma.masked_array(array, mask=True)})
        if kind == 6:
            return dataclasses.replace(c, **{name: array.tolist()})
        if kind == 7:
            return dataclasses.replace(c, **{name: array[::2]})
        return dataclasses.replace(c, **{name: None})

    def odd_figures(self, c):
        """Bounds and units that are none, or that shift what is claimed."""
        if self.rng.random() < 0.5:
            units = [0, -1, 2**30 + 1, 2**64, float(c.bound_units), True, None, c.bound_units + 1]
            return dataclasses.replace(c, bound_units=units[self.rng.integers(len(units))])
        exponents = [c.unit_exponent + 1, c.unit_exponent - 1, 2**40, -(2**40), 0.0, None]
        return dataclasses.replace(c, unit_exponent=exponents[self.rng.integers(len(exponents))])


def learnt(forger, steps, claim):
    """Claim too much and mend what the checker complains of, one fault after the other; the last attempt.

    The fault is mended by closing the case in another way where it is: by an image of any part, a weight more, another
    part, or a claim.
    """
    rng, forged = forger.rng, forger._claim(forger.true, claim)
    for _ in range(steps):
        try:
            check_certificate(forger.instance, forged)
        except SolutionError as problem:
            place = re.search(r"near word (\d+)", str(problem))
            begins_anew = place is None or rng.random() < 0.1
            forged = forger._claim(forger.true, claim) if begins_anew else _mended(forger, forged, int(place[1]))
        else:
            return forged, True
    return forged, False


def _mended(forger, c, place):
    rng, parts, images = forger.rng, forger._parts(c), c.images.tolist()
    number, within = 0, place
    while number < len(parts) - 1 and within >= len(parts[number]):
        within -= len(parts[number])
        number += 1
    part, weight = parts[number], FIRST_WEIGHT - int(rng.integers(max(1, len(c.lengths))))
    origins = [int(rng.integers(len(parts))), number, max(0, number - 1), 0]
    cures = (
        [IMAGE, len(images)],
        [weight, CLOSED],
        [UNCOLOURABLE],
        [ELSEWHERE, int(rng.integers(len(parts)))],
        [BRANCH, int(rng.integers(forger.n)), *(w for k in range(3) for w in (k, weight, CLOSED)), END],
        [CLOSED, END],
        [END],
        [],
    )
    part[within : within + 1] = cures[rng.integers(len(cures))]
    if len(part) > within and part[within] == IMAGE:
        images.append([origins[rng.integers(len(origins))], *forger._order()])
    return forger._with(c, [p or [CLOSED] for p in parts], images)
