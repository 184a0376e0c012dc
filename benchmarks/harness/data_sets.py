"""Reading the data sets below --data: a folder each, with XMC text or JSONL files; see benchmarks/README.md."""

from __future__ import annotations

from pathlib import Path

from longtail.data import Dataset, read
from longtail.text import TfidfFeatures

MIN_DF = 2  # rows a word must occur in


def data_file(folder: Path, part: str) -> Path | None:
    """Return the file of a part ("train", "test") of a data set, of either format; None if there is none."""
    files = (folder / f"{part}{ending}" for ending in (".txt.xz", ".jsonl.xz"))
    return next((file for file in files if file.exists()), None)


def read_parts(folder: Path, label_list: bool = True) -> tuple[Dataset, Dataset]:
    """Read train and test.

    Matrices have their labels by number. The labels of texts are those of `labels.jsonl.xz`; without `label_list`
    they are those of the training rows, and other labels of test rows are left out.
    """
    if (folder / "train.txt.xz").exists():
        return read(folder / "train.txt.xz"), read(folder / "test.txt.xz")
    labels = folder / "labels.jsonl.xz" if label_list else None
    train, test = (read(folder / f"{part}.jsonl.xz", labels_file=labels) for part in ("train", "test"))
    return train, test if label_list else test.align(train.names())[0]


def read_rows(folder: Path, label_list: bool = True) -> tuple[Dataset, Dataset]:
    """Read train and test as matrices; texts become words weighted by TF-IDF, learned on train."""
    train, test = read_parts(folder, label_list)
    if train.texts is None or test.texts is None:
        return train, test
    words = TfidfFeatures(min_df=MIN_DF)
    return Dataset(X=words.fit_transform(train.texts), Y=train.Y), Dataset(X=words.transform(test.texts), Y=test.Y)
