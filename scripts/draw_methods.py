"""Draw the pictures of docs/methods from files of results.

    python scripts/draw_methods.py [--folder docs/methods]

What they show was computed on the bundled data by `benchmarks/pictures/methods.py` (`method_pictures.json`) or measured
by the benchmark that each picture's page names.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from draw_audit_figures import clip
from longtail.report.plots.canvas import (
    WIDTH,
    box,
    dot,
    drawing,
    line,
    linear,
    path,
    shorten,
    standalone,
    text,
)
from panels import ROOT, Bar, Place, Series, bar_panel, legend, line_panel, paragraphs, results

SHADES = ("s0", "s1", "s2", "s3", "s4", "s5")
DOTS = ("dot", "dot2", "good", "bad", "soft")  # of labels that stand side by side


def shaded(svg: str) -> str:
    """Return a drawing in which the shades of areas are known."""
    return svg.replace('class="lt"', 'class="lt map"', 1)


def partition_tree() -> str:
    """Return the clusters of a small tree of the bundled labels, with one of its leaves."""
    facts = results("method_pictures.json")["label-trees"]
    slot = facts["label"]["plain"]["slots"][0]
    opened, leaf = slot["path"]
    inside = [facts["label"]["plain"]["label"], *(neighbour["label"] for neighbour in slot["neighbours"])]
    body, y = [text(0, 14, f"{facts['labels']} tags, {facts['rows']:,} packages", css="strong")], 28.0
    for number, cluster in enumerate(facts["clusters"]):
        middle = y + 17
        body += [line(8, middle, 26, middle, "axis"), box(26, y, WIDTH - 30, 34, "held")]
        about = f"cluster {number}: {cluster['labels']} tags in {cluster['leaves']} leaves"
        body.append(text(34, y + 14, about, css="strong small"))
        body.append(text(34, y + 28, shorten(" · ".join(cluster["typical"][:3]), 470), css="soft small"))
        last, y = middle, y + 40
        if number == opened:
            height = 20 + 15 * math.ceil(len(inside) / 2)
            body += [line(40, y - 6, 40, y + 14, "axis"), line(40, y + 14, 56, y + 14, "axis")]
            body += [box(56, y, WIDTH - 60, height, "s1", f"leaf {leaf}")]
            body.append(text(64, y + 14, f"leaf {leaf}: {len(inside)} tags", css="strong small"))
            for place, name in enumerate(inside):
                column, row = place % 2, place // 2
                body.append(text(64 + 186 * column, y + 30 + 15 * row, name, css="small" if place else "strong small"))
            y += height + 8
    body.append(line(8, 20, 8, last, "axis"))
    return shaded(drawing(y, "A tree of the bundled tags", "Clusters with their most used tags", body))


def beam_search() -> str:
    """Return what the search sees on its way down, level by level."""
    facts = results("method_pictures.json")["label-trees"]
    found = next(iter(facts["texts"]["plain"].values()))
    mine, below = found["leaves_of_the_label"][0], found["nodes_below"]
    body = [text(0, 14, "1. All clusters below the root; the best two are kept", css="strong small")]
    body += columns(24, dict(enumerate(found["upper"])), found["upper_kept"], 60)
    body.append(text(0, 138, "2. The leaves of these two; again the best two are kept", css="strong small"))
    body += columns(148, {int(leaf): score for leaf, score in found["lower"].items()}, found["lower_kept"], 60)
    body.append(text(0, 262, "3. The tags of these two leaves; the best are the answer", css="strong small"))
    bars = [
        Bar(
            tag["label"],
            tag["score"],
            f"{tag['score']:.2f}{' ✓' if tag['true'] else ''}",
            "dot" if tag["true"] else "bar",
        )
        for tag in found["labels"]
    ]
    body += bar_panel(Place(0, 262, WIDTH, 100), "", bars, names=170)
    lost = f"{found['looked_at']} scores were computed for {facts['labels']} tags (✓: the package has the tag)."
    missed = (
        f"Not seen: {facts['label']['plain']['label']} in leaf {mine}, since cluster {below[str(mine)]} was not kept."
    )
    body += paragraphs(0, 376, [lost, missed], "soft small")
    return drawing(398, f"Beam search for the package {found['package']}", "Scores level by level", body)


def columns(top: float, scores: dict[int, float], kept: Sequence[int], height: float) -> list[str]:
    """Return a column for every node of a level, those that are kept in colour."""
    width = WIDTH / len(scores)
    body = []
    for place, (node, score) in enumerate(scores.items()):
        tall, x = max(height * score, 1.0), place * width + 2
        css = "dot" if node in kept else "bar"
        body.append(box(x, top + height + 10 - tall, width - 4, tall, css, f"{node}: {score:.2f}"))
        body.append(
            text(x + width / 2 - 2, top + height + 23, str(node), "middle", "small" if css == "dot" else "soft small")
        )
        if score >= 0.005:
            body.append(
                text(x + width / 2 - 2, top + height + 6 - tall, f"{score:.2f}".lstrip("0"), "middle", "soft small")
            )
    return body


def overlapping_clusters() -> str:
    """Return a label that stands in two leaves, with what leads to each, and what that changes."""
    facts = results("method_pictures.json")["label-trees"]
    told = facts["label"]["overlap"]
    half = WIDTH / 2 - 4
    body = [text(WIDTH / 2, 16, told["label"], "middle", "strong"), line(WIDTH / 2, 22, WIDTH / 2, 32, "axis")]
    body.append(line(half / 2, 32, WIDTH - half / 2, 32, "axis"))
    for side, slot in enumerate(told["slots"]):
        x = side * (half + 8)
        body += [line(x + half / 2, 32, x + half / 2, 42, "axis"), box(x, 42, half, 246, "held")]
        body.append(text(x + 8, 60, f"leaf {slot['leaf']} in cluster {slot['path'][0]}", css="strong small"))
        beside = [neighbour["label"] for neighbour in slot["neighbours"][:4]]
        words = [word["word"] for word in slot["words"][:4]]
        packages = [shown["id"] for shown in slot["texts"]]
        y = 78.0
        parts = (("beside tags such as", beside), ("for words such as", words), ("for packages such as", packages))
        for title, names in parts:
            body.append(text(x + 8, y, title, css="soft small"))
            body += paragraphs(x + 8, y + 15, [shorten(name, half * 1.2) for name in names], step=14)
            y += 15 + 14 * len(names) + 5
        body.append(box(x, 294, half * slot["rows"] / told["rows"], 10, "dot"))
        body.append(text(x, 318, f"{slot['rows']} of its {told['rows']} packages", css="small"))
    plain, double, p5 = facts["reached"]["plain"], facts["reached"]["overlap"], facts["p@5"]
    lines = [
        f"A beam of 2 comes to a leaf of the tag for {plain['reached']} of these packages without",
        f"overlap, for {double['reached']} with it; of all tags of test packages {plain['of_test_labels']:.1f}% and "
        f"{double['of_test_labels']:.1f}%.",
        f"P@5, beam 2: {p5['plain, beam 2']:.1f} without, {p5['overlap, beam 2']:.1f} with; "
        f"beam 10: {p5['plain, beam 10']:.1f} without, {p5['overlap, beam 10']:.1f} with.",
    ]
    body += paragraphs(0, 344, lines)
    return shaded(drawing(380, f"The tag {told['label']} in two leaves", "What stands beside it in each", body))


def overlap_gain() -> str:
    """Return P@5 by the number of clusters of a label, on four data sets."""
    published = results("disentangle.json")["summary"]["published"]
    body: list[str] = []
    for number, (data, cells) in enumerate(published.items()):
        points = [(0.0, cells["XR-Linear"]["p@5"])]
        points += [(float(n), cells[f"λ={n}"]["p@5"]) for n in range(1, 7) if f"λ={n}" in cells]
        low, high = min(y for _, y in points), max(y for _, y in points)
        marks = {low: f"{low:.1f}", high: f"{high:.1f}"}
        place = Place(224 * (number % 2), 4 + 128 * (number // 2), 212, 122)
        x_marks = {0.0: "none", **{float(n): str(n) for n in range(1, 7)}}
        body += line_panel(place, f"{data}: P@5", [Series(data, points)], x_marks, marks)
    body.append(text(WIDTH / 2, 272, "clusters that a label may stand in, λ", "middle", "soft small"))
    return drawing(280, "P@5 by the number of clusters of a label", "It rises most from 1 to 2", body)


def eagle_turns() -> str:
    """Return how near the packages of some pages are to the vector of a label, turn after turn."""
    facts = results("method_pictures.json")["labels-of-groups"]
    turns = list(facts["right"])
    left, width = 186.0, (WIDTH - 186) / len(turns)
    body = [text(0, 16, facts["label"], css="strong")]
    for place, turn in enumerate(turns):
        x = left + (place + 0.5) * width
        title = "start" if turn == "0" else f"{turn} turn{'' if turn == '1' else 's'}"
        body += [text(x, 14, title, "middle", "strong small")]
        body.append(text(x, 29, f"{facts['right'][turn]['of_label']:.1f}%", "middle", "soft small"))
    y = 38.0
    for page in facts["shown"]:
        best = {turn: max(range(len(page["rows"])), key=lambda i: page["rows"][i]["cosine"][turn]) for turn in turns}
        for number, row in enumerate(page["rows"]):
            body.append(text(0, y + 12, "✓" if row["has"] else "", css="good strong"))
            body.append(text(16, y + 12, shorten(row["package"], 200), css="strong small" if row["has"] else "small"))
            for place, turn in enumerate(turns):
                value = row["cosine"][turn]
                shade = SHADES[min(int(value / 0.06), len(SHADES) - 1)]
                x = left + place * width
                body.append(box(x + 2, y + 1, width - 4, 15, shade, f"cosine {value:.3f}"))
                if best[turn] == number:
                    body.append(hollow(x + 2, y + 1, width - 4, 15, "sgood" if row["has"] else "sbad"))
                body.append(text(x + width / 2, y + 12.5, f"{value:.2f}", "middle", "small"))
            y += 17
        y += 8
    notes = (
        "Pages of four packages; all that is known is that each page has the tag.",
        "Numbers: cosine of a package with the tag's vector. Framed: the package",
        "that is chosen, green if it has the tag (✓). Above: how often that is so,",
        f"on all {facts['pages_with_label']} pages with the tag.",
    )
    body += paragraphs(0, y + 12, notes, "soft small")
    told = "The vector moves towards packages that have the tag"
    return shaded(drawing(y + 66, "EAGLE, turn after turn", told, body))


def hollow(x: float, y: float, width: float, height: float, css: str) -> str:
    """Return the frame of a rectangle."""
    corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
    return path(corners, css, closed=True).replace("<path ", '<path fill="none" ')


def miml_mask() -> str:
    """Return the scores of a network for the packages of a page, the mask, and their product."""
    facts = results("method_pictures.json")["labels-of-groups"]["mask"]
    labels, packages = facts["labels"], facts["packages"]
    left, cell = 150.0, (WIDTH - 150) / len(labels)
    body, y = [], 16.0
    for place, label in enumerate(labels):
        facet, name = label.split("::")
        x = left + (place + 0.5) * cell
        body += [text(x, y - 2, f"{facet}::", "middle", "soft small"), text(x, y + 11, name, "middle", "strong small")]
    y += 20
    for title, key in (
        ("scores of the network", "scores"),
        ("× mask", "mask"),
        ("= masked; the best row counts", "masked"),
    ):
        body.append(text(0, y + 12, title, css="strong small"))
        y += 18
        table = np.array(facts[key])
        high = max(float(table.max()), 1e-9)
        for row, package in enumerate(packages):
            body.append(text(0, y + 12, shorten(package, 170), css="small"))
            for place in range(len(labels)):
                value, x = float(table[row, place]), left + place * cell
                shade = SHADES[min(int(value / high * 5.99), 5)]
                body.append(box(x + 2, y + 1, cell - 4, 15, shade))
                if key == "masked" and facts["page"][place] and row == int(table[:, place].argmax()):
                    right = facts["has"][row][place]
                    body.append(hollow(x + 2, y + 1, cell - 4, 15, "sgood" if right else "sbad"))
                mark = " ✓" if facts["has"][row][place] else ""
                body.append(text(x + cell / 2, y + 12.5, f"{value:.2f}{mark}", "middle", "small"))
            y += 17
        y += 6
    on = [label.split("::")[1] for label, has in zip(labels, facts["page"], strict=True) if has]
    notes = (
        "✓: the package has the tag, which the network is not told. All it knows",
        f"is that the page has {', '.join(on)}.",
    )
    body += paragraphs(0, y + 10, notes, "soft small")
    return shaded(drawing(y + 32, "The mask of a network for labels of groups", "Scores, mask and product", body))


def group_sizes() -> str:
    """Return P@1 by the size of random groups, ours and the published numbers."""
    facts = results("eagle.json")
    sizes, ours, theirs = (2, 4, 6, 8, 10), facts["means"]["eurlex-4k"], facts["paper"]
    body: list[str] = []
    panels = (
        ("all labels to all rows", "baseline"),
        ("EAGLE-0: the start", "eagle-0"),
        ("EAGLE", "eagle"),
        ("auto", "ours"),
    )
    for number, (title, method) in enumerate(panels):
        mine = [(float(g), ours[f"random {g}"][method]["p1"]) for g in sizes]
        series = [Series("ours", mine)]
        if method in theirs["random 2"]:
            paper = [(float(g), theirs[f"random {g}"][method][0]) for g in sizes]
            series.append(Series("published", paper, "stroke2", "dot2"))
        place = Place(224 * (number % 2), 4 + 132 * (number // 2), 212, 126)
        marks = {float(v): str(v) for v in (60, 70, 80, 90)}
        body += line_panel(place, title, series, {float(g): str(g) for g in sizes}, marks)
    body.append(text(WIDTH, 284, "rows of a group", "end", "soft small"))
    body += legend(0, 284, [("dot", "ours"), ("dot2", "published")])
    return drawing(292, "P@1 by the size of groups, eurlex-4k", "Ours beside the published numbers", body)


def narrow_layer() -> str:
    """Return the plane of inputs of five tags with the regions of their sets, and the sets that packages have."""
    facts = results("method_pictures.json")["argmaxability"]
    names = [label.split("::")[1] for label in facts["labels"]]
    W, bias = np.array(facts["weights"]), np.array(facts["bias"])
    side, reach, left, top = 300.0, 7.0, 70.0, 26.0

    def at(p: np.ndarray) -> tuple[float, float]:
        return left + (p[0] / reach + 1) / 2 * side, top + (1 - p[1] / reach) / 2 * side

    square = [np.array(p) * reach for p in ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0))]
    regions: dict[tuple[int, ...], list[np.ndarray]] = {(): square}
    for label in range(len(names)):
        divided = {}
        for members, region in regions.items():
            for sign in (1, -1):
                part = clip(region, sign * W[label], sign * bias[label])
                if len(part) > 2:
                    divided[(*members, label) if sign > 0 else members] = part
        regions = divided
    body = [text(0, 14, "Where two numbers of a package lead to which tags", css="strong small")]
    named: list[str] = []
    for members, region in regions.items():
        corners = [at(p) for p in region]
        body.append(path(corners, SHADES[len(members)], closed=True))
        lines = [names[i] for i in members] or ["none"]
        x, y = middle_of(corners)
        wide, tall = 3.2 * max(map(len, lines)), 6.0 * len(lines)
        if all(inside((x + i * wide, y + j * tall), corners) for i in (-1, 1) for j in (-1, 1)):
            rows = [y + 4 + 12 * (i - (len(lines) - 1) / 2) for i in range(len(lines))]
            named += [text(x, row, name, "middle", "small") for row, name in zip(rows, lines, strict=True)]
    for normal, offset in zip(W, bias, strict=True):
        ends = ends_of_line(normal, float(offset), reach)
        if ends:
            body.append(line(*at(ends[0]), *at(ends[1]), "ssoft"))
    body += named
    y = top + side + 24
    body.append(text(0, y, "The most frequent sets, and packages that have them", css="strong small"))
    bars = []
    for one in facts["sets"][:14]:
        shown = f"{one['rows']}" if one["learned"] else f"{one['rows']}  never"
        bars.append(
            Bar(" + ".join(names[i] for i in one["labels"]), one["rows"], shown, "dot" if one["learned"] else "bad")
        )
    body += bar_panel(Place(0, y - 6, WIDTH - 10, 260), "", bars, names=170)
    return shaded(drawing(y + 250, "Which sets of five tags can come out of two numbers", "Regions and sets", body))


def middle_of(corners: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the centre of gravity of a polygon."""
    ahead = [*corners[1:], corners[0]]
    parts = [(a[0] * b[1] - b[0] * a[1], a[0] + b[0], a[1] + b[1]) for a, b in zip(corners, ahead, strict=True)]
    whole = 3 * sum(part for part, _, _ in parts)
    return sum(part * x for part, x, _ in parts) / whole, sum(part * y for part, _, y in parts) / whole


