"""Controlled vocabularies: concepts with ids, names in several languages, notations and broader concepts.

Where to start reading:

- `vocabulary.py`: `Vocabulary`, kept as flat arrays, and `Concept`, one entry of it.
- `build.py`: concepts to arrays; cycles and references that lead nowhere are taken out and counted.
- `read_file.py`: which format a file has. SKOS comes as triples (`ntriples.py`, or `rdflib_parser.py`), from which
  `triples.py` makes concepts; `tables.py` and `json_lines.py` read the others.
- `write_file.py`: the way back; `name_facts.py`: names beside the labels of facts.
- `find_concept.py`: from what a person writes (id, notation or name) to a concept.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
