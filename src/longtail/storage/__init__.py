"""Model folders: a manifest and plain arrays; atomic to write, verified and memory-mapped to read."""

from longtail.storage.folder import (
    FORMAT_VERSION,
    LoadedFolder,
    check_target,
    load_folder,
    read_manifest,
    save_folder,
    verify_folder,
)
from longtail.storage.part import Part, pack_csr, pack_strings, unpack_csr, unpack_strings

__all__ = [
    "FORMAT_VERSION",
    "LoadedFolder",
    "Part",
    "check_target",
    "load_folder",
    "pack_csr",
    "pack_strings",
    "read_manifest",
    "save_folder",
    "unpack_csr",
    "unpack_strings",
    "verify_folder",
]
