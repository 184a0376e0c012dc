from .memory import available_memory as available_memory
from .memory import used_memory as used_memory
from .shape import shape_of as shape_of
