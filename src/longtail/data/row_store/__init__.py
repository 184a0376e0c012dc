"""The row store: rows, labels and texts on disk as raw arrays that are mapped into memory, for data larger than memory.

Where to start reading:

- `manifest.py`: what `store.json` says, and its checks.
- `write_store.py`: `StoreWriter` writes a store block by block, all or nothing.
- `open_store.py`: `open_store` checks a store completely and maps it; `RowStore.dataset()` is the `Dataset` on it.
- `fill_store.py`: any readable file to a store, in constant memory.
- `pieces.py`: the files of one array, mapped behind each other; `check_rows.py`: the compiled check of its entries.
"""
