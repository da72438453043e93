"""Networks with jobs: sizes of the generated topologies, jobs as asked for, bundled instances."""

from volume import for_each

from ddlopt.instances.generators import generate
from ddlopt.instances.generators.aggregation.jobs import networks
from ddlopt.instances.library.aggregation.graph import instances


def degrees(instance):
    found = [0] * len(instance.nodes)
    for link in instance.links:
        for node in link.ends:
            found[node] += 1
    return found


def test_a_fat_tree_has_the_published_numbers_of_switches_hosts_and_ports():
    for k in (2, 4, 6):
        instance = generate("aggregation", "fat-tree", 0, k=k, jobs=1, workers=1)
        hosts = [v for v, node in enumerate(instance.nodes) if not node.forwards]
        assert len(hosts) == k**3 // 4
        assert len(instance.nodes) - len(hosts) == k * k + (k // 2) ** 2
        assert all(degree == (1 if v in hosts else k) for v, degree in enumerate(degrees(instance)))


def test_oversubscription_narrows_links_between_switches_only():
    instance = generate("aggregation", "fat-tree", 0, oversubscription=4.0, bandwidth_bytes_per_s=8.0)
    forwards = [node.forwards for node in instance.nodes]
    for link in instance.links:
        between = all(forwards[node] for node in link.ends)
        assert link.bandwidth_bytes_per_s == (2.0 if between else 8.0)


def test_leaves_see_all_spines():
    instance = generate("aggregation", "leaf-spine", 0, leaves=3, spines=2, hosts=5, jobs=1)
    by_name = dict(zip((node.name for node in instance.nodes), degrees(instance), strict=True))
    assert {by_name[f"leaf{i}"] for i in range(3)} == {7}
    assert {by_name[f"spine{i}"] for i in range(2)} == {3}


@for_each(("sides", "degree"), [([4, 4], 4), ([3, 3, 3], 6), ([2, 2], 2), ([5], 2), ([2, 3], 3)])
def test_a_torus_is_regular_and_has_a_host_at_every_switch(sides, degree):
    instance = generate("aggregation", "torus", 0, sides=sides, jobs=1, workers=1)
    switches = {d for d, node in zip(degrees(instance), instance.nodes, strict=True) if node.forwards}
    assert switches == {degree + 1}


def test_a_random_graph_is_regular_and_depends_on_the_seed():
    one, other = (generate("aggregation", "graph-random", seed, hosts=2) for seed in (1, 2))
    assert one.links != other.links
    switches = [d for d, node in zip(degrees(one), one.nodes, strict=True) if node.forwards]
    assert set(switches) == {5}


def test_jobs_share_no_host_while_there_are_enough():
    instance = generate("aggregation", "fat-tree", 3, jobs=4, workers=3)
    used = [node for job in instance.jobs for node in (*job.workers, job.server)]
    assert len(used) == len(set(used)) == 16
    crowded = generate("aggregation", "fat-tree", 3, jobs=5, workers=3)
    assert len({node for job in crowded.jobs for node in (*job.workers, job.server)}) == 16


def test_clustered_jobs_are_on_neighbouring_hosts():
    instance = generate("aggregation", "fat-tree", 5, jobs=1, workers=3, placement="clustered")
    (job,) = instance.jobs
    hosts = sorted((*job.workers, job.server))
    assert hosts == list(range(hosts[0], hosts[0] + 4))


def test_gradients_are_those_of_networks_or_as_asked_for():
    sizes = {float(network.gradient_bytes) for network in networks()}
    assert {job.gradient_bytes for job in generate("aggregation", "torus", 0).jobs} <= sizes
    assert {job.gradient_bytes for job in generate("aggregation", "torus", 0, gradient_bytes=5.0).jobs} == {5.0}


def test_the_bundled_instances_cover_goals_and_rules():
    made = list(instances())
    assert {each.goal for each in made} == {"utilization", "congestion", "rates"}
    assert any(each.connections is not None for each in made)
    assert any(each.aggregators is not None for each in made)
    assert any(each.merging for each in made)
    abilene = next(each for each in made if each.name == "abilene-congestion")
    assert "CC BY 4.0" in abilene.source
    assert len([1 for link in abilene.links if all(abilene.nodes[v].forwards for v in link.ends)]) == 14
