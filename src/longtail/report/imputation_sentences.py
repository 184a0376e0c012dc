"""Sentences about labels of rows that were found from labels of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longtail.facts import ImputationFacts
from longtail.report.formatting import plural


def imputing_lines(facts: ImputationFacts) -> list[str]:
    """Return in a few lines what there was, what was done and which rows got nothing."""
    told: Mapping[str, Any] = facts
    size, given = facts["group_size"], facts["rows"] - facts["rows_without_labels"]
    alike = round(facts["likeness"], 2) + 0.0  # no -0.00
    sizes = f"{size['smallest']:,} to {size['largest']:,} rows, {size['mean']:.1f} on average"
    if size["smallest"] == size["largest"]:
        sizes = plural(size["largest"], "row") + (" each" if facts["groups"] > 1 else "")
    lines = [
        f"{plural(facts['rows'], 'row')} in {plural(facts['groups'], 'group')} of {sizes}, "
        f"with {plural(facts['labels'], 'label')}.",
        f"Rows of a group are {facts['alike']} (likeness {alike:.2f}; 1 is the same).",
        facts["why"],
        f"{plural(given, 'row')} got {plural(facts['assigned'], 'label')}, with a mean confidence of "
        f"{100 * facts['mean_confidence']:.0f}%.",
        f"Confidence: {facts['confidence_means']}.",
    ]
    reasons = (
        ("rows_not_chosen", "that no label of their groups went to"),
        ("rows_without_words", "without a known word"),
        ("rows_in_groups_without_labels", "in groups without labels"),
        ("rows_in_no_group", "in no group"),
    )
    why = ", ".join(f"{told[key]:,} {words}" for key, words in reasons if told[key])
    if facts["rows_without_labels"]:
        lines.append(f"{plural(facts['rows_without_labels'], 'row')} got no label: {why}.")
    left = (
        ("groups_without_rows", "group has no rows, so its", "groups have no rows, so their", " labels went nowhere"),
        ("labels_in_no_group", "label is", "labels are", " in no group that has rows"),
        ("counts_above_size", "time", "times", " a group has a label more often than it has rows; all its rows got it"),
    )
    lines += [f"{plural(told[key], one, many)}{rest}." for key, one, many, rest in left if told[key]]
    return lines
