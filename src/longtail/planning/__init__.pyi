from .memory import available_memory as available_memory
from .memory import used_memory as used_memory
from .shape import Estimate as Estimate
from .shape import Shape as Shape
from .shape import shape_of as shape_of
