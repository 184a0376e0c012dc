"""The schema of a saved decision."""

from __future__ import annotations

from longtail.decisions.purposes import GUARANTEES, PER, read_guarantee, read_target
from longtail.errors import ParameterError
from longtail.storage import (
    ArraySpec,
    Choice,
    CrossCheck,
    MapOf,
    ParamSpec,
    Part,
    PartSchema,
    Real,
    Sizes,
    SizeSpec,
    Text,
    Whole,
)

LARGEST = 1_000_000_000  # of a gain: far from where 32-bit floats end
MOST_CANDIDATES = 1000


def _unknown_purpose(part: Part, sizes: Sizes) -> str | None:
    """Return why the purpose is none that a decision can have."""
    purpose = part.params["purpose"]
    try:
        (read_guarantee if purpose.startswith(GUARANTEES) else read_target)(purpose)
    except ParameterError:
        return "'purpose' is no target, guarantee or goal"
    return None


DECISION = PartSchema(
    kind="decision.v1",
    about="which labels a row is given: those whose gain, scale × probability + shift, is not below 0, or the k best",
    params=(
        ParamSpec("purpose", Text(100), "what it was chosen for, such as `precision=0.8`, `missed=0.1`, `macro-f1@5`"),
        ParamSpec("per", Choice(PER), "which labels share a threshold"),
        ParamSpec("k", Whole(1, 1000, none=True), "labels of every row; null for all whose gain is not below 0"),
        ParamSpec("candidates", Whole(1, MOST_CANDIDATES), "labels of a row that are looked at, the likeliest"),
        ParamSpec("n_rows", Whole(), "rows that it was chosen on"),
        ParamSpec("scale", Real(-LARGEST, LARGEST), "scale of labels after those of the arrays"),
        ParamSpec("shift", Real(-LARGEST, LARGEST), "shift of labels after those of the arrays"),
        ParamSpec("reached", MapOf(Real(none=True), names=r"[a-z_0-9]{1,30}"), "what it came to on those rows"),
    ),
    sizes=(SizeSpec("n_gains", "labels that have a gain of their own"),),
    arrays=(
        ArraySpec("scales", "float32", ("n_gains",), "scale of every label", -LARGEST, LARGEST, finite="finite"),
        ArraySpec("shifts", "float32", ("n_gains",), "shift of every label", -LARGEST, LARGEST, finite="finite"),
    ),
    crosschecks=(CrossCheck("the purpose is a target, a guarantee or a goal at k", _unknown_purpose),),
)
