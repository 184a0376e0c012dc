"""Tasks on a Ray cluster: arrays are put once per node, read without a copy; a task lost with its node is repeated.

Only names of functions, numbers and arrays travel. Results come back as arrays.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import numpy as np

from longtail._version import __version__
from longtail.engine.checkpoint import Checkpoint
from longtail.engine.engine import Arrays, Engine, Run, Shared
from longtail.errors import DataError, LongtailError, MissingExtraError, ParameterError

REPEATS = 30  # times that a task is begun again after its machine or process was lost
SECONDS_TO_CONNECT = 5
SHARED_MEMORY = Path("/dev/shm")
ON_THIS_MACHINE = "local"


class RayEngine(Engine):
    """Runs tasks on a Ray cluster, one per core.

    Parameters
    ----------
    address : str or None, default=None
        Where the cluster is: "host:port", "auto" for the one this machine belongs to, or "local" for one of this
        machine alone, begun now and ended by `close`. None for the one already connected to, else "local".
    n_jobs : int or None, default=None
        Cores of a cluster that is begun now; None for all.
    checkpoint : Checkpoint or None, default=None
        Where the results of finished tasks are kept.
    """

    def __init__(
        self, address: str | None = None, *, n_jobs: int | None = None, checkpoint: Checkpoint | None = None
    ) -> None:
        try:
            import ray
        except ImportError:
            raise MissingExtraError("the engine 'ray'", "ray", "ray") from None
        self._ray, self.checkpoint, self._begun = ray, checkpoint, False
        if not ray.is_initialized():
            self._connect(address, n_jobs)
        self._remote = ray.remote(num_cpus=1, max_retries=REPEATS)(_run_task)
        try:
            self._check_nodes()
        except BaseException:
            self.close()
            raise

    def _connect(self, address: str | None, n_jobs: int | None) -> None:
        """Connect to a cluster, or begin one."""
        address = ON_THIS_MACHINE if address is None else address
        if not isinstance(address, str):
            raise ParameterError(name="address", allowed="'host:port', 'auto' or 'local'", got=address)
        if address not in (ON_THIS_MACHINE, "auto"):
            _check_address(address)
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address == ON_THIS_MACHINE:
            quiet |= {"include_dashboard": False, "num_cpus": n_jobs}
        try:
            self._ray.init(address=address, **quiet)
        except (ConnectionError, ValueError, RuntimeError, OSError) as error:
            why = " ".join(str(error).split()).rstrip(".")
            raise LongtailError(
                f"no Ray cluster can be reached at {address!r}: {why:.200}; {_tokens_told()}."
            ) from error
        self._begun = True

    def _check_nodes(self) -> None:
        """Refuse a cluster without cores, or with a node whose longtail is another or none."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        ask = self._ray.remote(num_cpus=0, max_retries=3)(_version_here)
        asked = {}
        for node in self._nodes():
            if node["Resources"].get("CPU", 0) >= 1:
                where = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                asked[node["NodeManagerAddress"], node["NodeID"]] = ask.options(scheduling_strategy=where).remote()
        if not asked:
            raise LongtailError("the Ray cluster has no node with a free core.")
        for (host, _), answer in asked.items():
            try:
                version = self._ray.get(answer)
            except self._ray.exceptions.RayTaskError as error:
                why = type(error.cause).__name__
                raise LongtailError(
                    f"the node {host} cannot import longtail ({why}); install longtail {__version__} there."
                ) from error
            except self._ray.exceptions.RayError:  # the node has gone meanwhile
                continue
            if version != __version__:
                raise LongtailError(f"the node {host} has longtail {version}; install {__version__}, as here.")

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"]]

    @property
    def workers(self) -> int:
        return max(1, int(sum(node["Resources"].get("CPU", 0) for node in self._nodes())))

    def share(self, arrays: Arrays) -> Shared:
        wanted = sum(array.nbytes for array in arrays.values())
        for node in self._nodes():
            room = int(node["Resources"].get("object_store_memory", 0))
            if node["Resources"].get("CPU", 0) >= 1 and wanted > room:
                raise _too_little(wanted, f"the node {node['NodeManagerAddress']} has {_size(room)} for them")
        if SHARED_MEMORY.is_dir() and wanted > (free := shutil.disk_usage(SHARED_MEMORY).free):
            raise _too_little(wanted, f"{SHARED_MEMORY} has {_size(free)} left")
        try:
            return Shared(arrays, self._ray.put({name: np.asarray(array) for name, array in arrays.items()}))
        except self._ray.exceptions.ObjectStoreFullError as error:
            raise _too_little(wanted, "the shared memory is full") from error

    def _do(self, run: Run) -> None:
        ray, lost = self._ray, self._ray.exceptions
        for function in (run.work.prepare, run.work.run):
            if function.__module__ == "__main__":
                allowed, got = "functions of a module that every node can import", function.__qualname__
                raise ParameterError("work must be {allowed}; got {got!r} of this program.", allowed=allowed, got=got)
        names = [part for f in (run.work.prepare, run.work.run) for part in (f.__module__, f.__qualname__)]
        handles = [self.share(one.arrays).handle if one.handle is None else one.handle for one in run.shared]
        prepared_of = json.dumps([names, run.settings, [handle.hex() for handle in handles]])
        call = hashlib.blake2b(prepared_of.encode(), digest_size=20).hexdigest()

        def begin(i: int) -> Any:
            return self._remote.remote(call, names, run.settings, run.tasks[i], *handles)

        waiting = {begin(i): i for i in run.order}
        begun = dict.fromkeys(run.order, 1)
        try:
            while waiting:
                done, _ = ray.wait(list(waiting), num_returns=1)
                for answer in done:
                    i = waiting.pop(answer)
                    try:
                        result = ray.get(answer)
                    except lost.RayTaskError as error:
                        raise _cause(error) from None
                    except lost.RayError as error:  # with its machine, or for want of memory there
                        if begun[i] > REPEATS:
                            why = " ".join(str(error).split())
                            raise LongtailError(f"a task was lost {begun[i]} times: {why:.200}") from error
                        begun[i] += 1
                        waiting[begin(i)] = i
                        continue
                    run.keep(i, result)
                    run.told(i)
        except BaseException:
            if run.stop is not None:
                run.stop()
            for answer in waiting:
                with contextlib.suppress(Exception):
                    ray.cancel(answer, force=False)
            raise

    def close(self) -> None:
        if self._begun and self._ray.is_initialized():
            self._ray.shutdown()
            self._begun = False


