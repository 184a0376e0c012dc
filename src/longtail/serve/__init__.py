"""`longtail serve`: models behind HTTP, for people with a browser and for programs that speak one of four protocols.

Where to read, in the order in which a request passes through:

settings        everything that can be set: models, addresses, tokens, limits
run             the process: listening socket, worker processes, signals
guards          what every request passes first: sizes, hosts, origins, rates; the access log
operations      one table of routes, which says who may call what, and of which the OpenAPI document is made
tokens          who is calling: bearer tokens, sessions of a browser, roles
requests        reading and checking bodies and parameters
longtail_api    the routes under `/v1/longtail`
server          `Server`: models, tokens, metrics, settings; suggests labels for texts
model_shelf     the models: loaded, watched on disk, swapped without dropping a request
micro_batches   requests that arrive together are scored together
suggesting      labels of texts, as every protocol needs them
problems        refusals, as `application/problem+json`
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