def inside(point: tuple[float, float], corners: Sequence[tuple[float, float]]) -> bool:
    """Say whether a point lies in a convex polygon."""
    ahead = [*corners[1:], corners[0]]
    x, y = point
    turns = [(b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]) for a, b in zip(corners, ahead, strict=True)]
    return all(turn >= 0 for turn in turns) or all(turn <= 0 for turn in turns)


def ends_of_line(normal: np.ndarray, offset: float, reach: float) -> list[np.ndarray]:
    """Return where the line normal . x + offset = 0 leaves the square, nothing if it passes by."""
    along, start = np.array([-normal[1], normal[0]]), -normal * offset / (normal @ normal)
    steps = [(edge - start[j]) / along[j] for j in (0, 1) if along[j] for edge in (-reach, reach)]
    inside = [step for step in steps if np.abs(start + step * along).max() <= reach * (1 + 1e-9)]
    return [start + step * along for step in (min(inside), max(inside))] if len(inside) > 1 else []


def dft_wave() -> str:
    """Return the wave along the circle of labels that is above zero at the labels of one set."""
    facts = results("method_pictures.json")["argmaxability"]["wave"]
    n, recipe, on = len(facts["labels"]), np.array(facts["recipe"]), set(facts["set"])
    at_x = linear(-0.5, n - 0.5, 4, WIDTH - 4)

    def wave(t: float) -> float:
        turns = 2 * math.pi * t / n * np.arange(1, facts["k"] + 1)
        return float(
            recipe[0] / math.sqrt(n) + math.sqrt(2 / n) * (np.cos(turns) @ recipe[1::2] + np.sin(turns) @ recipe[2::2])
        )

    steps = np.linspace(-0.5, n - 0.5, 241)
    heights = [wave(t) for t in steps]
    at_y = linear(min(heights), max(heights), 150, 26)
    title = f"{len(facts['recipe'])} numbers make a wave; the tags above zero come out"
    body = [text(0, 14, title, css="strong small"), line(0, at_y(0), WIDTH, at_y(0), "zero")]
    body.append(path([(at_x(t), at_y(h)) for t, h in zip(steps, heights, strict=True)], "stroke"))
    for label, name in enumerate(facts["labels"]):
        place = facts["places"][label]
        x, y = at_x(place), at_y(wave(place))
        body.append(dot(x, y, "good" if label in on else "hollow", name, 5 if label in on else 3))
        css = "good strong small" if label in on else "soft small"
        body.append(
            f'<g transform="rotate(-90 {x + 4:.1f} 164)">{text(x + 4, 164, shorten(name, 215), "end", css)}</g>'
        )
    body.append(text(0, 340, "a circle of tags, cut open; tags that occur together stand together", css="soft small"))
    return drawing(348, "A wave of three frequencies", "It is above zero at three tags alone", body)


