"""Evaluations and comparisons on the terminal: tables and small plots that fit 80 columns.

The facts are those of the pages, read by the same functions. A pipe gets plain letters without colours, so that the
output can be searched and stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from longtail.facts import ComparisonFacts, DatasetFacts, EvaluationFacts, LabelRowFacts, MetricsFacts, ModelFacts
from longtail.report import sentences
from longtail.report.decision_rows import (
    decision_sentence,
    set_rows,
    sets_sentence,
    tradeoff_rows,
    tradeoff_sentence,
)
from longtail.report.fact_rows import (
    FAMILIES,
    band_difference_rows,
    band_rows,
    calibration_rows,
    confidence,
    data_rows,
    difference_rows,
    frequency_rows,
    missed,
    model_names,
    position_rows,
    strongest,
    suggestions,
)
from longtail.report.formatting import count, flat_rows, percent, percent_range, points, points_range
from longtail.report.model_rows import model_settings, origin_rows, text_settings
from longtail.report.people import for_people
from longtail.report.plots.canvas import finite
from longtail.report.plots.charts import DifferenceRow
from longtail.report.terminal.console import (
    BAR,
    clean,
    heading,
    is_plain,
    print_facts,
    print_table,
    say,
    share_bar,
)
from longtail.report.terminal.model_terminal import (
    judgement,
    marked_text,
    show_metrics,
    show_tail,
)
from longtail.report.terminal.unicode_plots import around_zero, marked_bar

LABELS_SHOWN = 10  # the page shows all
EXAMPLES_SHOWN = 2
EXAMPLE_LETTERS = 240
NAME_LETTERS = 6  # of a compared model, above its column
ZERO_LINE = 17  # letters of a difference plot
TONE = {"better": "green", "worse": "red", "unclear": "dim"}


def show_evaluation(console: Console, facts: EvaluationFacts, *, page: str = "the page") -> None:
    """Print an evaluation; takes the same facts as `evaluation_page` and leaves out what is missing.

    `page` says where all labels are listed.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=80)
    >>> show_evaluation(console, {"evaluation": {"ks": [1], "metrics": {"p@1": {"value": 0.8125}}}})
    >>> "81.25" in console.file.getvalue()
    True
    """
    facts = for_people(facts)
    evaluation = facts.get("evaluation") or {}
    say(console, facts.get("title"), "bold")
    say(console, sentences.headline(facts))
    _show_model(console, facts.get("model") or {})
    if evaluation.get("metrics"):
        console.print()
        show_metrics(console, evaluation["metrics"])
        say(console, sentences.interval_sentence(evaluation.get("interval") or {}), "dim")
    positions = position_rows(evaluation)
    if len(positions) > 1:
        heading(console, "Right suggestions by place")
        body = [[row["name"], percent(row["value"], 1), share_bar(console, row["value"])] for row in positions]
        print_table(console, ["", "percent", " "], body)
    _show_assigned(console, facts)
    _show_frequencies(console, evaluation)
    _show_calibration(console, evaluation)
    _show_labels(console, facts, page)
    _show_worst(console, facts.get("worst_labels") or [])
    _show_parts(console, facts)
    _show_examples(console, facts)
    if facts.get("data"):
        show_dataset(console, facts["data"])
    print_facts(console, "Time", flat_rows(facts.get("timings")))


def show_comparison(console: Console, facts: ComparisonFacts) -> None:
    """Print a comparison; takes the same facts as `comparison_page`."""
    comparison = facts.get("comparison") or {}
    a, b = model_names(facts)
    say(console, facts.get("title"), "bold")
    say(console, sentences.comparison_headline(facts))
    rows = difference_rows(comparison.get("metrics") or {}, tuple(FAMILIES))
    bands = band_difference_rows(comparison)
    if rows:
        console.print()
        _show_differences(console, a, b, rows)
    if bands:
        heading(console, "On frequent and on rare labels")
        _show_differences(console, a, b, bands)
    if rows or bands:
        intervals = sentences.interval_sentence(comparison.get("interval") or {})
        say(console, f"a: {a}; b: {b}; change: b minus a. {intervals}".strip(), "dim")
    print_facts(console, "Time", flat_rows(facts.get("timings")))


def show_dataset(console: Console, data: DatasetFacts) -> None:
    """Print the facts about a dataset, with its long tail where `tail` holds (rank, count) pairs.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=80)
    >>> show_dataset(console, {"rows": 1200, "labels": 30})
    >>> print(console.file.getvalue())
    <BLANKLINE>
    Data
    rows    1,200
    labels  30
    """
    print_facts(console, "Data", data_rows(data))
    if data.get("tail"):
        show_tail(console, data["tail"])


def _show_assigned(console: Console, facts: EvaluationFacts) -> None:
    assigned, tradeoff = facts.get("assigned") or {}, facts.get("tradeoff")
    rows = set_rows(assigned)
    if rows:
        heading(console, "What is assigned")
        say(console, decision_sentence(assigned.get("decision") or {}))
        body = [
            [
                row["name"],
                *(part for cell in row["cells"] for part in (percent(cell.get("value"), 1), percent_range(cell))),
            ]
            for row in rows
        ]
        names = [part for name in ("precision", "recall", "F1") for part in (name, "interval")]
        print_table(console, ["percent", *names], body)
        say(console, sets_sentence(assigned), "dim")
    if tradeoff and tradeoff.get("points"):
        k = tradeoff["k"]
        heading(console, tradeoff_sentence(tradeoff))
        table = [list(row) for row in tradeoff_rows(tradeoff)]
        print_table(console, ["share of macro-F1", f"P@{k}", f"macro-F1@{k}", f"coverage@{k}"], table)


def _show_frequencies(console: Console, evaluation: MetricsFacts) -> None:
    rows = frequency_rows(evaluation)
    if rows:
        heading(console, sentences.frequency_sentence(rows))
        body = [
            [
                row["name"],
                count(row.get("labels")) or "–",
                percent(row.get("precision"), 1),
                share_bar(console, row.get("precision")),
                percent(row.get("recall"), 1),
            ]
            for row in rows
        ]
        print_table(console, ["in training", "labels", "precision", " ", "recall"], body)
    k = max(evaluation.get("ks") or [0])
    bands = band_rows(evaluation.get("bands"), k)
    if bands:
        heading(console, "Head, torso and tail")
        body = [
            [
                band["name"],
                count(band["labels"]) or "–",
                band["range"],
                *(
                    part
                    for row in (band["p"], band["r"])
                    for part in (percent(row.get("value"), 1), percent_range(row))
                ),
            ]
            for band in bands
        ]
        print_table(console, ["band", "labels", "in training", f"P@{k}", "interval", f"R@{k}", "interval"], body)


def _show_calibration(console: Console, evaluation: MetricsFacts) -> None:
    rows, plain = calibration_rows(evaluation), is_plain(console)
    body = []
    for row in rows:
        said, right = row["predicted"], row["observed"]
        if row["count"] and finite(said) and finite(right):
            drawn = Text(marked_bar(right, said, BAR, ascii=plain), style="cyan")
            body.append([row["name"], count(row["count"]) or "–", percent(said, 1), percent(right, 1), drawn])
    if body:
        heading(console, sentences.calibration_sentence(rows))
        mark = "|" if plain else "│"
        print_table(console, ["probability", "suggestions", "said", "right", f"right, and said at {mark} "], body)
        gap = (evaluation.get("calibration") or {}).get("expected_calibration_error")
        say(console, f"Mean gap: {percent(gap)} points." if finite(gap) else "", "dim")


def _show_model(console: Console, model: ModelFacts) -> None:
    """Print what model this is, and every setting as it was in effect."""
    print_facts(console, "Model", origin_rows(model))
    for title, settings in (("Settings", model_settings(model)), ("Settings of the texts", text_settings(model))):
        told = ", ".join(f"{s.name} {s.value}{' (auto)' if s.chosen else ''}" for s in settings)
        if told:
            heading(console, title)
            say(console, told)


def _show_labels(console: Console, facts: EvaluationFacts, page: str) -> None:
    rows = facts.get("labels") or []
    total = len(rows) + (facts.get("labels_left_out") or 0)
    body = [
        [
            row.get("label", ""),
            count(row.get("train_count")) or "–",
            count(row.get("test_count")) or "–",
            percent(row.get("precision"), 1),
            percent(row.get("recall"), 1),
        ]
        for row in rows[:LABELS_SHOWN]
    ]
    if body:
        heading(console, "Label by label")
        print_table(console, ["label", "training rows", "test rows", "precision", "recall"], body)
    if total > LABELS_SHOWN:
        most = f"; the first {len(rows):,} of all" if total > len(rows) else ""
        say(console, f"{total - LABELS_SHOWN:,} more are on {page}{most}.", "dim")


def _show_worst(console: Console, rows: Sequence[LabelRowFacts]) -> None:
    """Print the labels that are found least."""
    body = [
        [
            row.get("label", ""),
            count(row.get("train_count")) or "–",
            count(row.get("test_count")),
            percent(row["recall"], 1),
            percent_range({"low": row.get("recall_low"), "high": row.get("recall_high")}, 0),
        ]
        for row in rows
    ]
    if body:
        heading(console, "Labels that are found least")
        print_table(console, ["label", "training rows", "test rows", "recall", "interval"], body)


def _show_parts(console: Console, facts: EvaluationFacts) -> None:
    """Print the metrics of parts of the rows, with their intervals."""
    if "by" not in facts:
        return
    by = facts["by"]
    heading(console, f"By {by['column']}")
    shown = [name for name in ("p@1", "p@5", "r@5") if by["parts"] and name in by["parts"][0]["metrics"]]
    body = [
        [
            part["value"],
            count(part["rows"]),
            *(f"{percent(m['value'], 1)} {percent_range(m)}".strip() for m in (part["metrics"][n] for n in shown)),
        ]
        for part in by["parts"]
    ]
    print_table(console, [by["column"], "rows", *(name.upper() for name in shown)], body)
    if by["parts_left_out"]:
        say(console, f"{by['parts_left_out']:,} smaller parts are left out.", "dim")
    if by["rows_without"]:
        say(console, f"Of {by['rows_without']:,} rows the column says nothing.", "dim")


def _show_examples(console: Console, facts: EvaluationFacts) -> None:
    for number, example in enumerate((facts.get("examples") or [])[:EXAMPLES_SHOWN], 1):
        heading(console, f"Example {number}")
        predicted = suggestions(example)
        say(console, marked_text(console, str(example.get("text", "")), predicted, EXAMPLE_LETTERS))
        body = []
        for suggestion in predicted:
            words = ", ".join(f"{w['word']} {w['weight']:+.2f}" for w in strongest(suggestion, 2))
            label, judged = suggestion.get("label", ""), judgement(console, suggestion)
            body.append([label, confidence(suggestion), judged, words])
        print_table(console, ["", "", " ", " "], body, header=False)
        say(console, "Missed: " + ", ".join(missed(example)) if missed(example) else "", "dim")


def _show_differences(console: Console, a: str, b: str, rows: Sequence[DifferenceRow]) -> None:
    ends = [value for row in rows for value in (row.get("difference"), row.get("low"), row.get("high"))]
    reach = max([abs(v) for v in ends if v is not None and finite(v)] + [0.001])
    body = []
    for row in rows:
        p, value, style = row.get("p_value"), row.get("difference"), TONE[row["verdict"]]
        drawn = ""
        if finite(value):
            low, high = (end if finite(end) else value for end in (row.get("low"), row.get("high")))
            drawn = around_zero(low, value, high, reach, ZERO_LINE, ascii=is_plain(console))
        body.append(
            [
                row["name"],
                percent(row.get("a")),
                percent(row.get("b")),
                Text(clean(console, points(value)), style=style),
                points_range(row),
                f"{p:.4f}" if finite(p) else "",
                Text(drawn, style=style),
            ]
        )
    low_end, high_end = f"-{100 * reach:.1f}", f"+{100 * reach:.1f}"
    axis = f"{low_end.ljust(ZERO_LINE // 2)}0{high_end.rjust(ZERO_LINE // 2)} "
    short = len(a) <= NAME_LETTERS and len(b) <= NAME_LETTERS
    print_table(console, ["percent", *((a, b) if short else ("a", "b")), "change", "interval", "p", axis], body)
