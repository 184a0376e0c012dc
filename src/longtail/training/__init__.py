"""One training loop for torch models, its checkpoints, processes and devices.

Where to read:

settings        settings of a training, checked without torch
loop            the loop: epochs, batches, steps, validation, checkpoints
checkpoint      the state of a training, saved and resumed
process_group   one process per GPU under torchrun
shuffled_rows   training on shuffled rows with AdamW, for the networks of `bottleneck` and `groups`
device_matrix   rows and label sets on a device, in batches
torch_runtime   torch's devices, threads, precision and random numbers
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
