"""Executors on the workers of a Dask cluster, for sweeps and for subtrees."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from ddlopt.models.errors import OptionError

# Whoever types an address of a scheduler waits no longer to be told that nobody answers.
_WAIT_S = 10


@contextmanager
def executor_of(address: str | None) -> Iterator[tuple[Executor | None, int | None]]:
    """The executor at an address and how many tasks it takes at a time; (None, None) for this process.

    A worker with t threads takes t tasks at a time, and a task whose worker is lost is given to another one. Solves of
    a sweep start a process of their own each.

    Raises
    ------
    OptionError
        If Dask is not installed or nobody answers at the address, or the cluster has no workers.
    """
    if address is None:
        yield None, None
        return
    try:
        from distributed import Client
    except ImportError:
        raise OptionError("a cluster needs Dask: pip install 'ddlopt[cluster]'") from None
    try:
        client = Client(address, timeout=_WAIT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as problem:
        reason = " ".join(str(problem).split())
        raise OptionError(f"no Dask scheduler answers at {address}: {reason}") from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise OptionError(f"the cluster at {address} has no workers; start some with: dask worker {address}")
        yield client.get_executor(pure=False), threads
