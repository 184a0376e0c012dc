"""Compiled loops that several folders share; what only one folder uses lies in that folder.

compilation         the decorator of all kernels, with a mode that checks bounds
kernel_cache        where compiled kernels are kept
lanes               vector instructions for sixteen labels at once (the only file that knows about LLVM)
coordinate_descent  linear classifiers of sixteen labels at once, on sparse rows
row_lengths         unit length and squared norms of rows
row_subsets         some rows as a small matrix of their own, whose sums are exact
two_means           division of rows into two halves of like rows
threads             independent tasks on threads, with results in order
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
