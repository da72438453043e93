"""The format ``torch-schedule``: the CSV of ``torch.distributed.pipelining``, a row a rank, a pass a cell."""

from ddlopt.models.contracts import Evaluation
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.deployment.microbatches.solution import MicroBatchOrder, pass_of
from ddlopt.models.errors import OptionError


def torch_schedule(instance: MicroBatchInstance, solution: MicroBatchOrder, evaluation: Evaluation) -> str:
    """What ``_PipelineScheduleRuntime._load_csv`` of PyTorch reads with ``format="compute_only"``.

    Stages are chunks in the order of the chain, ranks are devices.

    Raises
    ------
    OptionError
        Of several chains: stages of a schedule are one pipeline.
    """
    if len(instance.chains) > 1:
        raise OptionError(
            f"'{instance.name}' has {len(instance.chains)} chains of chunks; PyTorch's schedules have one"
        )
    stage = {chunk: place for place, chunk in enumerate(instance.chains[0])}
    rows = []
    for order in solution.orders:
        passes = [pass_of(name) for name in order]
        rows.append(",".join(str(each._replace(chunk=stage[each.chunk])) for each in passes if each is not None))
    return "\n".join(rows) + "\n"
