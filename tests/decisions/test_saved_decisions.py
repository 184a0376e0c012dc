"""A saved decision that was changed is refused in one sentence, or harmless."""

import numpy as np
import pytest
from tests.decisions.test_threshold_targets import rows
from tests.storage.hostile import hostile_parts

from longtail.decisions import DECISION, Decision, learn_decision
from longtail.storage import Part, check_part


@pytest.mark.parametrize("target", [("macro-f1", "label"), ("coverage@2", "global")])
def test_every_entry_of_a_saved_decision_may_be_changed(target):
    Y, top, counts = rows(n_rows=60)
    saved = learn_decision(Y, top, counts, 3000, target=target[0], per=target[1]).to_part()
    part = Part(saved.kind, saved.params, saved.arrays)
    refused = harmless = 0
    for change, changed, must_refuse in hostile_parts(part, DECISION):
        try:
            check_part(changed, DECISION)
        except ValueError as problem:
            assert type(problem).__name__ == "PartProblem", f"{change}: {problem!r}"
            refused += 1
            continue
        assert not must_refuse, change
        keep = Decision.from_part(changed).chosen(top)
        assert keep.shape == top.ids.shape and keep.dtype == np.bool_
        harmless += 1
    assert refused > 20 and harmless
