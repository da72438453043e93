"""The independent check of a plan for a pipeline, from the problem statement."""

from collections.abc import Iterator
from fractions import Fraction

from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.deployment.pipeline.instance import LayerOption, PipelineInstance, PipelinePlan, PlanStage
from ddlopt.models.tolerances import let_pass


def evaluate_pipeline(instance: PipelineInstance, solution: PipelinePlan, exact: bool = False) -> Evaluation:
    """Time of a sample in the slowest stage, and what is wrong.

    Parameters
    ----------
    instance : PipelineInstance
    solution : PipelinePlan
    exact : bool
        In rational numbers. Memory is added up in them in any case, as by exact methods and proofs: to the last digit
        they lose no plan that is let pass here.

    Returns
    -------
    Evaluation
        Without an objective where some layer has no stage or no option.
    """
    number = Fraction if exact else float
    stage_of: dict[int, int] = {}
    wrong = list(_layers(instance, solution, stage_of))
    wrong += _degrees(instance, solution)
    chosen: list[list[LayerOption]] = []
    for place, stage in enumerate(solution.stages):
        options = list(_options(instance, place, stage, wrong))
        chosen.append(options)
    if wrong:
        return Evaluation(None, tuple(wrong))
    for edge in instance.edges:
        first, then = stage_of[edge.maker], stage_of[edge.user]
        if first > then:
            names = f"edge from '{instance.layers[edge.maker].name}' to '{instance.layers[edge.user].name}'"
            wrong.append(Violation("no edge leads back", names, first, then))
    times: list[Number] = []
    used: list[Fraction] = []
    memory = Fraction(instance.memory_bytes)
    for place, stage in enumerate(solution.stages):
        times.append(_time(instance, stage, chosen[place], number))
        behind = sum(each.replicas for each in solution.stages[place:])
        flying = -(-behind // stage.replicas)
        used.append(
            sum((Fraction(o.kept_bytes) * flying + Fraction(o.fixed_bytes) for o in chosen[place]), Fraction(0))
        )
        if used[-1] > let_pass(memory):
            wrong.append(Violation("memory suffices", f"stage {place}", number(used[-1]), number(memory)))
    details: dict[str, Number] = {
        "stages": len(solution.stages),
        "devices": sum(stage.replicas * stage.tensor for stage in solution.stages),
        "largest_memory_bytes": number(max(used)),
        "replicas": sum(stage.replicas for stage in solution.stages),
    }
    return Evaluation(max(times), tuple(wrong), details)


def _layers(instance: PipelineInstance, solution: PipelinePlan, stage_of: dict[int, int]) -> Iterator[Violation]:
    """Layers that are nowhere, twice or unknown, and stages without any; ``stage_of`` is filled."""
    count = len(instance.layers)
    for place, stage in enumerate(solution.stages):
        if not stage.layers:
            yield Violation("every stage has a layer", f"stage {place}", 0, 1)
        for layer in stage.layers:
            if not 0 <= layer < count:
                yield Violation("layers are known", f"stage {place}", layer, count - 1)
            elif layer in stage_of:
                yield Violation("every layer is in one stage", f"layer '{instance.layers[layer].name}'", 2, 1)
            else:
                stage_of[layer] = place
    for layer in range(count):
        if layer not in stage_of:
            yield Violation("every layer is in one stage", f"layer '{instance.layers[layer].name}'", 0, 1)


def _degrees(instance: PipelineInstance, solution: PipelinePlan) -> Iterator[Violation]:
    for place, stage in enumerate(solution.stages):
        if stage.replicas < 1 or instance.micro_batches % stage.replicas:
            yield Violation("replicas divide the samples", f"stage {place}", stage.replicas, instance.micro_batches)
    devices = sum(stage.replicas * stage.tensor for stage in solution.stages)
    if devices > instance.devices:
        yield Violation("devices suffice", "all stages", devices, instance.devices)
    replicas = sum(stage.replicas for stage in solution.stages)
    if replicas > instance.micro_batches:
        yield Violation("no more replicas than samples", "all stages", replicas, instance.micro_batches)


def _options(instance: PipelineInstance, place: int, stage: PlanStage, wrong: list[Violation]) -> Iterator[LayerOption]:
    if len(stage.options) != len(stage.layers):
        wrong.append(Violation("every layer has an option", f"stage {place}", len(stage.options), len(stage.layers)))
        return
    for layer, name in zip(stage.layers, stage.options, strict=True):
        if not 0 <= layer < len(instance.layers):
            continue
        menu = next((each for each in instance.layers[layer].menus if each.tensor == stage.tensor), None)
        found = [] if menu is None else [option for option in menu.options if option.name == name]
        if found:
            yield found[0]
        else:
            where = f"layer '{instance.layers[layer].name}' of stage {place}, '{name}' of degree {stage.tensor}"
            wrong.append(Violation("options are those of the menu", where, 0, 1))


def _time(
    instance: PipelineInstance, stage: PlanStage, options: list[LayerOption], number: type[Fraction] | type[float]
) -> Number:
    """Seconds of a sample."""
    inside = set(stage.layers)
    moved, work, weights = number(0), number(0), number(0)
    for layer, option in zip(stage.layers, options, strict=True):
        gathered, scattered = dict(option.gathered), dict(option.scattered)
        for edge in instance.edges:
            if edge.user == layer and edge.maker not in inside:
                moved += number(edge.size_bytes) + number(gathered.get(edge.maker, 0))
            if edge.maker == layer and edge.user not in inside:
                moved += number(edge.size_bytes) + number(scattered.get(edge.user, 0))
        work += number(option.time_s)
        weights += number(option.weight_bytes)
    bandwidth, d = number(instance.bandwidth_bytes_per_s), stage.replicas
    reduced = 4 * (d - 1) * weights / instance.micro_batches
    return (work + (2 * moved + reduced) / bandwidth) / d
