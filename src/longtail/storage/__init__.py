"""Model folders: a manifest and plain arrays; written atomically, verified and memory-mapped when read.

Where to start reading:

- `part.py`: `Part`, what one object saves; sparse matrices and strings as plain arrays.
- `folder.py`: `save_folder` and `load_folder`, a folder of parts with its manifest.
- `arrays.py`: arrays to safetensors bytes, and files to memory-mapped arrays.

To save a new kind of object, give it `to_part` and `from_part` and a kind such as "name.v1"; a change to what is saved
gets a new kind, and the old one keeps loading. This folder needs no change for it.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
