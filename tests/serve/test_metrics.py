"""Numbers of several processes are shown together, in a format that Prometheus reads."""

import re

from longtail.serve.metrics import Metrics

LINE = re.compile(r'# (HELP|TYPE) .+|[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+')


def test_numbers_of_processes_are_added_up(tmp_path):
    own, other = (Metrics(["/a", "/b"], tmp_path / "m", slot, 2) for slot in (0, 1))
    own.request("/a", 200, 0.004)
    other.request("/a", 200, 0.2)
    other.request("/c", 599, 0.2)
    other.add("longtail_texts_total", 3)
    for metrics in (own, other):
        text = metrics.text()
        assert 'longtail_requests_total{route="/a",status="200"} 2' in text
        assert 'longtail_requests_total{route="other",status="other"} 1' in text
        assert 'longtail_request_seconds_bucket{route="/a",le="0.005"} 1' in text
        assert 'longtail_request_seconds_bucket{route="/a",le="+Inf"} 2' in text
        assert "longtail_texts_total 3" in text
    again = Metrics(["/a", "/b"], tmp_path / "m", 1, 2)
    again.add("longtail_texts_total", 1)
    assert "longtail_texts_total 4" in own.text(), "a process that was started again goes on counting"


def test_every_line_is_as_prometheus_reads_it(client_of, things):
    client = client_of(things)
    client.post("/v1/longtail/models/things/suggest", json={"texts": ["red apple", "qqq"]})
    text = client.get("/metrics").text
    assert all(LINE.fullmatch(line) for line in text.splitlines())
    assert "longtail_texts_total 2" in text and "longtail_texts_without_known_words_total 1" in text
