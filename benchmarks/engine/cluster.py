"""Train the label tree on simulated clusters of Ray: the same bytes, what it costs, and what lost machines cost.

    python benchmarks/engine/cluster.py --data FOLDER

FOLDER holds `yso-titles`; LONGTAIL_DATA is its default. Needs the extra `ray`. Nodes are simulated on this machine by
`ray.cluster_utils.Cluster`, one core each; the driver is a process of its own, on a node without cores.

Every training runs in such a process. CPU seconds are those of the driver and of all processes of the cluster between
the begin of `fit` and its end; those of threads are of one process. In warm trainings every process has loaded and
compiled its kernels before; `first` is a training in new processes, whose `cpu_of_all` counts from their begin and has
the loading of libraries and rows in it, also for threads.
Kills of nodes are ungraceful, and a new node comes at once. The driver is killed by SIGKILL after half of the time and
started again with the same checkpoint.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.engine.warm_up import warm_up
from benchmarks.harness.data_sets import MIN_DF, read_parts
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from longtail.data.synthetic.generate import make_extreme
from longtail.engine import Checkpoint, Engine, LocalEngine, RayEngine
from longtail.text import TfidfFeatures
from longtail.tree import LabelTreeClassifier

NODES = (2, 4)
THREADS = 2
STORE = 1 << 30  # bytes of shared memory of a node
TICKS = os.sysconf("SC_CLK_TCK")


def model_digest(model: LabelTreeClassifier) -> str:
    """Return a digest of all arrays of a model."""
    out = hashlib.sha256()
    for name, array in sorted(model.to_part().arrays.items()):
        out.update(name.encode() + array.tobytes())
    return out.hexdigest()


def cluster_cpu(session: str, workers_alone: bool = False) -> float:
    """Return the processor seconds of a cluster's processes so far, those that have ended included."""
    parent, spent, roots, workers = {}, {}, [], set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        pid = int(folder.name)
        parent[pid], spent[pid] = int(words[1]), sum(map(int, words[11:15])) / TICKS
        if command.startswith("ray::") and "Agent" not in command:
            workers.add(pid)
        if session in command and ("raylet" in command or "gcs_server" in command):
            roots.append(pid)
    below, frontier = set(roots), set(roots)
    while frontier:
        frontier = {pid for pid, above in parent.items() if above in frontier} - below
        below |= frontier
    return sum(spent[pid] for pid in (below & workers if workers_alone else below))


def drive(args: argparse.Namespace) -> None:
    """Train once, in a process of its own, and print what it took."""
    arrays = np.load(args.rows)
    X = sp.csr_array((arrays["x"], arrays["x.ids"], arrays["x.ptr"]), shape=tuple(arrays["x.shape"]))
    Y = sp.csr_array((arrays["y"], arrays["y.ids"], arrays["y.ptr"]), shape=tuple(arrays["y.shape"]))
    checkpoint = None if args.checkpoint is None else Checkpoint(args.checkpoint)
    small = make_extreme(600, 300, 2000)
    engine: Engine
    if args.address is None:
        engine, begun = LocalEngine(THREADS, checkpoint=checkpoint), 0.0
        if args.warm:
            LabelTreeClassifier(max_leaf=20, random_state=0).fit(small.X, small.Y)  # compiles
    else:
        started = time.perf_counter()
        engine = RayEngine(args.address, checkpoint=checkpoint)
        begun = time.perf_counter() - started
        if args.warm:
            LabelTreeClassifier(max_leaf=20, random_state=0, n_jobs=THREADS).fit(small.X, small.Y)
            warm_up(engine)
    print("begun", flush=True)
    before, of_workers = (cluster_cpu(args.session, alone) if args.session else 0.0 for alone in (False, True))
    wall, cpu = time.perf_counter(), time.process_time()
    model = LabelTreeClassifier(random_state=0, n_jobs=THREADS).fit(X, Y, engine=engine)
    facts: Facts = {
        "seconds": round(time.perf_counter() - wall, 2),
        "cpu_driver": round(time.process_time() - cpu, 2),
        "cpu_cluster": round(cluster_cpu(args.session) - before, 2) if args.session else 0.0,
        "cpu_workers": round(cluster_cpu(args.session, True) - of_workers, 2) if args.session else 0.0,
        "connected_in": round(begun, 2),
        "digest": model_digest(model),
    }
    facts["cpu_seconds"] = round(facts["cpu_driver"] + facts["cpu_cluster"], 2)
    facts["cpu_of_all"] = round(time.process_time() + (cluster_cpu(args.session) if args.session else 0.0), 2)
    if checkpoint is not None:
        facts |= {"tasks_taken": checkpoint.taken, "tasks_done": checkpoint.added}
    print(json.dumps(facts), flush=True)


