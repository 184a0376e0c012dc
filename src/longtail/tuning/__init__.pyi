from .search import SEARCHED as SEARCHED
from .search import Tuning as Tuning
from .search import tune as tune
from .space import DEFAULT_SPACES as DEFAULT_SPACES
from .space import parse_values as parse_values
