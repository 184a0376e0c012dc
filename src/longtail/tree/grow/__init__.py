"""Grow a label tree: cluster the labels by their vectors.

build            `build_tree`: vectors in, `LabelTree` out
balanced         halves of equal size, again and again
kmeans           clusters of any size, level by level; its compiled loops are in kmeans_kernels
compact_vectors  the label vectors, some rows at a time
seeding          random numbers of a node; threads within and across nodes
"""
