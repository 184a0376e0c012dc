"""File formats: `io.read` makes a Dataset of any known file, `io.write` writes one.

Where to start reading:

- `io.py`: `read`, `write` and `iter_texts`, which ask `registry.py` for the functions of a format.
- `registry.py`: the formats by name; `guess_format.py`: which of them a file is in.
- One module per format: `jsonl.py`, `csv_table.py`, `parquet.py`, `fasttext.py` (and plain lines) for texts; `xmc.py`
  (parser in `xmc_parser.py`), `libsvm.py`, `npz.py` for features; `split_folder.py`, `raw_folder.py` for folders.
- Shared by them: `files.py` (opening, compression, writing all or nothing) and `records.py` (rows of text).
- Files beside the data: `label_list.py` (lists of labels), `group_file.py` (labels of groups), `label_sets.py` (label
  sets alone).

To add a file format, write `formats/<name>.py` with

- a function that yields `records.Batch` objects (rows of text), or one that returns a Dataset (features), perhaps with
  another that yields X and Y block by block,
- `write_<name>(dataset, path)` if it can be written; the entry's `write` is called with `(dataset, path, columns)`, so
  wrap it where columns do not matter,

and add one entry to `REGISTRY` in `registry.py` with its suffixes or what its first line begins with; give `batches`
or `read`, never both. Nothing else has to change: reading, writing, guessing, `longtail convert` and its list of
formats go by the registry.
"""