def impossible_sets() -> str:
    """Return the share of the label sets of test rows that a narrow layer can never give, by its width."""
    audits = results("bottleneck.json")["audits"]
    styles = {"delicious": ("stroke", "dot"), "pubmed-mesh": ("stroke2", "dot2"), "eurlex57k": ("sgood", "good")}
    series = []
    for data, (stroke, dots) in styles.items():
        shares: dict[int, list[float]] = {}
        for audit in audits:
            if audit["data"] == data and audit["layer"] == "bottleneck":
                shares.setdefault(audit["d"], []).append(100 * audit["share_not_argmaxable"])
        points = [(float(d), float(np.mean(shares[d]))) for d in sorted(shares)]
        series.append(Series(data, points, f"{stroke} open", dots))
    x_marks = {float(d): str(d) for d in (25, 50, 100, 200, 400)}
    y_marks = {float(v): f"{v}%" for v in (0, 25, 50, 75, 100)}
    body = line_panel(
        Place(0, 4, WIDTH, 190),
        "Label sets of test rows that can never come out",
        series,
        x_marks,
        y_marks,
        logs=(True, False),
    )
    body = [part.replace('class="sgood open"', 'class="sgood" fill="none"').replace(' open"', '"') for part in body]
    body.append(text(WIDTH, 206, "width d of a learned layer", "end", "soft small"))
    body += legend(0, 206, [(dots, data) for data, (_, dots) in styles.items()])
    body.append(text(0, 224, "DFT layers of the same widths: none, on all three.", css="small"))
    return drawing(230, "Label sets that can never come out, by width", "They become few as the layer grows", body)


