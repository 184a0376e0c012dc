"""The Dataset, predictions, file formats, splits, synthetic data and the bundled real data.

Where to start reading:

- `dataset.py`: `Dataset`, the form that all data takes; `topk.py`: `TopK`, the form of predictions.
- `formats/`: files to Datasets and back; start at `formats/io.py`.
- `grouped.py`: rows whose labels are known only for groups of them; `group_lists.py` checks such data given as lists.
- `splits.py`: train and test rows; the kernel of the stratified split is in `stratify.py`.
- `synthetic/`: data with a known right answer.
- `bundled.py`: the data sets that come with longtail, in `files/`.

To add a file format: write `formats/<name>.py` and add one entry to `formats/registry.py`.
To add a generator: write it in `synthetic/` and offer it in `__init__.pyi`.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
