"""Audits: label sets, classes and top-k sets that a linear output layer can never produce, with proofs.

How an audit goes, in the order in which to read the modules:

1. `read_weights`: weights and bias from an array, a layer, a model or a file.
2. `audited_layer`: the layer and the box of inputs, scaled; the region of a label set follows from its signs.
3. `label_sets`: the distinct label sets of the data.
4. `audits`: the three questions, `argmaxable` (label sets), `winnable` (classes) and `retrievable` (top-k sets).
5. `certificate_search`: certificates for one set after another: proofs known from other sets, the roots of a wave for
   DFT layers (`wave_roots`), guessed inputs (`dft_witness` for matrices that are nearly one), the Chebyshev centre of
   the set's region (`chebyshev_centre`, which adds violated rows to the linear program that `dual_simplex` solves), and
   HiGHS (`reference_lp`). Layers with long sparse rows go another way: `projection`.
6. `proof`: a `certificate` is believed only after this check, which accounts for every rounding error.
7. `result`: the verdicts, radii and certificates of all sets, and facts for reports.
8. `certificate_files`: certificates written to a file that anyone can check.

`count_regions` is about a layer's shape alone: how many label sets it can produce, whether rows are dependent, and the
signs of its maximal minors.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