def prototypes() -> str:
    """Return where texts, label texts, centroids and prototypes lie before and after training."""
    facts = results("method_pictures.json")["prime"]
    side, gap = 214.0, 12.0
    every = np.concatenate(
        [
            np.array(facts[stage][name])
            for stage in ("before", "after")
            for name in ("texts", "label_texts", "centroids", "prototypes")
        ]
    )
    low, high = every.min(axis=0) - 0.05, every.max(axis=0) + 0.05
    body = []
    for number, stage in enumerate(("before", "after")):
        left = number * (side + gap)
        at_x, at_y = linear(low[0], high[0], left, left + side), linear(low[1], high[1], 26 + side, 26)
        p1 = facts[stage]["p@1"]
        body += [text(left, 14, f"{stage} training", css="strong small"), box(left, 22, side, side + 8, "held")]
        for (x, y), label in zip(facts[stage]["texts"], facts["row_labels"], strict=True):
            body.append(dot(at_x(x), at_y(y), DOTS[label], facts["labels"][label], 2.2))
        for label, name in enumerate(facts["labels"]):
            text_x, text_y = facts[stage]["label_texts"][label]
            mean_x, mean_y = facts[stage]["centroids"][label]
            x, y = facts[stage]["prototypes"][label]
            body.append(line(at_x(text_x), at_y(text_y), at_x(x), at_y(y), "grid"))
            body.append(line(at_x(mean_x), at_y(mean_y), at_x(x), at_y(y), "grid"))
            body.append(box(at_x(text_x) - 4, at_y(text_y) - 4, 8, 8, DOTS[label], f"text of {name}"))
            body.append(dot(at_x(mean_x), at_y(mean_y), "hollow", f"centroid of {name}", 4))
            body.append(dot(at_x(x), at_y(y), DOTS[label], f"prototype of {name}", 7))
        y = 26 + side + 22
        body += paragraphs(
            left, y, [f"P@1 by label texts: {p1['label texts']:.1f}%", f"P@1 by prototypes: {p1['prototypes']:.1f}%"]
        )
    y = 26 + side + 60
    row = facts["labels"]
    body += legend(0, y, list(zip(DOTS[:3], row[:3], strict=True)))
    body += legend(0, y + 17, list(zip(DOTS[3:], row[3:], strict=True)))
    body += [box(238, y + 9, 8, 8, "bar"), text(250, y + 17, "text of a tag", css="small")]
    body += [dot(10, y + 30, "hollow", "", 4), text(22, y + 34, "centroid: mean of its packages", css="small")]
    body += [dot(242, y + 30, "bar", "", 7), text(254, y + 34, "prototype", css="small")]
    return shaded(drawing(y + 42, "Packages and tags in the space of an encoder", "Before and after training", body))


