"""Gangs by (width, slots, arrival), and their optimum by trying all orders: each job as early as it fits."""

from ddlopt.models.scheduling import SchedulingInstance

LINEAR = {"kind": "ring", "gradient_bytes": 0, "bandwidth_bytes_per_s": 1, "forward_s_per_sample": 1}
"""One mini-batch a second for every worker."""


def gang_instance(jobs, gpus=8, slots=200, servers=None, **fields):
    """Jobs (width, slots[, arrival[, deadline[, weight]]]) in one piece, slots of a second, on one server or more."""
    made = []
    for number, job in enumerate(jobs):
        width, length, arrival, deadline, weight = (*job, *(0, None, 1.0)[len(job) - 2 :])
        made.append(
            {
                "name": f"gang-{number}",
                "arrival": arrival,
                "deadline": deadline,
                "min_workers": width,
                "max_workers": width,
                "minibatches": width * length,
                "timing": LINEAR,
                "utility": {"kind": "capped", "value": weight},
            }
        )
    room = [{"capacity": {"gpu": size}} for size in servers or (gpus,)]
    data = {"name": "gangs", "slots": slots, "slot_s": 1.0, "servers": room, "jobs": made, "preemptive": False}
    return SchedulingInstance.from_data(data | {"objective": "makespan"} | fields)


def random_gangs(rng, jobs=5, gpus=4, longest=6, arrivals=True, deadlines=False, weights=False, **fields):
    """Some gangs of up to all GPUs."""
    made = []
    for _ in range(jobs):
        length, arrival = int(rng.integers(1, longest + 1)), int(rng.integers(0, 6)) if arrivals else 0
        due = arrival + length + int(rng.integers(0, 3 * longest)) if deadlines and rng.random() < 0.5 else None
        weight = float(rng.integers(1, 5)) if weights else 1.0
        made.append((int(rng.integers(1, gpus + 1)), length, arrival, due, weight))
    return gang_instance(made, gpus, **fields)


def all_orders(instance):
    """Least makespan and least weighted completion time, in slots; None where no order meets the deadlines.

    Some order gives an optimum of either: any schedule becomes no worse if its jobs, by start, move to the front.
    """
    gpus = round(float(instance.capacity.sum()))
    jobs = [(j.max_workers, round(j.minibatches / j.max_workers), j.arrival, j.utility.value) for j in instance.jobs]
    last_slots = [instance.last_slot(number) for number in range(len(jobs))]
    ends, totals = [], []

    def go_on(left, used, last, total):
        if not left:
            ends.append(last)
            totals.append(total)
        for number in left:
            width, length, start, weight = jobs[number]
            while max(used[start : start + length]) > gpus - width:
                start += 1
            end = start + length
            if end <= last_slots[number]:
                taken = [*used[:start], *(each + width for each in used[start:end]), *used[end:]]
                rest = [each for each in left if each != number]
                go_on(rest, taken, max(last, end), total + weight * (end - jobs[number][2]))

    go_on(list(range(len(jobs))), [0] * (sum(job[1] for job in jobs) + max(job[2] for job in jobs) + 1), 0, 0.0)
    return min(ends, default=None), min(totals, default=None)
