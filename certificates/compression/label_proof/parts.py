"""Cases of a proof: parts of the plans, by the options that they have for each gradient."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ddlopt.certificates.compression.label_proof.lanes import Ints, Lanes, Marks
from ddlopt.models.errors import RefutedError


def cases(lanes: Lanes, nodes: Sequence[Sequence[Any]]) -> Iterator[tuple[Marks, Sequence[int]]]:
    """The options of each case, and its prices' places.

    Raises
    ------
    RefutedError
        If the nodes are no tree.
    """
    parting = Parting(lanes)
    open_ones = [parting.whole]
    for kind, *rest in nodes:
        if not open_ones:
            raise RefutedError("there are nodes behind the last case")
        allowed = open_ones.pop()
        if kind == "labels":
            yield allowed, rest[0]
            continue
        gradient, options = rest
        if gradient >= len(allowed) or options[-1] >= allowed.shape[1]:
            raise RefutedError(f"gradient {gradient} or one of its options does not exist")
        some, others = parting.parts(allowed, gradient, options)
        open_ones += [others, some]
    if open_ones:
        raise RefutedError("a case is missing")


class Parting:
    r"""Parts of the plans, by the options that they have for each gradient.

    Where nothing is fused, an option with no less encoding, sending and error than another of the gradient is left out;
    of several lanes it passes all that the other does, and each for no less.

    Of gradients with the same options, where nothing is fused and there is one lane, later ones may as well be those
    sent shorter. Let i < j
    be two of them, and o, p two options with :math:`e_o \le e_p` and :math:`c_o \ge c_p`, not both the same: of the
    plans that differ in i and j alone, the one with o at i and p at j is no slower than the one with p at i and o at j.
    In :math:`\max_k R_k + \sum_{h \le k} e_h + \sum_{h \ge k} c_h` the other has more encoding in the rows i .. j-1,
    more sending in the rows i+1 .. j, both options in row i, and less in none. Exchanging ends, as encoding moves back
    or sending forward each time. So some best plan has no such pair, and what is left to one of the gradients rules out
    options of the others.
    """

    def __init__(self, lanes: Lanes) -> None:
        self.whole: Marks = lanes.labels >= 0
        busy, error = lanes.busy + lanes.launch, lanes.error * (lanes.error_most is not None)
        alone = bool((lanes.ends == np.arange(1, len(lanes.ends) + 1)).all())
        if alone:
            self.whole &= ~_replaced(self.whole, (lanes.encode, error, *busy, *lanes.used))
        same: dict[bytes, list[int]] = {}
        for place in range(len(self.whole) if alone and len(busy) == 1 else 0):
            rows = (self.whole[place], lanes.encode[place], busy[0, place], lanes.error[place])
            same.setdefault(b"".join(row.tobytes() for row in rows), []).append(place)
        self.same: dict[int, tuple[list[int], Marks]] = {}
        for places in same.values():
            encode, sent = lanes.encode[places[0]], busy[0, places[0]]
            before = (encode[:, None] <= encode) & (sent[:, None] >= sent)
            before &= ~before.T
            for place in places:
                self.same[place] = places, before

    def parts(self, allowed: Marks, gradient: int, options: Sequence[int]) -> tuple[Marks, Marks]:
        """What is ``allowed`` (n, m), parted into some of a gradient's options and the others."""
        some, others = allowed.copy(), allowed.copy()
        some[gradient] = False
        some[gradient, options] = allowed[gradient, options]
        others[gradient, options] = False
        for part in (some, others):
            places, before = self.same.get(gradient, ([], np.zeros((0, 0), dtype=np.bool_)))
            here = part[gradient]
            for other in places:
                if other != gradient and here.any():
                    out = before if other > gradient else before.T
                    part[other, out[:, here].all(axis=1)] = False
        return some, others


def _replaced(there: Marks, figures: Sequence[Ints | Marks]) -> Marks:
    """(n, m) which options have another that is nowhere larger; of the same ones the first is left."""
    no_larger = np.logical_and.reduce([each[:, :, None] <= each[:, None, :] for each in figures])
    no_larger &= there[:, :, None] & there[:, None, :]
    earlier = np.tri(there.shape[1], k=-1, dtype=np.bool_).T
    found: Marks = (no_larger & (~no_larger.transpose(0, 2, 1) | earlier)).any(axis=1)
    return found