def margin() -> str:
    """Return the loss of one triplet by the gap of its similarities, with the fixed and with the clipped margin."""
    gaps = np.linspace(-0.4, 0.5, 181)
    dynamic = np.clip(np.abs(gaps), 0.1, 0.3)
    fixed_loss, loss = np.maximum(0, 0.3 - gaps), np.maximum(0, dynamic - gaps)
    x_marks = {v: f"{v:g}" for v in (-0.4, -0.2, 0.0, 0.2, 0.4)} | {0.5: ""}
    y_marks = {v: f"{v:g}" for v in (0.0, 0.2, 0.4, 0.6, 0.8)}
    place = Place(0, 4, WIDTH, 210)
    series = [
        Series("dynamic", list(zip(gaps.tolist(), loss.tolist(), strict=True))),
        Series("fixed", list(zip(gaps.tolist(), fixed_loss.tolist(), strict=True)), "stroke2", "dot2"),
    ]
    body = [
        part
        for part in line_panel(place, "loss of a triplet", series, x_marks, y_marks)
        if not part.startswith("<circle")
    ]
    body.append(text(WIDTH, 226, "how far the positive is ahead, s⁺ − s⁻", "end", "soft small"))
    body += legend(0, 226, [("dot", "clipped margin"), ("dot2", "margin 0.3")])
    return drawing(234, "The clipped dynamic margin", "No loss once the positive is 0.1 ahead", body)


