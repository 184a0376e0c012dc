"""What the peers of the hybrid are given and how their answers are read: benchmarks/hybrid."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.hybrid.annif_ensemble import URI, averaged, write_corpus
from benchmarks.hybrid.peer_data import PeerData, read_data, top_of_pairs

from longtail.data import read
from longtail.vocabulary import Vocabulary


def test_annif_is_given_every_row_label_and_parent(tmp_path):
    pytest.importorskip("rdflib")
    Y = sp.csr_array(np.array([[1, 0, 1], [0, 1, 0]] * 10, dtype=np.float32))
    names = [["fruit"], ['an "apple"\\', "Malus"], ["old car"]]
    data = PeerData([f"row {i}\tof\ntext" for i in range(20)], Y, ["a  test"], Y[:1], names, [[], [0], []])
    write_corpus(data, tmp_path)
    apple = Vocabulary.read(tmp_path / "labels.ttl")[f"{URI}1"]
    assert (apple.names["en"], apple.alternatives["en"], apple.broader) == (names[1][0], ("Malus",), (f"{URI}0",))
    rest, held = (read(tmp_path / f"{part}.tsv", format="annif") for part in ("rest", "held"))
    assert (rest.n_rows, held.n_rows) == (18, 2)
    assert sorted([*rest.texts, *held.texts]) == sorted(f"row {i} of text" for i in range(20))
    assert (tmp_path / "test.tsv").read_text() == "a test\n"


def test_means_of_scores_are_ranked_with_ties_by_label():
    rows = averaged([[(3, 0.8), (1, 0.4)]], [[(1, 0.4), (2, 0.8)]], 0.5, 0.5)
    top = top_of_pairs(rows, 4)
    assert top.ids.tolist() == [[1, 2, 3, -1]]
    np.testing.assert_allclose(top.scores[0, :3], 0.4)


def test_debian_tags_go_by_their_short_names():
    data = read_data("debtags", None)
    assert ["Korean"] in data.names
    assert max(len(names[0]) for names in data.names) < 80