_PREPARED: dict[str, Any] = {}  # for the last tasks that this process did, by all that it depends on


def _run_task(call: str, names: list[str], settings: dict[str, Any], task: Any, *shared: Arrays) -> Arrays:
    """Do one task in a process of the cluster."""
    prepare, run = (getattr(importlib.import_module(names[i]), names[i + 1]) for i in (0, 2))
    try:
        if call not in _PREPARED:
            _PREPARED.clear()
            _PREPARED[call] = prepare({name: a for arrays in shared for name, a in arrays.items()}, settings)
        return run(_PREPARED[call], task)
    except FileNotFoundError as error:
        raise DataError(
            f"the node {socket.gethostname()} does not have {error.filename}; "
            "put it there, or on a disk that all nodes share."
        ) from None


def _version_here() -> str:
    """Return the version of longtail that a node has; it is imported by its name there."""
    version: str = importlib.import_module("longtail._version").__version__
    return version


def _check_address(address: str) -> None:
    """Refuse an address at which nobody listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or int(port) > 65535:
        raise ParameterError(name="address", allowed="'host:port', 'auto' or 'local'", got=address)
    try:
        socket.create_connection((host, int(port)), SECONDS_TO_CONNECT).close()
    except OSError as error:
        why = error.strerror or str(error)
        raise LongtailError(f"no Ray cluster can be reached at {address!r}: {why}.") from error


def _tokens_told() -> str:
    """Return what to do about the tokens that a cluster may ask for: as a rule, those of Ray 2.60 do."""
    if os.environ.get("RAY_AUTH_MODE") == "token":
        return "if it asks for a token, it must be the same as there"
    return "if the cluster asks for a token, set RAY_AUTH_MODE=token here, with its token in ~/.ray/auth_token"


def _cause(error: Any) -> BaseException:
    """Return what went wrong in a task; an error of ours as it is."""
    cause = error.cause
    return cause if isinstance(cause, Exception) else LongtailError(str(error))


def _too_little(wanted: int, why: str) -> LongtailError:
    return LongtailError(f"the rows take {_size(wanted)} of shared memory on every node; {why}.")


def _size(n_bytes: int) -> str:
    """Return a number of bytes for people.

    >>> _size(3_500_000), _size(2 << 30)
    ('3.5 MB', '2.1 GB')
    """
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.1f} MB"
