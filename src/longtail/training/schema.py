"""The schemas of saved trainings: records of epochs, and checkpoints of unfinished trainings."""

from __future__ import annotations

from longtail.storage import ArraySpec, Flag, FolderSchema, ListOf, ParamSpec, PartSchema, Real, Record, Whole

_LOSS = Real(none=True)
EPOCH = Record(
    {
        "epoch": Whole(0),
        "loss": Real(),
        "valid_loss": _LOSS,
        "valid_precision": _LOSS,
        "best": Flag(none=True),
        "seconds": Real(0),
        "p@1": _LOSS,
    },
    frozenset({"valid_loss", "valid_precision", "best", "seconds", "p@1"}),
)
HISTORY = ListOf(EPOCH, longest=1_000_000)
ANY = "bool float16 float32 float64 int8 int16 int32 int64 uint8"

CHECKPOINT = PartSchema(
    kind="training.v2",
    about="the state of an unfinished training; its arrays are compared with the network that goes on",
    params=(
        ParamSpec("epoch", Whole(), "finished epochs"),
        ParamSpec("step", Whole(), "finished steps of the epoch after them"),
        ParamSpec("best_loss", _LOSS, "lowest loss on the held-out rows"),
        ParamSpec("epochs_since_best", Whole(), "epochs after that one"),
        ParamSpec("history", HISTORY, "records of the finished epochs"),
        ParamSpec("planned", Whole(1), "epochs that were planned to fit into some minutes", optional=True),
    ),
    arrays=(
        ArraySpec("model.*", ANY, None, "weights of the network"),
        ArraySpec("best.*", ANY, None, "weights of the best epoch"),
        ArraySpec("extra.*", ANY, None, "further state"),
        ArraySpec("optimizer.*", ANY, None, "state of the optimisers"),
        ArraySpec("loss_sum", "float32 float64", None, "sum of the losses of the current epoch"),
        ArraySpec("random.cpu", "uint8", ("*",), "state of torch's generator"),
        ArraySpec("random.cuda", "uint8", ("*",), "the same of a GPU", optional=True),
    ),
)
CHECKPOINT_FOLDER = FolderSchema(kind=CHECKPOINT.kind, parts={"training": {CHECKPOINT.kind: CHECKPOINT}})
