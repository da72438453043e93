"""What a device sustains: seconds of an operator from what it computes and moves."""

from dataclasses import dataclass
from typing import NamedTuple

Shares = tuple[tuple[float, float], ...]
"""From which size on which part of a peak is reached, the largest size first."""


class Work(NamedTuple):
    """Operations of products and others, bytes moved, and operations of fused attention."""

    matrix: float = 0.0
    vector: float = 0.0
    moved: float = 0.0
    attention: float = 0.0


@dataclass(frozen=True)
class Rates:
    """What a device sustains.

    Parameters
    ----------
    matrix_flops_per_s, vector_flops_per_s, memory_bytes_per_s : float
        Peaks.
    matrix_shares, vector_shares, memory_shares : tuple of (float, float)
        By operations, operations and bytes of an operator.
    added : bool
        Whether operations and bytes take turns; else the longer counts.
    attention_flops_per_s : float, optional
        Of fused attention; by default as of large products.
    """

    matrix_flops_per_s: float
    vector_flops_per_s: float
    memory_bytes_per_s: float
    matrix_shares: Shares
    vector_shares: Shares
    memory_shares: Shares
    added: bool = True
    attention_flops_per_s: float | None = None

    def time_s(self, work: Work) -> float:
        """Of an operator."""
        busy = work.matrix / (self.matrix_flops_per_s * _share(self.matrix_shares, work.matrix))
        fused = self.attention_flops_per_s or self.matrix_flops_per_s * self.matrix_shares[0][1]
        busy += work.attention / fused
        busy += work.vector / (self.vector_flops_per_s * _share(self.vector_shares, work.vector))
        moving = work.moved / (self.memory_bytes_per_s * _share(self.memory_shares, work.moved))
        return busy + moving if self.added else max(busy, moving)


def _share(shares: Shares, size: float) -> float:
    return next(share for least, share in shares if size >= least)