def prototype_network() -> str:
    """Return the parts of PRIME and how they hang together."""
    body = []

    def part(x: float, y: float, width: float, lines: Sequence[str], css: str = "held") -> None:
        body.append(box(x, y, width, 14 + 15 * len(lines), css))
        body.extend(
            text(x + width / 2, y + 19 + 15 * i, words, "middle", "small" if i else "strong small")
            for i, words in enumerate(lines)
        )

    def arrow(x1: float, y1: float, x2: float, y2: float) -> None:
        length = math.hypot(x2 - x1, y2 - y1)
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        body.append(line(x1, y1, x2 - 4 * dx, y2 - 4 * dy, "ssoft"))
        tip = [(x2, y2), (x2 - 8 * dx - 4 * dy, y2 - 8 * dy + 4 * dx), (x2 - 8 * dx + 4 * dy, y2 - 8 * dy - 4 * dx)]
        body.append(path(tip, "tip", closed=True).replace('class="tip"', 'fill="var(--soft)"'))

    part(2, 4, 130, ["query", "a text"])
    part(150, 4, 130, ["label", "a text too"])
    part(2, 80, 278, ["one encoder for both"], "s2")
    arrow(67, 48, 67, 80)
    arrow(195, 48, 195, 80)
    part(150, 146, 90, ["text vector"])
    part(248, 146, 90, ["centroid", "mean of", "its queries"])
    part(346, 146, 92, ["free vector", "shared by", "alike labels"])
    arrow(195, 109, 195, 146)
    part(150, 240, 288, ["prototype network", "one transformer layer over the three,", "then their mean"], "s2")
    arrow(195, 175, 195, 240)
    arrow(293, 205, 293, 240)
    arrow(392, 205, 392, 240)
    part(212, 334, 164, ["prototype of the label"], "s4")
    arrow(294, 299, 294, 334)
    part(2, 334, 130, ["vector of the query"], "s4")
    arrow(67, 109, 67, 334)
    arrow(172, 348, 212, 348)
    arrow(172, 348, 132, 348)
    body.append(text(172, 382, "cosine", "middle", "strong small"))
    return shaded(drawing(390, "How PRIME scores a label", "Query vector and label prototype", body))


