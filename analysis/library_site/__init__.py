"""The library as a web site: a table a problem, a page an instance and a method, files to download."""

from ddlopt.analysis.library_site.build import write_site

__all__ = ["write_site"]
