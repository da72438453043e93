"""Answers of deployment problems drawn at random, as data: mostly wrong ones, of every mode and degree."""


def drawn_step(instance, source):
    """A uniform plan at the degrees of some block."""
    way = source.choice(source.choice(instance.blocks).ways)
    names, full = [option.name for option in way.options], source.random() < 0.3
    return {
        "family": "deployment",
        "problem": "step",
        "instance": instance.name,
        "instance_digest": instance.digest,
        "tensor": way.tensor,
        "context": way.context,
        "expert": way.expert if source.random() < 0.9 else source.choice((1, 2, 4)),
        "micro_batch": way.micro_batch,
        "sequence_parallel": way.sequence_parallel,
        "data": 2 ** source.randrange(6),
        "pipeline": source.choice((1, 2, 2, 3, 4, 8, 16)),
        "interleaving": source.choice((1, 1, 2, 3)),
        "sharding": source.randrange(4),
        "option": names[0] if full else source.choice(names),
        "recomputed": source.choice((1, 2)) if full else 0,
        "order": list(source.choice(instance.orders)),
    }


def drawn_plan(instance, source):
    """Device groups, a mode and a split for each group; some operators are duplicated where they may be."""
    plans, duplicated = [], []
    for members in instance.members:
        known = range(len(instance.device_groups))
        groups = sorted(source.sample(known, source.randint(1, len(known))))
        mode = source.choice(("all_reduce", "parameter_server", "model_parallel"))
        devices = instance.devices_of(groups)
        chosen = [source.choice(devices) for _ in members] if mode == "model_parallel" else None
        split = source.choice(("even", "speed"))
        plans.append({"device_groups": groups, "mode": mode, "split": split, "devices": chosen})
        if mode == "all_reduce" and len(devices) > 1:
            duplicated += [place for place in members if source.random() < 0.3]
    same = {"family": "deployment", "problem": "plan", "instance": instance.name, "instance_digest": instance.digest}
    return same | {"groups": plans, "duplicated": sorted(duplicated)}
