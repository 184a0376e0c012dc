"""Labels while someone types: the same as a plain look at every name."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longtail.serve.label_search import LabelSearch, folded, words_of

NAMES = st.text("abäB ß-é1", max_size=8)


def find_plain(names, counts, ids, typed):
    """Return the labels that match, exact ones first, then by frequency."""
    words = words_of(typed.strip())
    everything = [*names, *((n, i) for n, i in enumerate(ids) if (n, i) not in names)]
    hits = {n for n, name in everything if all(any(w.startswith(t) for w in words_of(name)) for t in words)}
    if not words:
        hits = set() if typed.strip() else set(range(len(ids)))
    exact = {n for n, name in everything if words and n in hits and folded(name) == folded(typed.strip())}
    return sorted(hits, key=lambda n: (n not in exact, -counts[n], n))


@given(st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=3), st.integers(0, 3)), min_size=1, max_size=8), NAMES)
def test_the_same_as_a_plain_look(labels, typed):
    names = [(number, name) for number, (own, _) in enumerate(labels) for name in own]
    counts, ids = np.array([count for _, count in labels]), [f"p{number}" for number in range(len(labels))]
    search = LabelSearch(names, counts, ids)
    expected = find_plain(names, counts, ids, typed)
    found = search.find(typed, limit=100)
    assert [label for label, _ in found.labels] == expected and found.total == len(expected)
    pages = [label for start in range(0, len(labels), 3) for label, _ in search.find(typed, 3, start).labels]
    assert pages == expected


def test_over_http(client_of, animals):
    client = client_of(animals)

    def found(query):
        got = client.get(f"/v1/longtail/models/animals/labels?q={query}").json()
        return [(label["name"], label["matched"]) for label in got["labels"]]

    assert found("fel") == [("cats", "felines")]
    assert found("KATZ") == [("cats", "Katzen")]
    assert found("musli") == [("cats", "Müslikatzen")]
    assert found("599") == [("cats", "599.75")]
    assert {name for name, _ in found("")} == {"cats", "dogs"}
    got = client.get("/v1/longtail/models/animals/labels?q=hund&language=de").json()
    assert got["total"] == 1 and got["labels"][0]["name"] == "Hunde"
    assert got["labels"][0]["broader"] == [{"label": "http://ex.org/animals", "name": "Tiere"}]
    got = client.get("/v1/longtail/models/animals/labels?q=hund&language=fi")
    assert got.status_code == 422 and "a language of the vocabulary" in got.json()["detail"]


def test_concepts_that_the_model_cannot_suggest_come_after_its_labels(client_of, animals):
    client = client_of(animals)

    def found(query):
        got = client.get(f"/v1/longtail/models/animals/labels?concepts=all&{query}").json()
        return [(label["name"], label["suggested"], label["rows"]) for label in got["labels"]], got["total"]

    assert found("q=anim") == ([("animals", False, 0)], 1)
    assert found("q=tier&language=de") == ([("Tiere", False, 0)], 1)
    assert [name for name, _, _ in found("q=")[0]][-1] == "animals" and found("q=")[1] == 3
    assert found("q=&limit=2&offset=2") == ([("animals", False, 0)], 3) and found("q=&limit=1")[1] == 3
    assert client.get("/v1/longtail/models/animals/labels?q=anim").json()["total"] == 0
    got = client.get("/v1/longtail/models/animals/labels?concepts=some")
    assert got.status_code == 422 and "concepts must be one of labels, all" in got.json()["detail"]


def test_one_label_and_the_hierarchy(client_of, animals):
    client = client_of(animals)
    got = client.get("/v1/longtail/models/animals/labels/http://ex.org/cats").json()
    assert got["name"] == "cats" and got["alternative"] == ["felines"] and got["rows"] == 40
    assert got["broader"] == [{"label": "http://ex.org/animals", "name": "animals"}]
    assert client.get("/v1/longtail/models/animals/labels/nothing").status_code == 404
    tree = client.get("/v1/longtail/models/animals/tree").json()
    assert [child["name"] for child in tree["children"]] == ["animals"] and tree["children"][0]["children"] == 2
    below = client.get("/v1/longtail/models/animals/tree?label=http://ex.org/animals&language=de").json()
    assert [child["name"] for child in below["children"]] == ["Hunde", "Katzen"]
