"""How long one iteration of a job takes at a given number of workers."""

from abc import abstractmethod
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ddlopt.models.contracts import Number, Part


class _Timing(Part):
    @abstractmethod
    def iteration_s(
        self,
        workers: int,
        bandwidth_bytes_per_s: Number | None = None,
        number: type[float] | type[Fraction] = float,
    ) -> Number:
        """Seconds of one iteration, in which every worker does one mini-batch.

        Parameters
        ----------
        workers : int
            At least 1.
        bandwidth_bytes_per_s : float or Fraction, optional
            Of every ring link, in place of the job's own.
        number : type
            Arithmetic: floats or rational numbers.
        """

    def minibatches_per_s(
        self,
        workers: int,
        bandwidth_bytes_per_s: Number | None = None,
        number: type[float] | type[Fraction] = float,
    ) -> Number:
        """Mini-batches that all workers together do in a second; 0 without workers.

        Mini-batches are what counts: iterations per second fall with every worker, mini-batches do not.
        """
        if workers == 0:
            return number(0)
        return workers / self.iteration_s(workers, bandwidth_bytes_per_s, number)


class RingTiming(_Timing):
    r"""A synchronous iteration with a ring all-reduce.

    .. math::
        \tau(w) = t^f M + t^b + \gamma + \frac{w-1}{w}\Bigl(\frac{2m}{b} + \frac{m}{G}\Bigr) + 2 (w-1) \alpha

    A ring of w workers takes 2 (w-1) steps; each moves m/w bytes over every link, and the first w-1 also add m/w bytes.
    Without latency (alpha = 0) the mini-batches done per second, :math:`w / \tau(w)`, are convex in w >= 1.

    Parameters
    ----------
    gradient_bytes : float
        m, what is all-reduced in each iteration.
    bandwidth_bytes_per_s : float
        b, reserved on every link of the ring.
    reduction_bytes_per_s : float, optional
        G, speed of adding what arrives; None if that takes no time.
    forward_s_per_sample, batch_samples, backward_s : float
        t^f, mini-batch M of one worker, t^b.
    overhead_s : float
        gamma, fixed for each iteration.
    latency_s : float
        alpha, of each of the steps of the ring. Measurements want it: see ``docs/families/scheduling.md``.
    """

    kind: Literal["ring"] = "ring"
    gradient_bytes: float = Field(ge=0)
    bandwidth_bytes_per_s: float = Field(gt=0)
    reduction_bytes_per_s: float | None = Field(default=None, gt=0)
    forward_s_per_sample: float = Field(ge=0)
    batch_samples: float = Field(default=1.0, gt=0)
    backward_s: float = Field(default=0.0, ge=0)
    overhead_s: float = Field(default=0.0, ge=0)
    latency_s: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def _takes_time(self) -> Self:
        if self.forward_s_per_sample + self.backward_s + self.overhead_s <= 0:
            raise ValueError("an iteration of one worker takes no time; give forward_s_per_sample or backward_s")
        return self

    def compute_s(self, number: type[float] | type[Fraction] = float) -> Number:
        """c, an iteration of one worker: forward, backward and overhead."""
        forward = number(self.forward_s_per_sample) * number(self.batch_samples)
        return forward + number(self.backward_s) + number(self.overhead_s)

    def iteration_s(
        self,
        workers: int,
        bandwidth_bytes_per_s: Number | None = None,
        number: type[float] | type[Fraction] = float,
    ) -> Number:
        """See the class."""
        bandwidth = self.bandwidth_bytes_per_s if bandwidth_bytes_per_s is None else bandwidth_bytes_per_s
        share = number(self.gradient_bytes) * (workers - 1) / workers
        moved = 2 * share / number(bandwidth) + 2 * (workers - 1) * number(self.latency_s)
        if self.reduction_bytes_per_s is not None:
            moved += share / number(self.reduction_bytes_per_s)
        return self.compute_s(number) + moved


class PolluxTiming(_Timing):
    r"""The throughput model of AdaptDL (Pollux): gradients and synchronisation overlap by a norm.

    .. math::
        \tau(w) = \bigl(T_g^\gamma + T_s(w)^\gamma\bigr)^{1/\gamma},\quad
        T_g = \alpha_c + \beta_c M,\quad T_s(1) = 0,\quad T_s(w) = \alpha_n + \beta_n (w - 2)

    Its synchronisation depends on the number of workers only, not on a link's bandwidth.

    Parameters
    ----------
    compute_s, compute_s_per_sample, batch_samples : float
        alpha_c, beta_c, mini-batch M of one worker.
    sync_s, sync_s_per_worker : float
        alpha_n, and beta_n for every worker past the second.
    overlap : float
        gamma: 1 adds the two times, large values take the longer.

    References
    ----------
    AdaptDL, ``adaptdl/goodput.py`` (Apache-2.0).
    """

    kind: Literal["pollux"] = "pollux"
    compute_s: float = Field(ge=0)
    compute_s_per_sample: float = Field(default=0.0, ge=0)
    batch_samples: float = Field(default=1.0, gt=0)
    sync_s: float = Field(default=0.0, ge=0)
    sync_s_per_worker: float = Field(default=0.0, ge=0)
    overlap: float = Field(default=1.0, ge=1, le=10)

    @model_validator(mode="after")
    def _takes_time(self) -> Self:
        if self.compute_s + self.compute_s_per_sample <= 0:
            raise ValueError("an iteration of one worker takes no time; give compute_s or compute_s_per_sample")
        return self

    def iteration_s(
        self,
        workers: int,
        bandwidth_bytes_per_s: Number | None = None,
        number: type[float] | type[Fraction] = float,
    ) -> Number:
        """See the class; rounded once where ``overlap`` is not 1, as a root is not rational."""
        compute = number(self.compute_s) + number(self.compute_s_per_sample) * number(self.batch_samples)
        if workers == 1:
            return compute
        sync = number(self.sync_s) + number(self.sync_s_per_worker) * (workers - 2)
        if self.overlap == 1:
            return compute + sync
        norm = (float(compute) ** self.overlap + float(sync) ** self.overlap) ** (1 / self.overlap)
        return number(norm)


Timing = Annotated[RingTiming | PolluxTiming, Field(discriminator="kind")]
