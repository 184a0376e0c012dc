from .estimator import NameMatches as NameMatches
from .schema import NAME_MATCHES_SCHEMA as NAME_MATCHES_SCHEMA
