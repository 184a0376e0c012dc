from .confidence import calibrated_confidence as calibrated_confidence
from .confidence import group_shares as group_shares
from .eagle import Eagle as Eagle
from .grouped_rows import propagate as propagate
from .likeness import ALIKE as ALIKE
from .likeness import group_likeness as group_likeness
from .miml import MIMLClassifier as MIMLClassifier
from .miml_network import DeepMIML as DeepMIML
