"""Compile the kernels that tagging and training need, for usual processors, to be brought along in a wheel.

    python scripts/compile_kernels.py

`make dist` runs it for the wheels of single versions of Python. The files lie in `src/longtail/kernels/compiled`, or
where `--output` says. They are used by the same versions of Python and numba, with the same sources, on processors that
have all that a level (x86-64-v3, x86-64-v4) names; others compile for themselves, as without them. Kernels are compiled
by running: a level that this processor has not is left out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from llvmlite.binding import get_host_cpu_features

from longtail.kernels import kernel_cache

# what is run, so that all its kernels are compiled
PROGRAM = """
from pathlib import Path
import longtail as lt
from longtail.kernels import kernel_cache
kernel_cache.BROUGHT = Path(FOLDER, "none")  # not those of the processor before
texts = lt.data.load_bundled("debtags").take(slice(0, 1500))
tagger = lt.Tagger(calibrate=0.2, random_state=0).fit_dataset(texts)
tagger.save(FOLDER + "/model")
tagger = lt.load(FOLDER + "/model")
tagger.predict([texts.texts[0]])
tagger.predict(list(texts.texts[:300]))
data = lt.data.make_linear(n_rows=300, n_features=100, n_labels=60)[0]
lt.LabelTreeClassifier(n_trees=2, max_leaf=10).fit(data.X, data.Y).predict_topk(data.X)
lt.OneVsAllClassifier().fit(data.X, data.Y).predict_topk(data.X)
"""


def compile_for(processor: str, folder: Path) -> int:
    """Compile all kernels for a processor into a folder; return how many files were written."""
    with tempfile.TemporaryDirectory() as work:
        env = {**os.environ, "NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": f"{work}/cache"}
        subprocess.run([sys.executable, "-c", f"FOLDER = {work!r}\n{PROGRAM}"], env=env, check=True)
        files = [file for ending in ("nbi", "nbc") for file in Path(work, "cache").glob(f"*/*.{ending}")]
        for file in files:
            shutil.copy(file, folder / file.name)
    return len(files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=kernel_cache.BROUGHT)
    folder: Path = parser.parse_args().output
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    features = get_host_cpu_features()
    for processor, needs in kernel_cache.PROCESSORS.items():
        if all(features.get(need) for need in needs):
            print(f"{processor}: {compile_for(processor, folder)} files")
        else:
            print(f"{processor}: left out, this processor cannot run it")
    print(f"written to {folder}, {sum(f.stat().st_size for f in folder.iterdir()) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
