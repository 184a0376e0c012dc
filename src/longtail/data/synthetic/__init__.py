"""Synthetic data with a known right answer, for tests, examples and studies.

- `generate.py`: rows by a known linear model (`make_linear`), texts by topics (`make_topics`), rows in groups
  (`make_groups`), pairs of labels joined (`fuse_labels`).
- `extreme.py`: data in the shape of the largest public benchmarks (`make_extreme`).
- `group_rows.py`: groups made over given data (`group_randomly`, `group_by_clusters`).
- `entangle.py`: labels with several meanings made from given labels (`entangle_labels`).
"""
