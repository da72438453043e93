"""What the library knows of an instance."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ddlopt.instances.index import Listed


def evidence_of(listed: "Listed") -> str | None:
    """By what the best known solution is proven, None where it is not."""
    from ddlopt.instances.library import certificates

    return certificates.label(listed.name, listed.digest) if listed.proven else None


def best_known_line(name: str) -> str | None:
    """Of a bundled instance the objective that is known and by what it is proven; None of another one."""
    from ddlopt import instances
    from ddlopt.analysis.texts import objective_text
    from ddlopt.instances import index

    listed = index.read().instances.get(instances.find(name) or "")
    if listed is None or listed.objective is None:
        return None
    proof = f"optimal ({evidence_of(listed)})" if listed.proven else "not proven optimal"
    return f"best known: {objective_text(listed.objective, listed.unit)}, {proof}"
