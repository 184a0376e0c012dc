"""Texts to sparse rows by TF-IDF, and vectors for labels.

Where to start reading:

- `tfidf.py`: `TfidfFeatures`, the story from texts to rows. It uses `lexicon.py` (the set of n-grams),
  `count_ngrams.py` (counts on many threads) and `weigh_counts.py` (counts to rows).
- `beginnings.py`: `BeginningFeatures`, in which words at the beginning of a text count in columns of their own too.
- `word_table.py` numbers words; `word_forms.py` and `stemmer.py` let words count by their stems; `stop_words.py` holds
  short lists of words to leave out, by language.
- `stemmed_words.py`: texts as numbers of the stems of a fixed list of names; `light_stems.py` cuts English plurals
  without any further package.
- Kernels below it: `tokenise.py` (bytes to word numbers), `ngrams.py` (word numbers to n-grams), `string_arrays.py`
  (n-grams to strings, sorting), `hash_table.py`, `utf8.py`; `unicode_tables.py` holds Python's rules for letters.
- `unknown_terms.py`: the words of texts that the features do not know.
- `label_vectors.py`: one vector per label, from its rows (`pifa`) or its text; the kernel is in `row_sums.py`.
- `row_vectors.py`: rows of unit length, sparse and dense rows side by side.
- `check_texts.py`: the check for lists of texts.

To add an option of TF-IDF: the constructor of `TfidfFeatures` and its docstring; a field of `lexicon.Analysis` if it
changes how a text is cut; `to_part`, so that it is saved.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
