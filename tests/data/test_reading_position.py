"""A file that was read halfway is read on from there, in the same batches."""

import pytest

from longtail.data import Dataset, ReadingPosition, iter_texts, make_linear, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of files that are several blocks long."""
    folder = tmp_path_factory.mktemp("position")
    texts = [f"row {row} " + "w\u00f6rds " * (row % 60) for row in range(3000)]
    data = Dataset.from_lists(texts, [["a"]] * len(texts), ids=[f"r{row}" for row in range(len(texts))])
    for name in ("rows.jsonl", "rows.jsonl.gz", "rows.csv"):
        write(data, folder / name)
    (folder / "blank.jsonl").write_bytes((folder / "rows.jsonl").read_bytes().replace(b"\n", b"\n\n"))
    (folder / "rows.txt").write_text("\n".join(texts * 4), "utf-16")
    features = make_linear(2000, 40, 5, random_state=0)[0]
    for name in ("rows.xmc", "rows.svm"):
        write(features, folder / name)
    return folder


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rows.jsonl", {}),
        ("blank.jsonl", {}),
        ("rows.jsonl.gz", {}),
        ("rows.csv", {}),
        ("rows.txt", {"format": "lines", "encoding": "utf-16"}),
        ("rows.xmc", {}),
        ("rows.svm", {"zero_based": True, "n_features": 40}),
    ],
)
def test_reading_goes_on_from_any_batch(folder, name, options):
    position, after = ReadingPosition(), []
    whole = []
    for batch in iter_texts(folder / name, 300, **options, position=position):
        whole.append(batch.digest())
        after.append((position.block, position.batch))
    assert len(whole) >= 7 and len(set(after)) == len(after)
    for done in {0, 1, 3, len(whole) // 2, len(whole) - 1}:
        start = ReadingPosition(*after[done])
        rest = [batch.digest() for batch in iter_texts(folder / name, 300, **options, position=start)]
        assert rest == whole[done + 1 :]
        assert (start.block, start.batch) == (position.block, position.batch)


def test_lines_are_counted_in_blocks_that_are_left_out(folder, tmp_path):
    (tmp_path / "bad.jsonl").write_bytes((folder / "rows.jsonl").read_bytes() + b"{bad\n")
    with pytest.raises(Exception, match="line 3001 is not JSON"):
        list(iter_texts(tmp_path / "bad.jsonl", 300, position=ReadingPosition(5, 0)))
