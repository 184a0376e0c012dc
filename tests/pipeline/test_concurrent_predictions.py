"""Many threads and many forks on one loaded model: every answer is the one of a single thread."""

import os
import sys
import threading

import numpy as np
import pytest

import longtail as lt
from longtail.data.synthetic.generate import make_topics

CALLS = [(k, slice(at, at + n)) for k in (1, 3, 20) for at, n in ((0, 1), (7, 1), (0, 40), (50, 100))]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("concurrent")
    data = make_topics(160, 40, random_state=3)[0]
    tagger = lt.Tagger(calibrate=0, random_state=0, n_jobs=1).fit_dataset(data)
    X = tagger.dataset_rows(data)
    models = {
        "tagger": (tagger, list(data.texts)),
        "tree": (lt.LabelTreeClassifier(random_state=0, n_jobs=1, max_leaf=8).fit(X, data.Y), X),
        "ova": (lt.OneVsAllClassifier(random_state=0, n_jobs=1).fit(X, data.Y), X),
    }
    for name, (model, _) in models.items():
        model.save(folder / name)
    return {
        name: (folder / name, rows, [answer(model, rows, *call) for call in CALLS])
        for name, (model, rows) in models.items()
    }


def answer(model, rows, k, at):
    top = model.predict_topk(rows[at], k=k)
    return np.asarray(top.ids).tobytes(), np.asarray(top.scores).tobytes()


def wrong_answers(model, rows, expected, threads):
    """Ask from many threads at once, each starting elsewhere in the list of calls; returns how many answers differ."""
    wrong, ready = [0] * threads, threading.Barrier(threads)

    def ask(thread):
        ready.wait()
        for turn in range(len(CALLS)):
            number = (turn + thread) % len(CALLS)
            wrong[thread] += answer(model, rows, *CALLS[number]) != expected[number]

    workers = [threading.Thread(target=ask, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(wrong)


@pytest.fixture
def often_switched():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("often_switched")
@pytest.mark.parametrize("name", ["tagger", "tree", "ova"])
def test_sixteen_threads_get_the_answers_of_one(saved, name):
    folder, rows, expected = saved[name]
    assert wrong_answers(lt.load(folder), rows, expected, 16) == 0  # what is made at first use is not made yet


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks where there are threads, from Python 3.12 on
@pytest.mark.parametrize("name", ["tagger", "tree", "ova"])
def test_eight_forks_with_threads_get_the_answers_of_one(saved, name):
    folder, rows, expected = saved[name]
    loaded = lt.load(folder)
    children = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            code = 99
            try:
                code = min(wrong_answers(loaded, rows, expected, 2), 90)
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 8
