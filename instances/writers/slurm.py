"""The format ``slurm``: a script that submits a job for every run of a schedule, in its window and on its servers."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import label, listed, name
from ddlopt.instances.writers.runs import Window, amounts, windows
from ddlopt.instances.writers.words import bash_word, host_names
from ddlopt.models.contracts import Evaluation
from ddlopt.models.errors import plain
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.solution import Schedule

_HEAD = r"""# Submits a job for every run, in its window and on its servers, ranks in the order of its ring:
#
#   LAUNCH=./train.sh bash THIS_FILE                # from now on
#   LAUNCH=./train.sh T0=1767225600 bash THIS_FILE  # from a time in seconds since 1970 on
#
# LAUNCH runs once for each worker, by srun, as `LAUNCH JOB RUN SECONDS` with the name of the job, the number of the run
# in the plan and the length of the window, at whose end it gets SIGTERM; it goes on from the job's last checkpoint.
set -euo pipefail
: "${LAUNCH:?set LAUNCH to the program of a worker}"
export LAUNCH
T0=${T0:-$(date +%s)}
at() { date -d "@$((T0 + $1))" +%Y-%m-%dT%H:%M:%S; }
"""


def slurm(
    instance: SchedulingInstance, solution: Schedule, evaluation: Evaluation, hosts: str | list[str] | None = None
) -> str:
    """Calls of ``sbatch``, each with the script of its run.

    A run with as many workers on each of its servers is a job with these nodes; with unlike numbers it is a
    heterogeneous job with a component for each server.

    Parameters
    ----------
    hosts : str or list of str, optional
        Names of the servers, in order.
    """
    names = host_names(hosts, instance.server_count)
    lines = _HEAD.split("\n")
    for window in windows(instance, solution):
        lines += ["", *_submission(instance, window, names)]
    return "\n".join(lines)


def _submission(instance: SchedulingInstance, window: Window, names: tuple[str, ...]) -> Iterator[str]:
    run, job = window.run, instance.jobs[window.run.job]
    lasts = window.end_s - window.start_s
    flags, others = amounts(job.demand, ("gpu", "cpu"))
    demand = [f"--{'gpus' if kind == 'gpu' else 'cpus'}-per-task={count}" for kind, count in flags.items()]
    where = [(names[server], count) for server, count in window.servers]
    yield f"# Run {window.place} of job {label(run.job, job.name)}: slots {run.start}..{run.end - 1},"
    yield f"# {run.width} workers on {listed(f'{host} ({count})' for host, count in where)}"
    if others:
        yield f"# (each worker also takes {listed(f'{value:g} {name(what)}' for what, value in others.items())})"
    common = [
        "--parsable",
        f"--job-name={bash_word(f'{window.place}-{plain(job.name)}')}",
        f'--begin="$(at {window.start_s})"',
        f'--deadline="$(at {window.end_s + 60})"',
        f"--time={_limit(lasts)}",
    ]
    if window.before is not None:
        common.append(f'--dependency="afterany:${{run_{window.before}}}"')
    counts = [count for _, count in where]
    equal = len(set(counts)) == 1
    if equal:
        hosts = ",".join(host for host, _ in where)
        parts = [
            [f"--nodes={len(where)}", f"--nodelist={hosts}", f"--ntasks={run.width}", f"--ntasks-per-node={counts[0]}"]
        ]
    else:
        parts = [["--nodes=1", f"--nodelist={host}", f"--ntasks={count}"] for host, count in where]
    asked = " : ".join(" ".join([*part, *demand]) for part in parts)
    yield f"run_{window.place}=$(sbatch {' '.join(common)} \\"
    yield f"  {asked} <<'END_OF_RUN'"
    yield "#!/usr/bin/env bash"
    command = f'"$LAUNCH" {bash_word(job.name)} {window.place} {lasts}'
    if equal:
        ranks = " ".join(host for host, count in where for _ in range(count))
        yield "export SLURM_HOSTFILE=$(mktemp)"
        yield f"printf '%s\\n' {ranks} > \"$SLURM_HOSTFILE\""
        yield f"exec timeout --signal=TERM {lasts} srun --distribution=arbitrary --ntasks={run.width} {command}"
    else:
        yield f"exec timeout --signal=TERM {lasts} srun --het-group=0-{len(where) - 1} {command}"
    yield "END_OF_RUN"
    yield ")"
    yield f'echo "run {window.place}: ${{run_{window.place}}}"'


def _limit(seconds: int) -> str:
    """Days, hours, minutes and seconds; Slurm rounds up to minutes, the script itself ends in time."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days}-{hours:02}:{minutes:02}:{rest:02}"
