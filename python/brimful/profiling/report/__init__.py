"""A profile as one HTML file: no script, no font and no picture from elsewhere, light and dark.

Pure functions of what was measured: the same profile gives the same page.
"""

from brimful.profiling.report.page import html, write_html
from brimful.profiling.report.sources import Sources, sources_of

__all__ = ["Sources", "html", "sources_of", "write_html"]
