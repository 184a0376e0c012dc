"""File formats: every known file becomes a Dataset through `read`, and every Dataset a file through `write`."""

from longtail.data.formats.front import is_streamed, iter_texts, read, write
from longtail.data.formats.labels import LabelList, read_labels, write_labels
from longtail.data.formats.libsvm import read_libsvm, write_libsvm
from longtail.data.formats.npz import read_npz, write_npz
from longtail.data.formats.rawfolder import read_filter, read_raw_folder
from longtail.data.formats.registry import FORMATS
from longtail.data.formats.splitfolder import read_split_folder
from longtail.data.formats.xmc import read_xmc, write_xmc

__all__ = [
    "FORMATS",
    "LabelList",
    "is_streamed",
    "iter_texts",
    "read",
    "read_filter",
    "read_labels",
    "read_libsvm",
    "read_npz",
    "read_raw_folder",
    "read_split_folder",
    "read_xmc",
    "write",
    "write_labels",
    "write_libsvm",
    "write_npz",
    "write_xmc",
]
