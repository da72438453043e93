"""Sparse models whose hot parameters go to switches: kind ``hot-zipf``."""

import numpy as np
import numpy.typing as npt

from ddlopt.instances.options import at_least, positive
from ddlopt.instances.workloads.sparse_batches import CRITEO_SAMPLE, ZipfModel, zipf_frequencies
from ddlopt.models.aggregation.hot.instance import HotInstance, HotJob, HotSwitch
from ddlopt.models.errors import OptionError
from ddlopt.models.tolerances import TINY


def zipf(
    rng: np.random.Generator,
    jobs: int = 1,
    parameters: int = 1000,
    workers: int = 8,
    rows: int = 10,
    widths: tuple[int, ...] = (1,),
    switches: int = 1,
    racks: bool = False,
    memory: float = 0.05,
) -> HotInstance:
    """Jobs on click logs that are as skewed as the public sample of Criteo's.

    See :data:`ddlopt.instances.workloads.sparse_batches.CRITEO_SAMPLE`. With several jobs, the number of
    workers of each is within a factor of 2, the exponents of its fields are raised or lowered by up to 20 % together,
    and it does 0.5 to 2 iterations in a second; a single job is as stated, with 1 iteration.

    Parameters
    ----------
    rng : numpy.random.Generator
    jobs : int
    parameters : int
        Of each job.
    workers : int
        Of a job.
    rows : int
        Of a worker's batch.
    widths : tuple of int
        Registers that a parameter takes: for each, one of these at random.
    switches : int
        The registers are shared out at random, none having less than half of the average.
    racks : bool
        Each switch sees the workers of its rack, where those of every job are placed at random; else each sees all.
    memory : float
        Registers of all switches, relative to what all parameters take.

    Returns
    -------
    HotInstance
    """
    for option, value in (("jobs", jobs), ("workers", workers), ("rows", rows), ("switches", switches)):
        at_least(option, value, 1)
    positive("memory", memory)
    if not widths or min(widths) < 1:
        raise OptionError(f"widths is {list(widths)}; give one or more, each at least 1")
    made = [_job(rng, number, jobs, parameters, workers, rows, widths) for number in range(jobs)]
    total = int(memory * sum(int(job.widths.sum()) for job in made))
    shares = 0.5 / switches + 0.5 * rng.dirichlet(np.ones(switches))
    passing = [rng.multinomial(job.workers, np.full(switches, 1 / switches)).tolist() for job in made]
    return HotInstance(
        name=f"hot-zipf-j{jobs}-p{parameters}-s{switches}",
        jobs=tuple(made),
        switches=tuple(
            HotSwitch(
                name=f"rack{s}" if racks else f"switch{s}",
                registers=int(shares[s] * total),
                workers=tuple(own[s] for own in passing) if racks else (),
            )
            for s in range(switches)
        ),
    )


def _job(
    rng: np.random.Generator, number: int, jobs: int, parameters: int, workers: int, rows: int, widths: tuple[int, ...]
) -> HotJob:
    several = jobs > 1
    count = max(2, round(workers * 2 ** rng.uniform(-0.5, 0.5))) if several else workers
    tilt = rng.uniform(0.8, 1.2) if several else 1.0
    sized = CRITEO_SAMPLE.of_size(parameters)
    fields = tuple(type(field)(field.vocabulary, field.exponent * tilt) for field in sized.fields)
    model = ZipfModel(fields, salt=int(rng.integers(2**31)))
    taken: npt.NDArray[np.int64] = (
        rng.choice(np.array(widths), size=parameters) if len(widths) > 1 else np.array(widths, dtype=np.int64)
    )
    return HotJob(
        name=f"job{number}",
        workers=count,
        frequencies=_rounded(zipf_frequencies(rows, model)),
        registers=taken,
        iterations_per_s=round(2 ** rng.uniform(-1, 1), 2) if several else 1.0,
    )


def _rounded(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """To four significant digits."""
    scale = 10.0 ** (3 - np.floor(np.log10(np.maximum(values, TINY))))
    rounded = np.round(values * scale) / scale
    return np.asarray(np.minimum(rounded, 1.0))
