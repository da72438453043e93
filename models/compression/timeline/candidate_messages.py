"""The messages that a timeline may send: gradients in a row with one option, less those that others replace."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.timeline.choices import Choices, choices_of
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.compression.timeline.units import excess_room
from ddlopt.models.tolerances import ROUNDING

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Key = tuple[int, int, int]
"""First and last gradient, and the place of the option in the first one's menu."""


class Messages(NamedTuple):
    """Messages by first and last gradient and option.

    Parameters
    ----------
    first, last, option : (k,) arrays of int
        ``option`` is the place in the menu of the first gradient; the others take theirs of the same label.
    encode_s, occupation_s : (k,) arrays
        Of all the gradients; one launch, the longest.
    excess : (k,) array
        Error beyond the least that the gradients can have.
    """

    first: Places
    last: Places
    option: Places
    encode_s: Floats
    occupation_s: Floats
    excess: Floats

    @property
    def keys(self) -> list[Key]:
        """(first, last, option) of each."""
        return list(zip(self.first.tolist(), self.last.tolist(), self.option.tolist(), strict=True))


def candidate_messages(instance: CompressionInstance, replaced: bool = False) -> Messages:
    """Messages among which there is an optimal plan.

    Left out is what exceeds the error budget where all other gradients have their least error, and what others replace:
    a message of the same gradients with another label and no more encoding, occupation and error (which counts where it
    has a budget or is the goal); or, where the first or last of several gradients is launched for free, that one by
    itself and the rest. No :math:`F_i` at the end of a message gets larger by either, as encoding ends no later.

    Parameters
    ----------
    replaced : bool
        Whether to have what others replace as well.
    """
    choices = choices_of(instance)
    tables = _by_label(choices)
    room = excess_room(instance)
    error_counts = room is not None or instance.goal == "error"
    found = []
    for first, end in enumerate(_ends(instance, choices.bytes).tolist()):
        labels = choices.labels[first, : choices.counts[first]]
        encode, wire, launch, excess = (table[first:end, labels] for table in tables)
        encode, excess = encode.cumsum(axis=0), excess.cumsum(axis=0)
        occupation = wire.cumsum(axis=0) + np.maximum.accumulate(launch, axis=0)
        kept = np.isfinite(occupation)
        if not replaced:
            kept &= ~_dominated(encode, occupation, *([excess] if error_counts else []))
            kept[1:] &= (launch[0] > 0) & (launch[1:] > 0)
        if room is not None:
            kept &= excess <= room
        last, option = np.nonzero(kept)
        found.append((np.full_like(last, first), first + last, option, encode[kept], occupation[kept], excess[kept]))
    return Messages(*(np.concatenate(column) for column in zip(*found, strict=True)))


def most_messages(instance: CompressionInstance) -> int:
    """A number of messages that is not exceeded, quickly."""
    choices = choices_of(instance)
    lengths = _ends(instance, choices.bytes) - np.arange(instance.size)
    return int((lengths * choices.counts).sum())


def replacements(
    instance: CompressionInstance, messages: Messages, choices: Sequence[int], sizes: Sequence[int]
) -> list[Key]:
    """What :func:`candidate_messages` has for the messages of a plan; less than all gradients where it has nothing."""
    spans: dict[tuple[int, int], list[int]] = {}
    for k, span in enumerate(zip(messages.first.tolist(), messages.last.tolist(), strict=True)):
        spans.setdefault(span, []).append(k)
    keys, chosen, first = messages.keys, [], 0
    pending = []
    for size in sizes:
        pending.append((first, first + size - 1))
        first += size
    while pending:
        first, last = pending.pop()
        options = [instance.option(i, choices[i]) for i in range(first, last + 1)]
        encode = sum(option.encode_s for option in options) * (1 + ROUNDING)
        occupation = sum(option.occupation_s - option.launch_s for option in options)
        occupation = (occupation + max(option.launch_s for option in options)) * (1 + ROUNDING)
        fitting = [
            k
            for k in spans.get((first, last), [])
            if messages.encode_s[k] <= encode and messages.occupation_s[k] <= occupation
        ]
        if fitting:
            same = [k for k in fitting if keys[k][2] == choices[first]]
            chosen.append(keys[min(same or fitting, key=lambda k: messages.excess[k])])
        elif first < last:
            at = first if options[0].launch_s == 0 else last - 1
            pending += [(first, at), (at + 1, last)]
    return chosen


def _by_label(choices: Choices) -> Floats:
    """(4, n, number of labels) encode, wire, launch, excess; infinite where a gradient has no option of the label."""
    rows, places = np.nonzero(choices.labels >= 0)
    excess = choices.error - choices.error.min(axis=1, keepdims=True)
    tables = np.full((4, len(choices.counts), choices.labels.max() + 1), np.inf)
    for table, figures in zip(tables, (choices.encode_s, choices.wire_s, choices.launch_s, excess), strict=True):
        table[rows, choices.labels[rows, places]] = figures[rows, places]
    return tables


def _ends(instance: CompressionInstance, bytes_: Floats) -> Places:
    """(n,) how far messages from each gradient may go: the first that they may not have."""
    alone = np.arange(1, instance.size + 1)
    if not instance.fusion:
        return alone
    if instance.largest_bucket_bytes is None:
        return np.full(instance.size, instance.size)
    held = np.concatenate(([0.0], bytes_.cumsum()))
    together = np.searchsorted(held, held[:-1] + instance.largest_bucket_bytes, side="right") - 1
    return np.maximum(alone, together)


def _dominated(*figures: Floats) -> npt.NDArray[np.bool_]:
    """(k, m) whether another of the m has no figure larger; of equals the first is left."""
    no_larger = np.logical_and.reduce([each[:, None, :] <= each[:, :, None] for each in figures])
    earlier = np.tri(figures[0].shape[1], k=-1, dtype=np.bool_)
    found: npt.NDArray[np.bool_] = (no_larger & (~no_larger.transpose(0, 2, 1) | earlier)).any(axis=2)
    return found
