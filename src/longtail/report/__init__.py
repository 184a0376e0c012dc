"""Facts to terminals, HTML pages and plots.

Reports compute nothing but positions and wording: facts (`longtail.facts`) come in, text goes out. Where to read:

formatting   numbers as people write them
fact_rows    facts as named rows, shared by pages and terminal
model_rows   what a model is, with the settings that were in effect
sentences    evaluations and comparisons in sentences; audit_sentences: audits; tree_sentences: label trees
html/        the pages: evaluation_page, comparison_page, audit_page, monitor_page; their markup is in html/templates
plots/       the plots of the pages, as SVG
terminal/    the same facts as tables and small plots of characters; progress bars

To add a section to the report of an evaluation:

1. a TypedDict in `facts/` and a key of `EvaluationFacts` that holds it,
2. the facts themselves in `pipeline/evaluation.py`,
3. rows that page and terminal share, in `fact_rows.py`,
4. `<name>_section` in `html/evaluation_page.py`, and its keyword in the call of `render_page` there,
5. its markup in `html/templates/evaluation.html`,
6. a table in `terminal/evaluation.py`; one line in `terminal/evaluation_summary.py` if it belongs on the first screen.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
