"""Labels of groups to labels of rows: EAGLE, plain propagation, and how alike the rows of a group are."""

from longtail.aggregate.eagle import Eagle
from longtail.aggregate.likeness import group_likeness
from longtail.aggregate.problem import propagate

__all__ = ["Eagle", "group_likeness", "propagate"]
