"""Where blocks of work run: on threads of this process, or on the machines of a Ray cluster; the results are the same.

engine      `Engine`: share arrays, map work over tasks, gather results; the engine that is in use
local       threads, the default
ray_engine  a Ray cluster (the only file that knows of Ray)
checkpoint  results of finished tasks in a folder, so that a work that was broken off goes on from them
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
