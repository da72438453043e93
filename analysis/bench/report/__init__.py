"""A store of results as a static site: summary, families, instances, provenance."""

from ddlopt.analysis.bench.report.build import write_report

__all__ = ["write_report"]