class Driver:
    """A training in a process of its own."""

    def __init__(self, rows: Path, cluster: SimulatedCluster | None, *more: str) -> None:
        command = [sys.executable, __file__, "--drive", "--rows", str(rows), *more]
        if cluster is not None:
            command += ["--address", cluster.address, "--session", cluster.session]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._line("begun")
        self.started = time.perf_counter()

    def _line(self, begin: str) -> str:
        """Return the next line that begins so; Ray prints others."""
        for line in self.process.stdout or ():
            if line.startswith(begin):
                return line
        raise RuntimeError(f"the training ended: {self.process.communicate()[1][-3000:]}")

    def result(self) -> Facts:
        """Wait for its end, and return what it took."""
        out: Facts = json.loads(self._line("{"))
        self.process.wait()
        return out


class SimulatedCluster:
    """Nodes of one core each on this machine, and a node without cores for drivers."""

    def __init__(self, n_nodes: int) -> None:
        import ray
        from ray.cluster_utils import Cluster

        self._ray = ray
        started = time.perf_counter()
        self.inside = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": STORE})
        self.nodes = [self.add() for _ in range(n_nodes)]
        self.inside.wait_for_nodes()
        self.seconds = round(time.perf_counter() - started, 1)

    @property
    def address(self) -> str:
        """Where drivers connect to."""
        return str(self.inside.address)

    @property
    def session(self) -> str:
        """The name of the folder of its processes, which is part of their command lines."""
        return Path(self.inside.head_node.get_session_dir_path()).name

    def add(self) -> Any:
        """Add a node of one core."""
        return self.inside.add_node(num_cpus=1, object_store_memory=STORE, wait=False)

    def kill_one(self, number: int) -> None:
        """Kill a node without a word, and add a new one."""
        self.inside.remove_node(self.nodes.pop(number), allow_graceful=False)
        self.nodes.append(self.add())

    def close(self) -> None:
        """End all its processes."""
        self.inside.shutdown()


def save_rows(file: Path, X: sp.csr_array, Y: sp.csr_array) -> None:
    """Write rows and labels for the drivers."""
    np.savez(
        file,
        **{"x": X.data, "x.ids": X.indices, "x.ptr": X.indptr, "x.shape": np.array(X.shape)},
        **{"y": Y.data, "y.ids": Y.indices, "y.ptr": Y.indptr, "y.shape": np.array(Y.shape)},
    )


def with_cluster(n_nodes: int, measure: Callable[[SimulatedCluster], Facts]) -> Facts:
    """Measure on a cluster of its own, and what the cluster takes while it does nothing."""
    cluster = SimulatedCluster(n_nodes)
    try:
        time.sleep(5)
        before = cluster_cpu(cluster.session)
        time.sleep(10)
        idle = round((cluster_cpu(cluster.session) - before) / 10, 3)
        return {"up_in": cluster.seconds, "idle_cpu_per_second": idle, **measure(cluster)}
    finally:
        cluster.close()


def first_and_warm(cluster: SimulatedCluster, rows: Path, repeats: int) -> Facts:
    """Train in new processes, and then in such as have trained before."""
    before = cluster_cpu(cluster.session)
    first = Driver(rows, cluster).result()
    first["cpu_of_all"] = round(first["cpu_of_all"] - before, 2)
    warm = _median([Driver(rows, cluster, "--warm").result() for _ in range(repeats)])
    return {**warm, "first": first}


def node_killed(cluster: SimulatedCluster, rows: Path, after: float) -> Facts:
    """Kill a node in the middle of a training."""
    driver = Driver(rows, cluster, "--warm")
    time.sleep(max(0.0, after - (time.perf_counter() - driver.started)))
    cluster.kill_one(0)
    return driver.result()


def driver_killed(cluster: SimulatedCluster, rows: Path, work: Path, after: float) -> Facts:
    """Kill the driver in the middle of a training, and start it again with the same checkpoint."""
    folder = work / "checkpoint"
    whole = Driver(rows, cluster, "--warm", "--checkpoint", str(folder)).result()
    shutil.rmtree(folder)
    driver = Driver(rows, cluster, "--warm", "--checkpoint", str(folder))
    time.sleep(after)
    os.kill(driver.process.pid, signal.SIGKILL)
    driver.process.wait()
    kept = sum(1 for _ in folder.glob("*.safetensors"))
    again = Driver(rows, cluster, "--warm", "--checkpoint", str(folder)).result()
    return {"undisturbed": whole, "results_kept": kept, "again": again}


