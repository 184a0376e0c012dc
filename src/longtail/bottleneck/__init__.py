"""Networks with a narrow output layer, and the DFT output layer that can produce every small label set.

In the order in which to read:

1. `dft`: the truncated real DFT matrix, and runs of labels along a circle.
2. `output_layers`: `BottleneckOutput`, the usual low-rank layer, and `DFTOutput`, labels on a circle; `dft_scores`
   computes the scores of the latter by FFT.
3. `label_order`: positions of the labels on the circle, labels that occur together side by side; `circular_tour` has
   the local moves.
4. `network`: an encoder with one of the output layers.
5. `train`: the training, and scores of many rows block by block.
6. `estimator`: `BottleneckClassifier`, the network with fit, predict, save and load.
7. `plan`: memory and time of a training, estimated beforehand.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