def loss_ladder() -> str:
    """Return P@1 as parts of the loss are added, ours and the published numbers."""
    ours = results("prime_study.json")["summary"]["yso-titles"]["choices"]
    steps = (
        ("query → prototype", "query to prototype only, fixed margin", 51.71),
        ("+ query → label text", "+ query to label", 56.34),
        ("+ dynamic margin", "+ dynamic margin", 57.40),
        ("+ label text → query", "+ label to query", 58.25),
        ("+ regulariser", "PRIME-lite", 58.10),
        ("PRIME", "PRIME, batch x2", 58.58),
    )
    mine = [
        Bar(name, ours[key]["test"]["p@1"]["mean"], f"{ours[key]['test']['p@1']['mean']:.1f}", "dot")
        for name, key, _ in steps
    ]
    paper = [Bar(name, value, f"{value:.2f}") for name, _, value in steps]
    body = bar_panel(Place(0, 4, 300, 130), "ours, 60,000 titles", mine, names=140, low=30, step=19)
    body += bar_panel(Place(312, 4, 132, 130), "published", paper, names=0, low=45, step=19)
    notes = (
        "P@1 in percent. The data differ, so compare the steps, not",
        "the levels: bars begin at 30 here and at 45 there.",
    )
    body += paragraphs(0, 152, notes, "soft small")
    return drawing(174, "What each part of the loss brings", "P@1, ours and published", body)


PICTURES = {
    "partition-tree": partition_tree,
    "beam-search": beam_search,
    "overlapping-clusters": overlapping_clusters,
    "overlap-gain": overlap_gain,
    "eagle-turns": eagle_turns,
    "miml-mask": miml_mask,
    "group-sizes": group_sizes,
    "narrow-layer": narrow_layer,
    "dft-wave": dft_wave,
    "impossible-sets": impossible_sets,
    "prototypes": prototypes,
    "margin": margin,
    "prototype-network": prototype_network,
    "loss-ladder": loss_ladder,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "methods")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (args.folder / f"{name}.svg").write_text(standalone(draw()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
