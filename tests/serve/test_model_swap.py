"""Folders that are replaced on disk: the new model is served, a broken one is not, and no request is dropped."""

import shutil
import threading
import time

import pytest

import longtail as lt

SUGGEST = "/v1/longtail/models/live/suggest"


@pytest.fixture
def live(things, tmp_path):
    return shutil.copytree(things, tmp_path / "live")


def other_model():
    return lt.Tagger(random_state=1).fit(["red apple", "fast car"] * 30, [["pomes"], ["machines"]] * 30)


def wait_for(check, seconds=20):
    until = time.monotonic() + seconds
    while not check() and time.monotonic() < until:
        time.sleep(0.02)
    return check()


def labels(client):
    got = client.post(SUGGEST, json={"text": "red apple", "k": 5})
    assert got.status_code == 200, got.text
    return {tag["label"] for tag in got.json()["results"][0]["tags"]}


@pytest.mark.parametrize("how", ["saved over it", "renamed over it"])
def test_a_replaced_folder_is_served_and_no_request_fails(client_of, live, tmp_path, how):
    client = client_of(live, watch_seconds=0.05)
    digest = client.get("/v1/longtail/models/live").json()["digest"]
    seen, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            seen.append(frozenset(labels(client)))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        if how == "saved over it":
            other_model().save(live)
        else:
            other_model().save(tmp_path / "next")
            live.rename(tmp_path / "old")
            (tmp_path / "next").rename(live)
        assert wait_for(lambda: seen and seen[-1] == {"pomes", "machines"})
    finally:
        stop.set()
        thread.join()
    assert set(seen) <= {frozenset({"fruit", "red", "vehicle"}), frozenset({"pomes", "machines"})}
    assert client.get("/v1/longtail/models/live").json()["digest"] != digest
    assert "longtail_model_swaps_total 1" in client.get("/metrics").text


@pytest.mark.parametrize("broken", ["a cut file", "no manifest", "another manifest", "features"])
def test_a_broken_folder_is_not_served(client_of, live, broken, caplog):
    client = client_of(live, watch_seconds=0.05)
    manifest = live / "manifest.json"
    if broken == "a cut file":
        file = next(live.glob("model.*"))
        raw = file.read_bytes()
        file.unlink()
        file.write_bytes(raw[: len(raw) // 2])
        manifest.touch()
    elif broken == "no manifest":
        manifest.unlink()
    elif broken == "another manifest":
        manifest.write_text('{"format": "longtail-model", "version": 1}')
    else:
        import numpy as np

        lt.Tagger(calibrate=0).fit(np.eye(4, dtype=np.float32), np.eye(4)).save(live)
    assert wait_for(lambda: client.get("/v1/longtail/models").json()["models"][0]["problem"])
    problem = client.get("/v1/longtail/models").json()["models"][0]["problem"]
    assert problem.endswith(".") and live.name in problem and str(live.parent) not in problem
    assert labels(client) == {"fruit", "red", "vehicle"}
    assert client.post("/v1/longtail/models/live/reload").status_code == 422
    other_model().save(live)
    assert wait_for(lambda: labels(client) == {"pomes", "machines"})
    assert client.get("/v1/longtail/models").json()["models"][0]["problem"] is None


def test_admins_can_ask_for_a_reload(client_of, live):
    client = client_of(live, watch_seconds=1000)
    assert client.post("/v1/longtail/models/live/reload").json()["swapped"] is False
    other_model().save(live)
    assert labels(client) == {"fruit", "red", "vehicle"}
    assert client.post("/v1/longtail/models/live/reload").json()["swapped"] is True
    assert labels(client) == {"pomes", "machines"}


def test_private_copies_outlive_files_that_are_overwritten(client_of, live, monkeypatch):
    mapped, load = [], lt.pipeline.open_model
    monkeypatch.setattr(
        "longtail.serve.model_shelf.open_model", lambda folder, **how: mapped.append(folder) or load(folder, **how)
    )
    client = client_of(live, copy_models=True, watch_seconds=0.05)
    assert live not in mapped[0].parents and (mapped[0] / "manifest.json").exists()
    for file in live.iterdir():
        file.write_bytes(b"")
    assert labels(client) == {"fruit", "red", "vehicle"}
    (live / "manifest.json").unlink()
    other_model().save(live)
    assert wait_for(lambda: labels(client) == {"pomes", "machines"})


def test_several_models(client_of, things, animals):
    client = client_of(things, animals)
    got = client.get("/v1/longtail/models").json()
    assert [model["id"] for model in got["models"]] == ["things", "animals"] and got["default"] == "things"
    found = client.post("/v1/longtail/models/animals/suggest", json={"text": "the dog", "k": 1}).json()
    assert found["results"][0]["tags"][0]["name"] == "dogs"


def test_the_digest_is_that_of_the_model_that_was_read(live, tmp_path, monkeypatch):
    """Another model may stand in the folder while it is read, and the first one again by the end."""
    from longtail.serve import ServeSettings, model_shelf
    from longtail.storage import copy_folder, folder_digest

    other_model().save(tmp_path / "other")
    copy_folder(live, tmp_path / "first")
    really = model_shelf.open_model

    def open_while_it_is_replaced(folder, **how):
        copy_folder(tmp_path / "other", folder)
        try:
            return really(folder, **how)
        finally:
            copy_folder(tmp_path / "first", folder)

    monkeypatch.setattr(model_shelf, "open_model", open_while_it_is_replaced)
    served = model_shelf.ModelShelf(ServeSettings({"live": live})).get("live")
    assert set(served.tagger.labels_) == {"pomes", "machines"}
    assert served.digest == folder_digest(tmp_path / "other")
