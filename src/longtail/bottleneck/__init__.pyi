from .dft import cyclic_runs as cyclic_runs
from .dft import dft_matrix as dft_matrix
from .estimator import BottleneckClassifier as BottleneckClassifier
from .label_order import circle_order as circle_order
from .label_order import count_runs as count_runs
from .network import load_weights as load_weights
from .output_layers import BottleneckOutput as BottleneckOutput
from .output_layers import DFTOutput as DFTOutput
