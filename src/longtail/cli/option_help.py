"""Help texts of the options that are made from constructor parameters.

A key is a parameter or, where methods differ, `method.parameter`. Names, types and defaults stand in the signatures
alone; here is only what a parameter is for.
"""

from __future__ import annotations

HELP = {
    # Tagger
    "calibrate": "Share of rows held out to learn probabilities; 0 for none.",
    "random_state": "Seed; the same seed gives the same model.",
    # tree
    "branching": "Children per inner node.",
    "max_leaf": "Labels per leaf, at most.",
    "balanced": "Cut clusters into halves of equal size.",
    "beam": "Clusters kept per level.",
    "negatives": "Rows a node learns from: tfn, man or tfn+man.",
    "link": "How margins become scores: l1-hinge to l4-hinge, sigmoid or noop.",
    "path_weight": "How much the path to a leaf counts beside the leaf's own score.",
    "cost_sensitive": "Let the labels of a row share its weight.",
    "n_trees": "Trees in the ensemble.",
    "overlap": "Clusters a label may stand in, a number or auto.",
    "rounds": "With --overlap: times to find the clusters of labels and train again.",
    "merge": "With --overlap: what counts of a label in several leaves, max or mean.",
    "split_positives": "With --overlap: count a row's label in the one leaf that suits the row best.",
    # tree and ova
    "C": "Cost of errors against large weights.",
    "loss": "squared_hinge or logistic.",
    "positive_weight": "Cost of missing a label, times C.",
    "bias": "Value of the constant feature; 0 for no bias.",
    "tol": "A label is trained until its gradient is below this.",
    "max_iter": "Passes over the rows per label, at most.",
    "threshold": "Drop smaller weights.",
    "normalize": "Scale every row to length 1 first.",
    # dft
    "head": "Output layer: dft or bottleneck.",
    "k": "Size of the label sets that dft guarantees.",
    "width": "Trained dimensions of the output layer.",
    "order": "Order of labels on the circle: cooccurrence, or none to keep theirs.",
    "dft.encoder": "Layers before the output: mlp or linear.",
    "hidden": "Widths of these layers, separated by commas.",
    "dropout": "Share of outputs left out at each step.",
    "weight_decay": "Weight decay of the optimiser.",
    "valid": "Share of rows held out to decide when to stop; 0 for none.",
    # dft and prime
    "lr": "Learning rate.",
    "epochs": "Passes over the rows.",
    "dft.epochs": "Passes over the rows, at most.",
    "batch_size": "Rows in a batch.",
    "patience": "Stop after this many epochs without a better one.",
    "checkpoint": "Folder that keeps an unfinished training; the same command again goes on from there.",
    "checkpoint_minutes": "How often --checkpoint is written.",
    "device": "cpu or cuda.",
    # prime
    "encoder": "A sentence-transformers model, or none for a new small one.",
    "preset": "prime, prime-lite, dexa or ngame.",
    "max_length": "Tokens of a text that are read.",
    "n_positives": "Labels shown per text.",
    "n_negatives": "Hardest labels of the batch that a text is held against.",
    "sampling": "Which labels of a text are shown: propensity or uniform.",
    "margin": "Margin of the loss: LOW,HIGH for a dynamic one, or a number.",
    "loss_weights": "Weights of three parts of the loss, separated by commas.",
    "prototype": "What a label is compared by: network, sum or text.",
    "centroids": "Make the mean of a label's texts part of it.",
    "momentum": "How slowly these means move.",
    "n_free": "Free vectors shared by like labels.",
    "n_private": "Most frequent labels that have a free vector of their own.",
    "warm_start": "Begin with averages instead of random prototypes.",
    "classifier": "Also train a vector per label.",
    "tree": "Also train a label tree on words, and score by both.",
    "validation": "Share of rows to judge epochs by.",
    "accumulate": "Batches that make one step.",
    "mixed_precision": "Use bfloat16 on a GPU.",
    "compile": "Compile the encoder.",
    "index": "Search of labels: exact, hnsw or ivf.",
    "precision": "Of label vectors: float32, float16 or int8.",
    # texts
    "ngrams": "Longest run of words that is a feature, or SHORTEST,LONGEST.",
    "analyzer": "word, or char_wb for runs of letters inside words.",
    "min_df": "Leave out words in fewer texts than this; a share if it has a point.",
    "max_df": "Leave out words in more texts than this; a share if it has a point.",
    "max_features": "Keep this many words, the most frequent.",
    "sublinear_tf": "Count a word that is repeated less each time.",
    "lowercase": "Read capital letters as small ones.",
    "strip_accents": "Read letters without their accents.",
    "stop_words": "Words to leave out, separated by commas.",
}

# what a default of None stands for
MEANING_OF_NONE = {
    "random_state": "0",
    "tree.beam": "10; 7 with --overlap",
    "tree.C": "1, less where there are many short rows",
    "tree.path_weight": "1 with --negatives tfn, else 0.3",
    "device": "a GPU if there is one",
    "prime.batch_size": "the preset's, less for small data",
    "prime.lr": "the preset's",
    "n_positives": "the preset's",
    "n_negatives": "the preset's",
    "sampling": "the preset's",
    "margin": "the preset's",
    "loss_weights": "the preset's",
    "prototype": "the preset's",
    "centroids": "the preset's",
    "n_free": "about half the labels",
    "n_private": "up to 1,000",
    "max_features": "all",
}
