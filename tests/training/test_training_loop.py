"""The training loop: it stops when it should, goes on where it was killed, and ends with the same weights."""

import numpy as np
import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from longtail.errors import ModelError
from longtail.storage import Part, save_folder
from longtail.training.checkpoint import Checkpoint
from longtail.training.loop import train, warmup_and_decay
from longtail.training.settings import RowTraining, Training
from longtail.training.shuffled_rows import train_on_rows

N_ROWS = 50


class Killed(BaseException):
    """Stands for a process that ends in the middle of a training."""


def make_model():
    torch.manual_seed(7)
    body = torch.nn.EmbeddingBag(30, 8, mode="sum", sparse=True)
    return torch.nn.Sequential(body, torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(8, 3))


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    ids = torch.from_numpy(rng.integers(0, 30, (N_ROWS, 4)))
    return ids, torch.from_numpy(rng.normal(size=(N_ROWS, 3)).astype(np.float32))


def run(task, *, model=None, stop_after=None, how=None, judge=None, **settings):
    """Train; `stop_after` ends it at the start of a batch, as a kill would."""
    model = make_model() if model is None else model
    ids, targets = task
    calls = []

    def loss(rows):
        calls.append(rows)
        if stop_after is not None and len(calls) > stop_after:
            raise Killed
        return torch.nn.functional.mse_loss(model(ids[rows]), targets[rows])

    how = RowTraining(**{"epochs": 6, "batch_size": 8, "lr": 0.01, "seed": 3, **settings})
    history = train_on_rows(model, loss, N_ROWS, how, validate=judge)
    return model, history, calls


def weights_of(model):
    return b"".join(value.numpy().tobytes() for value in model.state_dict().values())


def falling_then_rising(losses):
    it = iter(losses)
    return lambda: next(it)


def test_loss_falls_and_every_row_is_seen_once_an_epoch(task):
    _, history, calls = run(task, epochs=4)
    assert history[-1]["loss"] < history[0]["loss"]
    first = torch.cat(calls[:7])
    assert sorted(first.tolist()) == list(range(N_ROWS))
    assert torch.cat(calls[7:14]).tolist() != first.tolist()


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(task):
    assert weights_of(run(task)[0]) == weights_of(run(task)[0])
    assert weights_of(run(task)[0]) != weights_of(run(task, seed=4)[0])


def test_training_leaves_the_random_numbers_of_others_alone(task):
    torch.manual_seed(1)
    expected = torch.rand(3)
    model = make_model()
    torch.manual_seed(1)
    run(task, model=model)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("kill_at", [[1], [5, 3], [7], [20, 9, 9]])
def test_killed_and_resumed_ends_with_the_same_weights(task, tmp_path, kill_at):
    whole, history, _ = run(task)
    for stop_after in kill_at:
        with pytest.raises(Killed):
            run(task, stop_after=stop_after, checkpoint=tmp_path, checkpoint_minutes=0)
        assert len(list(tmp_path.iterdir())) == 1
    resumed, again, calls = run(task, checkpoint=tmp_path, checkpoint_minutes=0)
    assert weights_of(resumed) == weights_of(whole)
    assert again == history
    assert len(calls) < 6 * 7
    assert not tmp_path.exists()  # done: nothing is left to resume


def test_the_best_weights_and_patience_survive_a_kill(task, tmp_path):
    losses = [3.0, 1.0, 2.0, 2.5, 2.6, 0.1]
    whole, history, _ = run(task, judge=falling_then_rising(losses), patience=3)
    with pytest.raises(Killed):
        judge = falling_then_rising(losses)
        run(task, judge=judge, patience=3, stop_after=25, checkpoint=tmp_path, checkpoint_minutes=0)
    resumed, again, _ = run(task, judge=judge, patience=3, checkpoint=tmp_path, checkpoint_minutes=0)
    assert weights_of(resumed) == weights_of(whole) and again == history


def test_it_stops_early_and_keeps_the_best_epoch(task):
    model, history, _ = run(task, judge=falling_then_rising([3.0, 1.0, 2.0, 2.5, 0.5, 0.4]), patience=2)
    assert [record["valid_loss"] for record in history] == [3.0, 1.0, 2.0, 2.5]
    assert [record["best"] for record in history] == [True, True, False, False]
    assert weights_of(model) == weights_of(run(task, epochs=2)[0])


def test_another_training_in_the_same_folder_has_its_own_checkpoint(task, tmp_path):
    with pytest.raises(Killed):
        run(task, stop_after=9, checkpoint=tmp_path, checkpoint_minutes=0)
    other, _, calls = run(task, lr=0.02, checkpoint=tmp_path, checkpoint_minutes=0)
    assert weights_of(other) == weights_of(run(task, lr=0.02)[0]) and len(calls) == 6 * 7
    assert len(list(tmp_path.iterdir())) == 1  # the killed one waits


def test_a_keyboard_interrupt_leaves_the_last_checkpoint(task, tmp_path):
    model, (ids, targets) = make_model(), task

    def loss(rows):
        loss.calls += 1
        if loss.calls == 4:
            raise KeyboardInterrupt
        return torch.nn.functional.mse_loss(model(ids[rows]), targets[rows])

    loss.calls = 0
    how = RowTraining(epochs=6, batch_size=8, lr=0.01, seed=3, checkpoint=tmp_path, checkpoint_minutes=0)
    with pytest.raises(KeyboardInterrupt):
        train_on_rows(model, loss, N_ROWS, how)
    resumed, _, calls = run(task, checkpoint=tmp_path, checkpoint_minutes=0)
    assert weights_of(resumed) == weights_of(run(task)[0]) and len(calls) == 6 * 7 - 3


