"""The plots: well-formed, accessible, inert, and true to their facts."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest

from longtail.report.plots import charts
from longtail.report.plots.canvas import standalone, ticks

NS = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert(1)</script> \"&'\x00\x1b\ud800\u202e ]]>"
METRIC = {"name": "P@1", "value": 0.8123, "low": 0.79, "high": 0.83}
FREQUENT = [
    {"x": 0.5, "y": None, "count": 3},
    {"x": 1, "y": 0.2, "low": 0.1, "high": 0.3, "count": 9},
    {"x": 800, "y": 0.7, "low": 0.6, "high": 0.8, "count": 2},
]
BINS = [
    {"start": 0.1, "end": 0.2, "predicted": 0.15, "observed": 0.1, "count": 40},
    {"start": 0.2, "end": 0.3, "predicted": None, "observed": None, "count": 0},
]
CLEAR = {"difference": 0.021, "low": 0.01, "high": 0.03}
UNCLEAR = {"name": "b", "difference": -0.01, "low": -0.02, "high": 0.01}
DRAWINGS = {
    "interval": lambda name: charts.interval_plot([{**METRIC, "name": name}], title=name),
    "frequency": lambda name: charts.frequency_plot(
        [{"name": name, "points": FREQUENT}, {"name": name, "points": [{"x": 1, "y": 0.1, "name": name}]}], title=name
    ),
    "reliability": lambda name: charts.reliability_plot(BINS, title=name),
    "tail": lambda name: charts.tail_plot([(1, 900), (10, 40), (300, 1)], title=name),
    "difference": lambda name: charts.difference_plot([{"name": name, **CLEAR}, UNCLEAR], title=name, x_label="points"),
}
EMPTY = {
    "interval": lambda: charts.interval_plot([], title="t"),
    "frequency": lambda: charts.frequency_plot([{"name": "p", "points": []}], title="t"),
    "no series": lambda: charts.frequency_plot([], title="t"),
    "reliability": lambda: charts.reliability_plot([], title="t"),
    "tail": lambda: charts.tail_plot([], title="t"),
    "difference": lambda: charts.difference_plot([], title="t", x_label="x"),
    "not finite": lambda: charts.interval_plot([{"name": "a", "value": math.nan}, {"name": "b"}], title="t"),
    "all zero": lambda: charts.interval_plot([{"name": "a", "value": 0.0}], title="t"),
    "one point": lambda: charts.frequency_plot([{"name": "p", "points": [{"x": 5, "y": 0.0}]}], title="t"),
}


def numbers(root: ET.Element) -> list[float]:
    keys = ("x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "width", "height")
    return [float(e.get(key)) for e in root.iter() for key in keys if e.get(key) is not None]


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=list(DRAWINGS))
def test_a_drawing_is_well_formed_and_names_itself(draw):
    root = ET.fromstring(draw("a name"))
    assert root.find(f"{NS}title").text == "a name"
    assert root.find(f"{NS}desc").text
    assert root.get("role") == "img"
    _, _, width, height = (float(v) for v in root.get("viewBox").split())
    assert width > 0 and height > 0
    assert all(math.isfinite(v) for v in numbers(root))
    ET.fromstring(standalone(draw("a name")))


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=list(DRAWINGS))
def test_hostile_names_are_inert(draw):
    root = ET.fromstring(draw(HOSTILE))
    assert not list(root.iter(f"{NS}script")) and not list(root.iter("script"))
    assert "alert(1)" in "".join(root.itertext())  # still there, as text


@pytest.mark.parametrize("draw", EMPTY.values(), ids=list(EMPTY))
def test_missing_facts_do_not_break_a_drawing(draw):
    assert all(math.isfinite(v) for v in numbers(ET.fromstring(draw())))


def test_marks_stay_inside_and_stand_where_the_axis_says():
    root = ET.fromstring(charts.interval_plot([METRIC, {"name": "R@1", "value": 0.4}], title="t"))
    dots = [float(e.get("cx")) for e in root.iter(f"{NS}circle")]
    ticks_at = {e.text: float(e.get("x")) for e in root.iter(f"{NS}text") if e.get("text-anchor") == "middle"}
    per_point = (ticks_at["80"] - ticks_at["40"]) / 40
    assert dots[1] == pytest.approx(ticks_at["40"], abs=0.1)
    assert dots[0] == pytest.approx(ticks_at["80"] + 1.23 * per_point, abs=0.1)


def test_every_mark_tells_its_numbers():
    text = "".join(ET.fromstring(DRAWINGS["difference"]("P@1")).itertext())
    assert "+2.1 (+1.0 to +3.0)" in text and "-1.0 (-2.0 to +1.0)" in text
    assert "said 15.0%, right 10.0%, 40 suggestions" in DRAWINGS["reliability"]("t")


def test_a_difference_that_may_be_chance_is_hollow():
    marks = [e.get("class") for e in ET.fromstring(DRAWINGS["difference"]("P@1")).iter(f"{NS}circle")]
    assert marks == ["good", "hollow"]


@pytest.mark.parametrize(("low", "high"), [(0, 0.83), (-7, 3), (0, 1e-6), (3, 3), (0, 12345.6)])
def test_ticks_are_few_and_cover_the_range(low, high):
    found = ticks(low, high)
    assert found[0] <= low and found[-1] >= high and 3 <= len(found) <= 9
