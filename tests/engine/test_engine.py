"""Engines give the same results in the same order; a checkpoint gives again what was finished, and nothing else."""

import json
import os

import numpy as np
import pytest

from longtail.engine import Checkpoint, LocalEngine, RayEngine, Work, engine_for, in_use, open_engine, running_on
from longtail.engine.ray_engine import _run_task
from longtail.errors import DataError, LongtailError, MissingExtraError, ModelError, ParameterError

CALLS = []


def prepare(arrays, settings):
    return arrays["x"] + settings["add"]


def take(x, task):
    CALLS.append(task)
    return {"y": x[task[0] : task[1]] * 2}


DOUBLE = Work(prepare, take)
X = np.arange(10.0)
TASKS = [(0, 3), (3, 4), (4, 10)]


def double(engine, x=X, add=1, tasks=TASKS, **more):
    CALLS.clear()
    return [out["y"].tolist() for out in engine.map(DOUBLE, [engine.share({"x": x})], {"add": add}, tasks, **more)]


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_the_order_of_the_tasks(threads):
    told = []
    out = double(LocalEngine(threads), costs=[3, 1, 6], told=told.append)
    assert out == [[2, 4, 6], [8], [10, 12, 14, 16, 18, 20]]
    assert sorted(told) == [0, 1, 2]


def test_the_heaviest_task_is_begun_first():
    double(LocalEngine(1), costs=[3, 1, 6])
    assert CALLS == [(4, 10), (0, 3), (3, 4)]


def test_an_error_in_a_task_is_raised():
    with pytest.raises(KeyError, match="x"):
        LocalEngine(2).map(DOUBLE, [], {"add": 1}, TASKS)


def test_the_engine_in_use_is_that_of_the_innermost_block():
    assert in_use() is None and engine_for(3).workers == 3
    with running_on(LocalEngine(2)) as _, running_on(None):
        assert engine_for(5).workers == 2
        with running_on(LocalEngine(1)):
            assert engine_for(5).workers == 1
    assert in_use() is None


def test_a_checkpoint_gives_what_was_finished(tmp_path):
    first = double(LocalEngine(2, checkpoint=Checkpoint(tmp_path / "kept")), tasks=TASKS[:2])
    kept, told = Checkpoint(tmp_path / "kept"), []
    assert double(LocalEngine(2, checkpoint=kept), told=told.append)[:2] == first
    assert CALLS == [(4, 10)] and (kept.taken, kept.added) == (2, 1) and sorted(told) == [0, 1, 2]


@pytest.mark.parametrize("changed", [{"x": X + 1}, {"x": X.astype(np.float32)}, {"add": 2}, {"tasks": [(0, 4)]}])
def test_a_checkpoint_gives_nothing_for_other_data_settings_or_tasks(tmp_path, changed):
    double(LocalEngine(1, checkpoint=Checkpoint(tmp_path / "kept")))
    out = double(LocalEngine(1, checkpoint=Checkpoint(tmp_path / "kept")), **changed)
    assert len(CALLS) == len(changed.get("tasks", TASKS)) and out == double(LocalEngine(1), **changed)


def test_a_damaged_result_is_computed_again(tmp_path):
    right = double(LocalEngine(1, checkpoint=Checkpoint(tmp_path / "kept")))
    files = sorted((tmp_path / "kept").glob("*.safetensors"))
    raw = bytearray(files[0].read_bytes())
    raw[-1] ^= 1
    files[0].write_bytes(raw)
    files[1].unlink()
    assert double(LocalEngine(1, checkpoint=Checkpoint(tmp_path / "kept"))) == right and len(CALLS) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_a_result_is_computed_again(tmp_path):
    right = double(LocalEngine(1, checkpoint=Checkpoint(tmp_path / "kept")))
    result = next((tmp_path / "kept").glob("*.safetensors"))
    result.unlink()
    os.mkfifo(result)
    assert double(LocalEngine(1, checkpoint=Checkpoint(tmp_path / "kept"))) == right and len(CALLS) == 1
    (tmp_path / "kept" / "longtail-work.json").unlink()
    os.mkfifo(tmp_path / "kept" / "longtail-work.json")
    with pytest.raises(ModelError, match=r"longtail-work\.json is no file; remove the folder to begin anew"):
        Checkpoint(tmp_path / "kept")


def test_the_same_work_may_end_elsewhere_meanwhile(tmp_path):
    here, elsewhere = Checkpoint(tmp_path / "kept"), Checkpoint(tmp_path / "kept")
    double(LocalEngine(1, checkpoint=elsewhere))
    elsewhere.drop()  # the folder is gone
    assert double(LocalEngine(1, checkpoint=here)) == double(LocalEngine(1))
    assert Checkpoint(tmp_path / "kept").find(next(iter(here._files))) is not None


