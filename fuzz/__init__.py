"""Fuzzers for every door through which a stranger's bytes come in: data files, model folders, side files, commands.

    python -m fuzz jsonl --cases 10000            # cases 0 to 9,999 of one target
    python -m fuzz models --minutes 5             # all targets of a group, taking turns
    python -m fuzz csv --seed 3 --case 4711       # one case again, with what it does and the files it makes

Where to start reading: `case.py` says what a target and a case are, `targets/` has one file per kind of target,
`watch.py` judges a case while it runs, and `runner.py` runs many of them in child processes.
"""
