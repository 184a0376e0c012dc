"""Numbers of products as labels: memory follows the labels in use, never the largest number."""

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.data import TopK
from longtail.metrics import evaluate, filter_topk

NUMBERS = (7, 12_345_678, 100_000_000, 2_000_000_000)
MOST_BYTES = 1200 << 20  # Python with its packages, and kernels being compiled, take most of it


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    rows = [(NUMBERS[i % 4], i % 4, 4 + i % 3) for i in range(80)]
    (folder / "rows.svm").write_text("".join(f"{y} {a + 1}:1 {b + 1}:0.5\n" for y, a, b in rows))
    (folder / "rows.xmc").write_text("80 7 2147483647\n" + "".join(f"{y} {a}:1 {b}:0.5\n" for y, a, b in rows))
    return folder


COMMANDS = """
import sys
from pathlib import Path
from longtail.cli import main
folder = sys.argv[1]
for command in ("plan rows.svm", "train rows.svm -o model --calibrate 0.3", "predict model rows.svm -k 1 -o out.csv",
                "evaluate model rows.xmc --resamples 0 --json"):
    try:
        main(command.split())
    except SystemExit as end:
        assert end.code == 0, command
    status = Path("/proc/self/status").read_text()  # getrusage would count the memory of who started this, too
    print("peak", int(status.split("VmHWM:")[1].split()[0]) * 1024, command)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak of memory from /proc")
def test_read_plan_train_predict_and_evaluate_take_memory_for_the_labels_in_use(files):
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, files], capture_output=True, text=True, timeout=300, cwd=files, check=False
    )
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        if line.startswith("peak "):
            assert int(line.split()[1]) < MOST_BYTES, line
    rows = [line.split(",") for line in (files / "out.csv").read_text().splitlines()[1:]]
    assert [row[2] for row in rows] == [str(NUMBERS[i % 4]) for i in range(80)]


def test_labels_in_use_are_named_by_their_numbers(files):
    data = lt.data.read(files / "rows.svm")
    assert data.n_labels == NUMBERS[-1] + 1  # numbers stay what they are until a model is trained
    tagger = lt.Tagger(calibrate=0).fit_dataset(data)
    assert tagger.labels_ == tuple(map(str, NUMBERS))
    assert data.summary()["labels_used"] == 4 and data.summary()["labels_seen_once"] == 0
    aligned, dropped = data.align(["100000000", "other"])
    assert dropped == 60 and aligned.Y.sum() == 20


def test_few_labels_without_rows_are_kept_as_they_are():
    data = lt.Dataset(Y=sp.csr_array((3, 500_000), dtype=np.float32), X=np.eye(3))
    assert data.compact_labels() is data


def test_metrics_of_wide_truth_take_memory_for_the_labels_in_use():
    Y = sp.csr_array((np.ones(3), ([0, 1, 2], [7, 10**9, 2**31 - 2])), shape=(3, 2**31 - 1))
    top = TopK(np.array([[7, 1], [10**9, 7], [5, 6]]), np.zeros((3, 2)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    facts = evaluate(Y, top, ks=(1, 2), n_bootstrap=0)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_BYTES
    same = sp.csr_array((np.ones(3), ([0, 1, 2], [2, 4, 5])), shape=(3, 6))
    small = evaluate(same, TopK([[2, 3], [4, 2], [0, 1]], np.zeros((3, 2))), ks=(1, 2))
    assert {name: m["value"] for name, m in facts["metrics"].items()} == {
        name: m["value"] for name, m in small["metrics"].items()
    }


def test_a_split_of_wide_labels(files):
    train, test = lt.data.split_stratified(lt.data.read(files / "rows.svm"), test_size=0.25)
    assert len(train) == 60 and len(test) == 20


def test_a_filter_with_huge_numbers_removes_only_what_it_names():
    top = TopK([[3, 1], [1, 3]], [[0.9, 0.5], [0.9, 0.5]])
    out = filter_topk(top, [[0, 3], [1, 2**62]])
    assert out.ids.tolist() == [[1, -1], [1, 3]]
    assert filter_topk(top, [[1, 2**62]]).ids.tolist() == top.ids.tolist()
    with pytest.raises(ValueError, match=r"below 2\*\*63"):
        filter_topk(top, np.array([[1, 2**63 + 1]], dtype=np.uint64))


@pytest.mark.parametrize("ids", [[[2**40, 1]], [[-(2**40), 1]], [[1.5, 1]], [["a", "b"]], [[1], [1, 2]]])
def test_predictions_must_be_label_numbers(ids):
    with pytest.raises(ValueError, match="TopK needs"):
        TopK(ids, np.zeros((1, 2)))


@pytest.mark.parametrize("rows", [[99], [-4], [0.5], [True], [[0]]])
def test_rows_that_are_not_there_cannot_be_taken(rows):
    data = lt.Dataset.from_lists(["a", "b", "c"], [["x"]] * 3)
    with pytest.raises(ValueError, match=r"^rows must"):
        data.take(rows)
    assert data.take([-1, 0]).texts == ("c", "a") and data.take([]).n_rows == 0
    assert data.take([True, False, True]).texts == ("a", "c") and data.take(slice(1, 9)).texts == ("b", "c")


@pytest.mark.parametrize("estimator", [lt.OneVsAllClassifier, lt.LabelTreeClassifier])
def test_parameters_beyond_all_use_are_refused(estimator):
    with pytest.raises(ValueError, match=r"max_iter must be an integer between 1 and 9223372036854775807; got 1180591"):
        estimator(max_iter=2**70).fit(np.eye(4), np.eye(4))
    with pytest.raises(ValueError, match=r"bias must be a number between 0 and 1e\+06; got 1e\+300"):
        estimator(bias=1e300).fit(np.eye(4), np.eye(4))
