"""The format ``kueue``: a JobSet of Kubernetes for every run of a schedule, on its servers, queued by Kueue."""

import re
from typing import Any

from ddlopt.instances.writers.runs import Window, amounts, windows
from ddlopt.instances.writers.words import host_names, yaml_lines
from ddlopt.models.contracts import Evaluation
from ddlopt.models.errors import OptionError
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.solution import Schedule

_HEAD = """\
# A JobSet for every run, in the order of their starts. Kubernetes has no time of start: `kubectl create` each when its
# annotation ddlopt/start-s says, in seconds after the beginning. The end is Kueue's limit and the job's deadline.
# A worker finds its job, run, width and first rank of its server in DDLOPT_JOB, DDLOPT_RUN, DDLOPT_WIDTH and
# DDLOPT_FIRST_RANK, and its place on the server in JOB_COMPLETION_INDEX; ranks are in the order of the ring.
"""
_RESOURCES = {"gpu": "nvidia.com/gpu", "cpu": "cpu"}
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")


def kueue(
    instance: SchedulingInstance,
    solution: Schedule,
    evaluation: Evaluation,
    hosts: str | list[str] | None = None,
    queue: str = "training",
    image: str = "trainer:latest",
) -> str:
    """A stream of YAML documents.

    Parameters
    ----------
    hosts : str or list of str, optional
        Names of the servers, in order, as in the label ``kubernetes.io/hostname``.
    queue : str
        The LocalQueue.
    image : str
        Of the workers' container.

    Raises
    ------
    OptionError
        If a name cannot be one in Kubernetes.
    """
    names = host_names(hosts, instance.server_count)
    if not isinstance(queue, str) or not _LABEL.fullmatch(queue):
        raise OptionError(f"queue is {queue!r}; a LocalQueue has small letters, digits and '-' only")
    if not isinstance(image, str) or not _IMAGE.fullmatch(image):
        raise OptionError(f"image is {image!r}, which is no name of a container image")
    documents = [_job_set(instance, window, names, queue, image) for window in windows(instance, solution)]
    return _HEAD + "".join("---\n" + "\n".join(yaml_lines(document)) + "\n" for document in documents)


def _job_set(
    instance: SchedulingInstance, window: Window, names: tuple[str, ...], queue: str, image: str
) -> dict[str, Any]:
    run, job = window.run, instance.jobs[window.run.job]
    lasts = window.end_s - window.start_s
    whole, others = amounts(job.demand, tuple(_RESOURCES))
    limits = {_RESOURCES[name]: str(count) for name, count in whole.items()}
    annotations = {
        "ddlopt/job": job.name,
        "ddlopt/start-s": str(window.start_s),
        "ddlopt/end-s": str(window.end_s),
        "ddlopt/width": str(run.width),
        "ddlopt/servers": ", ".join(f"{names[server]} ({count})" for server, count in window.servers),
    }
    if window.before is not None:
        annotations["ddlopt/after"] = f"run-{window.before}"
    if others:
        annotations["ddlopt/each-worker-also-takes"] = ", ".join(f"{value:g} {name}" for name, value in others.items())
    first, jobs = 0, []
    for place, (server, count) in enumerate(window.servers):
        told = {"JOB": job.name, "RUN": window.place, "WIDTH": run.width, "FIRST_RANK": first}
        worker: dict[str, Any] = {
            "name": "worker",
            "image": image,
            # Kubernetes would put a variable of the container in place of `$(NAME)`.
            "env": [{"name": f"DDLOPT_{name}", "value": str(value).replace("$", "$$")} for name, value in told.items()],
        }
        if limits:
            worker["resources"] = {"limits": limits}
        pod = {
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": names[server]},
            "containers": [worker],
        }
        spec = {
            "parallelism": count,
            "completions": count,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "activeDeadlineSeconds": lasts,
            "template": {"spec": pod},
        }
        jobs.append({"name": f"server-{place}", "replicas": 1, "template": {"spec": spec}})
        first += count
    labels = {"kueue.x-k8s.io/queue-name": queue, "kueue.x-k8s.io/max-exec-time-seconds": str(lasts)}
    metadata = {"name": f"run-{window.place}", "labels": labels, "annotations": annotations}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata,
        "spec": {"suspend": True, "replicatedJobs": jobs},
    }
