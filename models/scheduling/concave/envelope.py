r"""Widths that a linear relaxation needs: the corners of the concave envelope of a job's progress.

In a relaxation a job may divide a slot among several widths, so that what it can have is the concave envelope of its
progress per second :math:`\varphi(w) = w / \tau(w)` over 0 and its widths :math:`\underline N, \dots, N`; widths below
the envelope are never needed.

**Theorem.** With ring timing and without latency the corners are among 0, :math:`\underline N` and N.

*Proof.* Put c = compute time, a = 2m/b + m/G and A = c + a. Then :math:`\varphi(w) = w^2 / (A w - a)` for w >= 1, and

.. math::
    \varphi''(w) = \frac{2 a^2}{(A w - a)^3} \ge 0,

as A > a: progress is convex, and no width strictly between :math:`\underline N` and N lies above the chord of the two.
Since :math:`\tau` does not fall, :math:`\varphi(w) / w = 1 / \tau(w)` does not rise, so the envelope leaves 0 for
:math:`\underline N`. ∎

With latency :math:`\varphi` turns concave for large w and in the end falls, and other timings have their own shapes;
there the corners are calculated from the numbers. The envelope ends at the largest progress, as more workers than that
help nobody: a job whose ring is slow may have no corner but its least width.
"""

from functools import lru_cache

import numpy as np

from ddlopt.models.scheduling.fastest import upper_envelope
from ddlopt.models.scheduling.instance import Job
from ddlopt.models.scheduling.timing import PolluxTiming, RingTiming


def envelope_widths(job: Job) -> tuple[int, ...]:
    """Widths at the corners of the concave envelope of progress, 0 first, increasing.

    They belong to the job's own bandwidth: not to contention, nor to bandwidth that the schedule chooses.
    """
    return _corners(job.timing, job.min_workers, job.max_workers)


@lru_cache(maxsize=1 << 14)
def _corners(timing: RingTiming | PolluxTiming, fewest: int, most: int) -> tuple[int, ...]:
    """Cached, as a trace has thousands of jobs with a few timings."""
    if timing.kind == "ring" and timing.latency_s == 0:
        gains = timing.minibatches_per_s(most) > timing.minibatches_per_s(fewest)
        return (0, fewest, most) if gains else (0, fewest)
    return numeric_corners(timing, fewest, most)


def numeric_corners(timing: RingTiming | PolluxTiming, fewest: int, most: int) -> tuple[int, ...]:
    """The corners from the numbers alone, whatever the timing; of points on one line the outer two."""
    widths = np.array([0, *range(fewest, most + 1)])
    rates = np.array([float(timing.minibatches_per_s(int(width))) for width in widths])
    return tuple(widths[upper_envelope(widths, rates)].tolist())
