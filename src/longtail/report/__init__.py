"""Facts to pages and terminals: everything shown to people is rendered here, from JSON-able facts.

Terminal output is in `longtail.report.terminal` and progress bars are in `longtail.report.progress`; both need
rich, which is not imported from here.
"""

from longtail.report.html import comparison_page, evaluation_page, write_page
from longtail.report.reading import tail_points

__all__ = ["comparison_page", "evaluation_page", "tail_points", "write_page"]
