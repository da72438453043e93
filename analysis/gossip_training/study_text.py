"""Numbers of a study as text, for tables."""

import math

from ddlopt.analysis.gossip_training.study import Comparison, Estimate, Row, Study


def title(study: Study) -> str:
    """What was trained."""
    training = study.training
    network = training.network
    widths = "-".join(map(str, training.learners.widths))
    return (
        f"{training.data}, {training.shards} shards, {network.nodes} workers, {len(network.edges)} edges, {widths}, "
        f"{training.steps} steps, communication / computation {study.ratio:g}"
    )


def row_cells(row: Row) -> tuple[str, ...]:
    """Policy, traffic, accuracies, distance, megabytes, times."""
    return (
        row.policy,
        f"{row.traffic.mean:.3f}",
        _percent(row.worker),
        _percent(row.averaged),
        f"{row.distance:.3f}",
        f"{row.bytes / 1e6:.2f}",
        f"{row.time:.3f}",
        f"{row.barrier_time:.3f}",
    )


def comparison_cells(each: Comparison) -> tuple[str, ...]:
    """Both policies, their traffic, and differences of accuracy."""
    return (
        each.policy,
        each.other,
        f"{each.traffic:.3f}",
        f"{each.other_traffic:.3f}",
        _percent(each.worker, "+"),
        _percent(each.averaged, "+"),
    )


def _percent(value: Estimate, sign: str = "") -> str:
    mean = f"{100 * value.mean:{sign}.2f}"
    return mean if math.isnan(value.half) else f"{mean} ± {100 * value.half:.2f}"
