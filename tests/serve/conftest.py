"""Shared by the tests of the server: small models, and clients of an app."""

import contextlib

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

import longtail as lt
from longtail.serve import ServeSettings, create_app
from longtail.vocabulary import Concept, Vocabulary

TEXTS = ["red apple", "green apple", "fast car", "old car"]
LABELS = [["fruit", "red"], ["fruit"], ["vehicle"], ["vehicle"]]


@pytest.fixture(scope="session")
def things(tmp_path_factory):
    """The folder of a small model of the labels fruit, red and vehicle."""
    return lt.Tagger(random_state=0).fit(TEXTS * 20, LABELS * 20).save(tmp_path_factory.mktemp("models") / "things")


@pytest.fixture(scope="session")
def animals(tmp_path_factory):
    """The folder of a small model with a vocabulary in two languages."""
    concepts = [
        Concept("http://ex.org/animals", {"en": "animals", "de": "Tiere"}),
        Concept(
            "http://ex.org/cats",
            {"en": "cats", "de": "Katzen"},
            {"en": ("felines",), "de": ("Hauskatzen", "Müslikatzen")},
            notation="599.75",
            broader=("http://ex.org/animals",),
        ),
        Concept("http://ex.org/dogs", {"en": "dogs", "de": "Hunde"}, broader=("http://ex.org/animals",)),
    ]
    texts, labels = ["a cat purrs", "the dog barks", "cat and dog"], [["cats"], ["dogs"], ["cats", "dogs"]]
    tagger = lt.Tagger(random_state=0).fit(
        texts * 20, labels * 20, vocabulary=Vocabulary(concepts, language="en", name="Animals")
    )
    return tagger.save(tmp_path_factory.mktemp("models") / "animals")


@pytest.fixture
def client_of():
    """Return a function that makes a client of a server with some models and settings."""
    with contextlib.ExitStack() as stack:

        def make(*folders, base_url="http://127.0.0.1", **settings):
            settings = {"log_requests": False, **settings}
            app = create_app(ServeSettings({folder.name: folder for folder in folders}, **settings))
            return stack.enter_context(TestClient(app, base_url=base_url))

        yield make
