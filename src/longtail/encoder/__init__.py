"""Sentence encoders: loading them, making new ones, tokens, batches without padding.

Where to read:

runtime            `open_encoder`: a saved encoder, run by torch or by ONNX Runtime
features           `EncoderFeatures`: dense rows of texts, by an encoder on this machine; how one is found and loaded
split_package      encoders that come in several packages
universal          a multilingual encoder that needs numpy alone
text_encoder       `TextEncoder`, which can be trained: a pretrained one, or a small new one
new_encoder        sizes of a new encoder and their limits, checked without torch
tokens             texts as token numbers, in batches; tokenizers of new encoders
long_texts         texts longer than an encoder reads, in chunks
packed             transformers run without padding
gradient_caching   large batches with gradients, in the memory of small ones
weights            which weights a transformer has, known without torch
tokenizer          saved tokenizers, and texts cut by them; no torch
onnx_encoder       `OnnxEncoder`: a saved encoder without torch, float32 or int8
onnx_graph         the transformer as a graph of ONNX operators
onnx_messages      the few messages of the ONNX format that a graph needs
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
