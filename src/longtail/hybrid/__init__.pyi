from .combine import EXPERTS as EXPERTS
from .combine import Combination as Combination
from .estimator import Hybrid as Hybrid
from .schema import HYBRID_SCHEMA as HYBRID_SCHEMA
