"""Features: texts to sparse or dense rows, and vectors for labels."""

from longtail.features.dense import EncoderFeatures
from longtail.features.labels import combine, label_text_vectors, pifa
from longtail.features.rows import hstack_rows, unit_rows
from longtail.features.tfidf import TfidfFeatures

__all__ = [
    "EncoderFeatures",
    "TfidfFeatures",
    "combine",
    "hstack_rows",
    "label_text_vectors",
    "pifa",
    "unit_rows",
]
