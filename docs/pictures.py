"""A picture for the page of every problem: the best known solution of a small bundled instance.

Sphinx calls :func:`draw_all` before it reads the pages; by hand, ``python docs/pictures.py``. The files go to
``docs/_pictures``, which is not kept in the repository.
"""

from pathlib import Path

FOLDER = Path(__file__).parent / "_pictures"
DRAWN = {
    "topology": "topology/danoint",
    "scheduling": "scheduling/tiny-deadlines",
    "codesign": "codesign/tiny-factors-n6-d3",
    "compression/sfb": "compression/sfb-vgg16-b4-w2-10g",
    "topology/collective": "topology/all-gather-dgx-a100-2x8",
    "compression/timeline": "compression/measured-digits-w8-10g",
    "compression/levels": "compression/levels-measured-digits-powersgd",
    "compression/forward": "compression/forward-vgg16-n8x8-25g-plain",
    "deployment/plan": "deployment/vgg19-testbed-g6",
    "deployment/partition": "deployment/partition-tiny-n7-k2",
    "deployment/strategies": "deployment/strategies-training-l4",
    "deployment/microbatches": "deployment/microbatches-unit-p4-n6",
    "deployment/pipeline": "deployment/pipeline-tiny-l4-k4",
    "deployment/step": "deployment/step-tiny-l8-k8",
    "aggregation/hot": "aggregation/hot-tiny-p12-s1",
    "aggregation/registers": "aggregation/registers-tiny-n8-r3",
    "aggregation/tree": "aggregation/tree-soar-n7-k2",
    "aggregation/graph": "aggregation/graph-tiny-utilization",
    "aggregation/slots": "aggregation/slots-tiny-n3",
    "aggregation/table": "aggregation/table-tiny-n8",
    "gossip/weights": "gossip/cvx-n8-averaging",
    "gossip/matchings": "gossip/matcha-n8-60",
    "gossip/period": "gossip/period-m8-step",
    "gossip/exchange": "gossip/exchange-tiny-plain-t12",
    "gossip/circulant": "gossip/circulant-n16-d4-gap",
    "cluster/placement": "cluster/placement-pairs-r12",
    "cluster/jobs": "cluster/jobs-makespan-j6-k8",
    "cluster/joint": "cluster/joint-topoopt-j5-k8",
}
"""Instances by the page of their problem."""


def file_of(page: str) -> Path:
    """Where the picture of a page is."""
    return FOLDER / f"{page.replace('/', '_')}.png"


def draw(page: str) -> None:
    """Draw the picture of a page as ``ddlopt solve … --plot`` would."""
    from matplotlib.figure import Figure

    from ddlopt.analysis import plots
    from ddlopt.analysis.views import picture_of
    from ddlopt.instances import library

    name = DRAWN[page]
    solution = library.best(name)
    instance = library.load(name)
    paint = picture_of(instance)
    assert solution is not None
    assert paint is not None
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    paint(figure.add_subplot(), instance, solution)
    FOLDER.mkdir(exist_ok=True)
    plots.draw(figure, file_of(page), 90)


def draw_all() -> None:
    """Draw what is not there yet."""
    for page in DRAWN:
        if not file_of(page).exists():
            draw(page)


if __name__ == "__main__":
    for each in DRAWN:
        draw(each)
        print(file_of(each))
