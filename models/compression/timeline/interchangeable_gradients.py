r"""Gradients of the same figures: those sent later may as well be the more compressed ones.

Let i < j be gradients, each a message of its own, with the same options, and let o, p be two of these with
:math:`e_o \le e_p` and :math:`c_o \ge c_p`: o *comes before* p. Of the plans that are the same but for i and j, the one
with o at i and p at j is no slower than the one with p at i and o at j: in the closed form
:math:`\max_k R_k + \sum_{h \le k} e_h + \sum_{h \ge k} c_h` the other has more encoding in the rows i .. j-1, more
sending in the rows i+1 .. j, both options in row i, and less in none. Exchanging as long as there is such a pair ends,
as encoding moves back or sending moves forward each time. So some optimal plan has none.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.timeline.candidate_messages import Key, Messages

Places = npt.NDArray[np.int64]


class Interchangeable(NamedTuple):
    """Gradients of the same options.

    Parameters
    ----------
    gradients : tuple of int
        At least two, in order.
    messages : (number of gradients, m) array of int
        Their messages.
    comes_before : (m, m) array of bool
        Whether the first option comes before the second.
    """

    gradients: tuple[int, ...]
    messages: Places
    comes_before: npt.NDArray[np.bool_]


def interchangeable(messages: Messages) -> list[Interchangeable]:
    """All groups; ``messages`` are of a single gradient each."""
    groups: dict[bytes, list[int]] = {}
    starts = np.flatnonzero(np.diff(messages.first, prepend=-1))
    ends = np.append(starts[1:], len(messages.first))
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        figures = [column[start:end] for column in messages[2:]]
        groups.setdefault(b"".join(each.tobytes() for each in figures), []).append(i)
    found = []
    for gradients in groups.values():
        numbers = starts[gradients][:, None] + np.arange(ends[gradients[0]] - starts[gradients[0]])
        encode, occupation = messages.encode_s[numbers[0]], messages.occupation_s[numbers[0]]
        before = (encode[:, None] <= encode) & (occupation[:, None] >= occupation)
        np.fill_diagonal(before, val=False)
        if len(gradients) > 1 and before.any():
            found.append(Interchangeable(tuple(gradients), numbers, before))
    return found


def in_order(messages: Messages, chosen: list[Key]) -> list[Key]:
    """A plan of single gradients that is no slower, and in which no option follows one that it comes before."""
    places = {key: number for number, key in enumerate(messages.keys)}
    sent = {first: places[first, last, option] for first, last, option in chosen}
    for group in interchangeable(messages):
        options = [int(sent[gradient] - group.messages[place, 0]) for place, gradient in enumerate(group.gradients)]
        exchanged = True
        while exchanged:
            exchanged = False
            for j in range(1, len(options)):
                for i in range(j):
                    if group.comes_before[options[j], options[i]]:
                        options[i], options[j] = options[j], options[i]
                        exchanged = True
        for place, gradient in enumerate(group.gradients):
            sent[gradient] = int(group.messages[place, options[place]])
    return [messages.keys[number] for number in sent.values()]