def test_a_checkpoint_removes_its_own_files_only(tmp_path):
    kept = Checkpoint(tmp_path / "kept")
    double(LocalEngine(1, checkpoint=kept))
    kept.drop()
    assert not (tmp_path / "kept").exists()
    kept = Checkpoint(tmp_path / "kept")
    (tmp_path / "kept" / "mine.txt").write_text("mine")
    kept.drop()
    assert [file.name for file in (tmp_path / "kept").iterdir()] == ["mine.txt"]
    with pytest.raises(ModelError, match=r"kept is a folder of other files; give an empty or a new one\."):
        Checkpoint(tmp_path / "kept")
    kept.drop()
    assert (tmp_path / "kept" / "mine.txt").exists()


def test_the_end_of_one_work_leaves_that_of_another(tmp_path):
    double(LocalEngine(1, checkpoint=Checkpoint(tmp_path / "kept")))  # and was interrupted
    other = Checkpoint(tmp_path / "kept")
    double(LocalEngine(1, checkpoint=other), add=2)
    other.drop()
    again = Checkpoint(tmp_path / "kept")
    double(LocalEngine(1, checkpoint=again))
    assert (again.taken, again.added) == (len(TASKS), 0)
    again.drop()
    assert not (tmp_path / "kept").exists()


def test_a_checkpoint_that_cannot_be_used_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match=r"file cannot be used: .*exists\."):
        Checkpoint(tmp_path / "file")
    Checkpoint(tmp_path / "kept")
    (tmp_path / "kept" / "longtail-work.json").write_text(json.dumps({"format": "longtail work.v2"}))
    with pytest.raises(ModelError, match="kept is of another version of longtail; remove it"):
        Checkpoint(tmp_path / "kept")
    (tmp_path / "kept" / "longtail-work.json").write_text("{")
    with pytest.raises(ModelError, match=r"longtail-work\.json is damaged; remove the folder to begin anew"):
        Checkpoint(tmp_path / "kept")
    with pytest.raises(ParameterError, match="checkpoint must be the name of a folder of its own"):
        Checkpoint("")


def test_engines_are_opened_by_name():
    assert open_engine("threads", n_jobs=2).workers == 2
    with pytest.raises(ParameterError, match="Did you mean 'ray'"):
        open_engine("rai")
    with pytest.raises(ParameterError, match="address is that of a Ray cluster; it needs the engine 'ray'"):
        open_engine("threads", address="auto")


def test_without_ray_one_sentence_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"the engine 'ray' needs the package 'ray'; .*longtail\[ray\]"):
        RayEngine()


@pytest.fixture(scope="module")
def cluster():
    """A cluster of this machine alone."""
    pytest.importorskip("ray")
    with RayEngine("local", n_jobs=2) as engine:
        yield engine


class TestRay:
    def test_a_wrong_address_is_one_sentence(self):
        pytest.importorskip("ray")
        with pytest.raises(LongtailError, match=r"no Ray cluster can be reached at '127.0.0.1:1': .*\.$"):
            RayEngine("127.0.0.1:1")
        for address in ("nowhere", "host:port", "host:99999999", "ray://host:10001", "http://host:1"):
            with pytest.raises(ParameterError, match="address must be 'host:port', 'auto' or 'local'; got"):
                RayEngine(address)

    def test_a_cluster_that_refuses_is_told_of_tokens(self, monkeypatch):
        ray = pytest.importorskip("ray")

        def refuse(**words):
            raise ConnectionError("Failed to connect to Ray cluster at 127.0.0.1.")

        monkeypatch.setattr(ray, "init", refuse)
        monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
        with pytest.raises(
            LongtailError, match=r"'auto': Failed to connect .*; if the cluster asks for a token, set RAY"
        ):
            RayEngine("auto")

    def test_models_are_the_same_bytes(self, cluster):
        from longtail import LabelTreeClassifier
        from longtail.data.synthetic.generate import make_topics
        from longtail.text import TfidfFeatures

        data = make_topics(300, 30)[0]
        X = TfidfFeatures().fit_transform(data.texts)
        here = LabelTreeClassifier(max_leaf=8, branching=4, n_jobs=1).fit(X, data.Y)
        there = LabelTreeClassifier(max_leaf=8, branching=4, n_jobs=1).fit(X, data.Y, engine=cluster)
        mine, theirs = here.to_part().arrays, there.to_part().arrays
        assert all(mine[name].tobytes() == theirs[name].tobytes() for name in mine)

    def test_too_little_shared_memory_is_one_sentence(self, cluster, monkeypatch):
        nodes = [{**node, "Resources": {"CPU": 1.0, "object_store_memory": 1e6}} for node in cluster._nodes()]
        monkeypatch.setattr(cluster, "_nodes", lambda: nodes)
        with pytest.raises(LongtailError, match=r"take 8\.0 MB of shared memory on every node; .* has 1\.0 MB"):
            cluster.share({"x": np.zeros(1_000_000)})


def missing_file(arrays, settings):
    return open(settings["path"])  # noqa: PTH123


def test_a_node_without_the_data_is_named():
    names = [__name__, "missing_file", __name__, "take"]
    with pytest.raises(DataError, match=r"the node \S+ does not have /nowhere/rows; put it there, or on a disk"):
        _run_task("one call", names, {"path": "/nowhere/rows"}, [0, 1], {})
