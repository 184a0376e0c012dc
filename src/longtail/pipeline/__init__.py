"""Text in, tags out: the Tagger, planning its training, loading saved models, and evaluating them on data."""

from longtail.pipeline.evaluation import compare_taggers, evaluate_tagger, evaluation_facts
from longtail.pipeline.imputing import Imputed, impute, impute_dataset
from longtail.pipeline.label_places import label_facts, page_splits
from longtail.pipeline.loading import load, load_tagger
from longtail.pipeline.planning import plan_training, refuse_without_memory
from longtail.pipeline.tagger import METHODS, Tag, Tagger
from longtail.pipeline.tree_facts import page_tree, tree_facts

__all__ = [
    "METHODS",
    "Imputed",
    "Tag",
    "Tagger",
    "compare_taggers",
    "evaluate_tagger",
    "evaluation_facts",
    "impute",
    "impute_dataset",
    "label_facts",
    "load",
    "load_tagger",
    "page_splits",
    "page_tree",
    "plan_training",
    "refuse_without_memory",
    "tree_facts",
]
