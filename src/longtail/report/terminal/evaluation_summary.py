"""An evaluation on one screen: what matters most, in about 25 lines; `evaluation.py` has the rest."""

from __future__ import annotations

from rich.console import Console

from longtail.facts import EvaluationFacts, LabelRowFacts, MetricFacts, PartOfRowsFacts
from longtail.report import sentences
from longtail.report.fact_rows import band_rows, calibration_rows, metric_name
from longtail.report.formatting import count, percent, percent_range, plural, whole_percent
from longtail.report.model_rows import model_line
from longtail.report.people import for_people
from longtail.report.plots.canvas import finite
from longtail.report.terminal.console import print_table, say
from longtail.report.terminal.model_terminal import show_metrics

FAMILIES = ("p", "r", "psp", "hf1", "macro_f1")  # of the metrics, those on the first screen
WORST_SHOWN = 3
PARTS_SHOWN = 3
NAME_LETTERS = 36  # of a label that is found least


def show_evaluation_summary(console: Console, facts: EvaluationFacts, *, more: str = "") -> None:
    """Print the main facts of an evaluation, on one screen; takes the same facts as `show_evaluation`.

    `more` says at the end where the rest is.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=80)
    >>> show_evaluation_summary(console, {"evaluation": {"ks": [1], "metrics": {"p@1": {"value": 0.8125}}}})
    >>> "81.25" in console.file.getvalue()
    True
    """
    facts = for_people(facts)
    evaluation = facts.get("evaluation") or {}
    say(console, facts.get("title"), "bold")
    say(console, sentences.headline(facts))
    say(console, model_line(facts.get("model") or {}), "dim")
    metrics = {key: row for key, row in (evaluation.get("metrics") or {}).items() if key.partition("@")[0] in FAMILIES}
    if metrics:
        console.print()
        show_metrics(console, metrics)
        rows = f"{count(evaluation.get('rows'))} rows. " if evaluation.get("rows") else ""
        say(console, (rows + sentences.interval_sentence(evaluation.get("interval") or {})).strip(), "dim")
    _show_bands(console, facts)
    _show_parts(console, facts)
    told = [_assigned_sentence(facts), _probability_sentence(facts), _worst_sentence(facts.get("worst_labels") or [])]
    told.append(_unknown_sentence(facts))
    if any(told):
        console.print()
    for sentence in told:
        say(console, sentence)
    say(console, more, "dim")


def _show_bands(console: Console, facts: EvaluationFacts) -> None:
    """Print precision and recall for frequent and rare labels."""
    evaluation = facts.get("evaluation") or {}
    k = max(evaluation.get("ks") or [0])
    bands = band_rows(evaluation.get("bands"), k)
    if bands:
        console.print()
        body = [
            [band["name"], count(band["labels"]) or "–", band["range"], _cell(band["p"]), _cell(band["r"])]
            for band in bands
        ]
        print_table(console, ["band", "labels", "in training", f"P@{k}", f"R@{k}"], body)


def _show_parts(console: Console, facts: EvaluationFacts) -> None:
    """Print how good the suggestions are on the largest parts of the rows."""
    by = facts.get("by")
    if not by or not by["parts"]:
        return
    k = max((facts.get("evaluation") or {}).get("ks") or [1])
    shown = [key for key in dict.fromkeys(("p@1", f"p@{k}", f"r@{k}")) if key in by["parts"][0]["metrics"]]

    def line(part: PartOfRowsFacts) -> list[object]:
        return [part["value"], count(part["rows"]), *(_cell(part["metrics"].get(key) or {}) for key in shown)]

    console.print()
    names = [f"By {by['column']}", "rows", *(metric_name(key) for key in shown)]
    print_table(console, names, [line(part) for part in by["parts"][:PARTS_SHOWN]])
    left = len(by["parts"]) - PARTS_SHOWN + by["parts_left_out"]
    told = [f"{plural(left, 'smaller part')} not shown." if left > 0 else ""]
    told.append(f"Of {by['rows_without']:,} rows the column says nothing." if by["rows_without"] else "")
    say(console, " ".join(filter(None, told)), "dim")


def _assigned_sentence(facts: EvaluationFacts) -> str:
    """Return how good the labels are that rows are given."""
    assigned = facts.get("assigned") or {}
    metrics = assigned.get("metrics") or {}
    names = (("micro_p", "precision"), ("micro_r", "recall"), ("micro_f1", "F1"))
    told = ", ".join(f"{name} {percent(metrics[key].get('value'), 1)}%" for key, name in names if key in metrics)
    if not told:
        return ""
    mean, empty = ((metrics.get(key) or {}).get("value") for key in ("labels_per_row", "empty_rows"))
    per_row = f"; {mean:.1f} a row, none for {percent(empty, 1)}% of the rows" if finite(mean) and finite(empty) else ""
    return f"Assigned labels: {told}{per_row}."


def _probability_sentence(facts: EvaluationFacts) -> str:
    rows = calibration_rows(facts.get("evaluation") or {})
    return f"Probabilities: {_small(sentences.calibration_sentence(rows))}." if rows else ""


def _worst_sentence(rows: list[LabelRowFacts]) -> str:
    """Return which labels are found least."""
    if not rows:
        return ""
    names = [str(row.get("label", "")) for row in rows[:WORST_SHOWN]]
    short = [name if len(name) <= NAME_LETTERS else name[: NAME_LETTERS - 1] + "…" for name in names]
    named = [f"{name} ({whole_percent(row.get('recall'))})" for name, row in zip(short, rows, strict=False)]
    return f"Found least: {', '.join(named)}."


def _unknown_sentence(facts: EvaluationFacts) -> str:
    """Return how many labels of the rows the model has never seen."""
    unknown = (facts.get("data") or {}).get("labels_unknown_to_model")
    if not unknown or (facts.get("evaluation") or {}).get("bands"):  # where they are the last band
        return ""
    are = "label of the rows is" if unknown == 1 else "labels of the rows are"
    return f"{count(unknown)} {are} unknown to the model and count as missed."


def _cell(metric: MetricFacts) -> str:
    return f"{percent(metric.get('value'), 1)}  {percent_range(metric):>9}".rstrip()


def _small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
