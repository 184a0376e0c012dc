"""An engine for tests that behaves as another process would: what travels is copied, read-only, and in any order."""

import copy
import json

from longtail.engine import Engine


class OtherProcess(Engine):
    """Runs tasks last first, each as if in a new process; ends with an error after some, if told so."""

    def __init__(self, checkpoint=None, fails_after=None):
        self.checkpoint, self.fails_after, self.done = checkpoint, fails_after, 0

    @property
    def workers(self):
        return 3

    def _do(self, run):
        for i in reversed(run.order):
            if self.done == self.fails_after:
                raise KeyboardInterrupt
            arrays = {name: array.copy() for name, array in run.arrays.items()}
            for array in arrays.values():
                array.flags.writeable = False
            settings, task = json.loads(json.dumps(run.settings)), copy.deepcopy(run.tasks[i])
            result = run.work.run(run.work.prepare(arrays, settings), task)
            for array in result.values():
                array.flags.writeable = False
            self.done += 1
            run.keep(i, result)
            run.told(i)