def test_a_damaged_checkpoint_is_named(task, tmp_path):
    with pytest.raises(Killed):
        run(task, stop_after=3, checkpoint=tmp_path, checkpoint_minutes=0)
    file = next(tmp_path.rglob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:-4] + b"oops")
    with pytest.raises(ModelError, match="is damaged"):
        run(task, checkpoint=tmp_path, checkpoint_minutes=0)


def test_checkpoints_hold_no_pickle(task, tmp_path):
    with pytest.raises(Killed):
        run(task, stop_after=3, checkpoint=tmp_path, checkpoint_minutes=0)
    assert {file.suffix for file in tmp_path.rglob("*") if file.is_file()} == {".safetensors", ".json"}


def test_accumulated_batches_are_one_step():
    """Without dropout, two batches of four accumulated are one batch of eight."""
    X, y = torch.arange(16.0).reshape(8, 2) / 16, torch.ones(8, 1)
    found = []
    for size, accumulate in ((8, 1), (4, 2), (2, 4)):
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 1)

        def loss(rows, model=model):
            return torch.nn.functional.mse_loss(model(X[rows]), y[rows])

        train_on_rows(model, loss, 8, RowTraining(epochs=5, batch_size=size, accumulate=accumulate, lr=0.1))
        found.append(model.weight.detach().numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-5)


def test_progress_tells_loss_and_validation_loss(task):
    model, (ids, targets) = make_model(), task
    batches, epochs = [], []
    train_on_rows(
        model,
        lambda rows: torch.nn.functional.mse_loss(model(ids[rows]), targets[rows]),
        N_ROWS,
        RowTraining(epochs=2, batch_size=25),
        validate=lambda: 1.0,
        on_step=lambda done, total: batches.append((done, total)),
        on_epoch=epochs.append,
    )
    assert batches == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [(e.epoch, e.valid_loss, e.best) for e in epochs] == [(1, 1.0, True), (2, 1.0, False)]
    assert all(e.loss > 0 and e.seconds >= 0 for e in epochs)


def test_a_loss_that_is_not_finite_ends_the_training():
    model = torch.nn.Linear(1, 1)
    with pytest.raises(ModelError, match="diverged: the loss is not finite in epoch 1; use a smaller lr"):
        train_on_rows(model, lambda rows: model(torch.ones(len(rows), 1)).mean() * torch.nan, 8, RowTraining(epochs=2))


def test_weights_that_are_not_finite_end_the_training():
    model = torch.nn.Linear(1, 1)
    adam = torch.optim.SGD(model.parameters(), lr=1e30)
    with pytest.raises(ModelError, match="diverged: the weights are not finite in epoch 1; use a smaller lr"):
        train(model, [adam], 1, lambda _: [None], lambda _: 1e30 * model(torch.ones(1, 1)).mean(), Training(epochs=2))


def test_a_checkpoint_of_another_version_is_refused(task, tmp_path):
    save_folder(tmp_path / "0123", "training.v1", {"training": Part("training.v1", {"epoch": 1}, {})})
    with pytest.raises(ModelError, match=r"0123 is a checkpoint of another version \(training.v1, not training.v2\)"):
        run(task, checkpoint=tmp_path)


def moving_mean(how, folder=None, stop_after=None):
    """Train with every hook: `seen` follows the batches, and every epoch begins by writing into it."""
    model = make_model()
    seen, rates, began = torch.zeros(3), [], []
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss(batch):
        rates.append(sgd.param_groups[0]["lr"])
        if stop_after is not None and len(rates) > stop_after:
            raise Killed
        seen.mul_(0.9).add_(0.1 * batch.float().mean())
        return ((model(batch[None]) - seen) ** 2).mean()

    def batches(epoch):
        yield from torch.arange(30).roll(epoch).view(10, 3)

    def begin(epoch):
        began.append(epoch)
        seen[0] = epoch

    checkpoint = None if folder is None else Checkpoint(folder, "same", model, minutes=0)
    state = train(
        model,
        [sgd],
        10,
        batches,
        loss,
        how,
        begin_epoch=begin,
        learning_rate=warmup_and_decay(0.1, 1),
        extra={"seen": seen},
        checkpoint=checkpoint,
    )
    return weights_of(model), seen.tolist(), [record.loss for record in state.history], rates, began


@pytest.mark.parametrize("accumulate", [1, 3])
def test_all_that_changes_goes_on_where_it_was_killed(tmp_path, accumulate):
    how = Training(epochs=3, accumulate=accumulate, seed=5)
    whole = moving_mean(how)
    with pytest.raises(Killed):
        moving_mean(how, tmp_path, stop_after=14)
    resumed = moving_mean(how, tmp_path)
    assert resumed[:3] == whole[:3]
    assert resumed[3] == whole[3][-len(resumed[3]) :] and len(resumed[3]) < 30
    assert whole[4] == [0, 1, 2] and resumed[4] == [2]  # the interrupted epoch is not begun again


def test_the_learning_rate_rises_then_falls():
    rates = moving_mean(Training(epochs=3))[3]
    assert rates[0] < rates[1] == max(rates) and rates[1:] == sorted(rates[1:], reverse=True)
    assert rates[-1] == pytest.approx(0.1 / 29)