def random_kills(cluster: SimulatedCluster, rows: Path, wanted: int, seconds: float, seed: int) -> Facts:
    """Kill nodes at random moments of trainings until enough have been killed."""
    chance, killed, digests, times, failures = random.Random(seed), 0, [], [], []
    while killed < wanted:
        driver = Driver(rows, cluster, "--warm")
        while driver.process.poll() is None and killed < wanted:
            time.sleep(chance.uniform(0.1, 1.0) * seconds / 2)
            if driver.process.poll() is None:
                cluster.kill_one(chance.randrange(len(cluster.nodes)))
                killed += 1
                print(f"  {killed} of {wanted} nodes killed", flush=True)
        try:
            out = driver.result()
            digests.append(out["digest"])
            times.append(out["seconds"])
        except RuntimeError as error:
            failures.append(str(error)[-300:])
    return {
        "kills": killed,
        "trainings": len(digests) + len(failures),
        "failed": failures,
        "digests": sorted(set(digests)),
        "seconds": times,
    }


def compare(args: argparse.Namespace, facts: Facts, work: Path) -> None:
    """Measure all and write the results after each."""
    train, _ = read_parts(args.data / "yso-titles")
    X = sp.csr_array(TfidfFeatures(min_df=MIN_DF).fit_transform(train.texts or ()))
    rows, generated = work / "rows.npz", work / "generated.npz"
    save_rows(rows, X, train.Y)
    extreme = make_extreme(60_000, 20_000, 20_000)
    save_rows(generated, sp.csr_array(extreme.X), extreme.Y)
    facts["data"] = {"rows": X.shape[0], "features": X.shape[1], "labels": train.Y.shape[1], "nonzeros": int(X.nnz)}

    def note(name: str, value: Facts) -> None:
        facts[name] = value
        write_results(facts, args.output)
        print(name, json.dumps(value), flush=True)

    if "threads" not in facts:
        first = Driver(rows, None).result()
        runs = [Driver(rows, None, "--warm").result() for _ in range(args.repeats)]
        note("threads", {**_median(runs), "first": first})
    local = facts["threads"]
    for n_nodes in NODES:
        name = f"nodes_{n_nodes}"
        if name not in facts:
            out = with_cluster(n_nodes, lambda c: first_and_warm(c, rows, args.repeats))
            out["cpu_overhead"] = round(out["cpu_seconds"] / local["cpu_seconds"] - 1, 3)
            out["cpu_overhead_first"] = round(out["first"]["cpu_of_all"] / local["first"]["cpu_of_all"] - 1, 3)
            note(name, out)
    usual = facts["nodes_2"]["seconds"]
    if "node_killed" not in facts:
        out = with_cluster(2, lambda c: node_killed(c, rows, usual / 2))
        note("node_killed", {**out, "undisturbed": usual, "lost": round(out["seconds"] - usual, 2)})
    if "driver_killed" not in facts:
        note("driver_killed", with_cluster(2, lambda c: driver_killed(c, rows, work, usual / 2)))
    if "random_kills" not in facts:
        plain = Driver(generated, None).result()
        out = with_cluster(3, lambda c: random_kills(c, generated, args.kills, args.between, seed=0))
        note("random_kills", {**out, "threads": plain["digest"], "same_bytes": out["digests"] == [plain["digest"]]})
    same = {facts[name]["digest"] for name in ("threads", *(f"nodes_{n}" for n in NODES), "node_killed")} | {
        facts["driver_killed"]["again"]["digest"]
    }
    note("same_bytes", {"everywhere": len(same) == 1 and facts["random_kills"]["same_bytes"]})


def _median(runs: list[Facts]) -> Facts:
    """Return the medians of the times of equal trainings."""
    if len({run["digest"] for run in runs}) != 1:
        raise RuntimeError("trainings of the same rows gave different models")
    names = [name for name, value in runs[0].items() if name != "digest"]
    return {
        "runs": len(runs),
        "all_cpu_seconds": [run["cpu_seconds"] for run in runs],
        **{name: round(statistics.median(run[name] for run in runs), 2) for name in names},
    } | {"digest": runs[0]["digest"]}


def main() -> None:
    """Measure, or be a driver."""
    parser = make_parser(__doc__, "cluster.json", data="optional", resume=True)
    parser.add_argument("--repeats", type=int, default=3, help="trainings of which the median counts")
    parser.add_argument("--kills", type=int, default=20, help="nodes to kill at random")
    parser.add_argument("--between", type=float, default=8.0, help="about twice the seconds between kills")
    for name in ("--rows", "--address", "--session", "--checkpoint"):
        parser.add_argument(name, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--warm", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.drive:
        drive(args)
        return
    if args.data is None:
        parser.error("--data is needed, or the variable LONGTAIL_DATA")
    facts = start_facts(args, {}, "ray")
    with tempfile.TemporaryDirectory() as work:
        compare(args, facts, Path(work))


if __name__ == "__main__":
    main()
