"""The routes under `/v1/longtail/review`: rows to review, decisions, the dashboard, guidelines, and a new model."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import multiprocessing.process
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute

from longtail.errors import LongtailError, one_line
from longtail.pipeline import Tagger, label_ids, split_known
from longtail.review import (
    MOST_AT_ONCE,
    ORDERS,
    PARTS,
    Decision,
    Item,
    NotThere,
    Queued,
    ReviewBusy,
    ReviewStore,
    add_rows,
    agreement_facts,
    check_belongs,
    export_records,
    held_by_others,
    is_updating,
    items_of_jsonl,
    json_line,
    next_items,
    put_back,
    review_facts,
    suggest_for,
    suggest_items,
    update_quietly,
    update_state,
    updating,
)
from longtail.serve.guards import watch_of
from longtail.serve.operations import Described, Gives, Operation, Takes
from longtail.serve.problems import Busy, Problem, json_answer, without_folders
from longtail.serve.requests import Fields, query, query_integer, read_body, read_json
from longtail.serve.server import Server
from longtail.serve.tokens import require

LOG = logging.getLogger("longtail.serve")
ROOT = "/v1/longtail/review"
T = TypeVar("T")
CHUNK = 1 << 16  # bytes of an export that are sent at once
TEXT = {"type": "string"}
OBJECT = {"type": "object"}
QUEUE: dict[str, dict[str, Any]] = {
    "model": TEXT,
    "order": {"type": "string", "enum": list(ORDERS)},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_AT_ONCE},
}
DECISION = {
    "type": "object",
    "properties": {
        "item": TEXT,
        "label": TEXT,
        "verdict": {"type": "string", "enum": ["accept", "reject", "add"]},
        "note": TEXT,
    },
    "required": ["item", "label", "verdict"],
}
GUIDELINE = {"type": "object", "properties": {"text": TEXT}, "required": ["text"]}


class Reviews:
    """The review file of a server, and the model that suggests labels for its rows: the first one."""

    server: Server
    store: ReviewStore

    def __init__(self, server: Server, store: ReviewStore) -> None:
        self.server, self.store = server, store
        self.model: str = server.models.default
        self.importing: asyncio.Lock = asyncio.Lock()
        self._suggesting = threading.Lock()
        self._suggested: object = None  # the model and the rows for which everything is suggested
        self._updating: multiprocessing.process.BaseProcess | None = None
        self._facts: dict[str, tuple[object, Any]] = {}

    async def do(self, work: Callable[[], T], *, heavy: bool = False) -> T:
        """Return what work on the review file returns, done on another thread; refusals get their status."""
        try:
            return await (self.server.run(work) if heavy else run_in_threadpool(work))
        except NotThere as error:
            raise Problem(404, str(error)) from None
        except ReviewBusy as error:
            raise Busy(str(error)) from None

    def close(self) -> None:
        """End an update that is running, which leaves the old model or the new one, and close the file."""
        if self._updating is not None and self._updating.is_alive():
            self._updating.terminate()
        self.store.close()

    def check_model(self, id: str | None) -> None:
        """Refuse to review for another model than the one whose suggestions are reviewed."""
        if id is not None and id != self.model:
            self.server.models.get(id)
            raise Problem(422, f"the rows are reviewed for the model {self.model!r}; got {id!r:.100}.")

    def suggest(self) -> None:
        """Let the model suggest labels for rows that have none of it yet, on one thread at a time."""
        served = self.server.models.get(self.model)
        state = (served.digest, self._last_row())
        if state == self._suggested or not self._suggesting.acquire(blocking=False):
            return

        def work() -> None:
            try:
                suggest_items(self.store, served.tagger, served.digest)
                self._suggested = state
            except LongtailError as error:
                LOG.warning("suggestions for rows under review failed: %s", one_line(str(error)))
            finally:
                self._suggesting.release()

        threading.Thread(target=work, name="suggesting", daemon=True).start()

    def _last_row(self) -> int:
        with self.store.reading() as db:
            return int(db.execute("SELECT COALESCE(MAX(number), 0) FROM items").fetchone()[0])

    def next_items(self, reviewer: str, order: str, limit: int) -> tuple[list[Queued], int]:
        """Return the next rows for a person; those that no model has seen yet get suggestions first."""
        self.suggest()
        rows, left = next_items(self.store, reviewer, order, limit)
        unseen = [row.item.number for row in rows if not row.item.digest]
        if unseen:
            served = self.server.models.get(self.model)
            suggest_for(self.store, served.tagger, served.digest, unseen)
            rows, left = next_items(self.store, reviewer, order, limit)
        return rows, left

    def known_label(self, label: str) -> str:
        """Return a label as the model calls it; one that its vocabulary lacks is refused."""
        tagger: Tagger = self.server.models.get(self.model).tagger
        meant, unknown = split_known(tagger.labels_, [label], tagger.vocabulary_)
        if not unknown or tagger.vocabulary_ is None:
            return meant[0] if meant else label
        (id,) = label_ids([label], tagger.vocabulary_)
        if id not in tagger.vocabulary_:
            raise Problem(422, f"{label!r:.200} is neither a label of the model nor in its vocabulary.")
        return id

    def fresh(self, name: str, make: Callable[[ReviewStore], Any]) -> Any:
        """Return facts about all decisions, made again only where something was decided since."""
        with self.store.reading() as db:
            state = db.execute("SELECT (SELECT MAX(number) FROM decisions), (SELECT COUNT(*) FROM items)").fetchone()
        if self._facts.get(name, (None, None))[0] != state:
            self._facts[name] = (state, make(self.store))
        return self._facts[name][1]

    def start_update(self) -> dict[str, Any]:
        """Begin to make a new model from the reviews, in a process of its own that is less urgent than answering."""
        if is_updating(self.store):
            raise Problem(409, "an update is running already.")
        folder = self.server.settings.models[self.model]
        if self.server.settings.key is not None:
            raise Problem(
                409,
                f"{folder.name} must be signed, and a new model is not: update a copy of it, sign that and replace it.",
            )
        own = multiprocessing.get_context("spawn")
        self._updating = own.Process(target=update_quietly, args=(self.store.path, folder), daemon=True)
        self._updating.start()
        return {"state": "running", "stage": "Starting", "done": 0, "total": 1, "comparison": None, "swapped": False}

    def update_facts(self) -> dict[str, Any]:
        """Return how far an update is, or what the last one came to."""
        facts: dict[str, Any] = {"stage": "", "done": 0, "total": 0, "comparison": None, **update_state(self.store)}
        child = self._updating
        if child is not None and child.is_alive() and facts["state"] != "running":
            facts |= {"state": "running", "stage": "Starting", "sentence": "The update is running."}
        if "backup" in facts:
            facts["backup"] = Path(facts["backup"]).name
        facts["sentence"] = without_folders(facts["sentence"], self.server.settings.paths())
        return facts


def routes(server: Server) -> list[BaseRoute]:
    """Return the routes; none where the server has no review file."""
    if server.reviews is None:
        return []
    reviews = Reviews(server, server.reviews)
    server.at_end(reviews.close)
    check_belongs(reviews.store, server.models.get(reviews.model).tagger)
    reviews.suggest()
    return [*_row_routes(reviews), *_decision_routes(reviews), *_fact_routes(reviews), *_update_routes(reviews)]


def _row_routes(reviews: Reviews) -> list[BaseRoute]:
    """Return the routes of rows: the queue, single ones, import and export."""
    store = reviews.store

    async def review_queue(request: Request) -> Response:
        reviewer, asked = require(request, "review"), query(request, tuple(QUEUE))
        reviews.check_model(asked.get("model"))
        limit = query_integer(asked, "limit", 1, low=1, high=MOST_AT_ONCE)
        rows, left = await reviews.do(lambda: reviews.next_items(reviewer, asked.get("order", "mixed"), limit))
        held = await reviews.do(lambda: held_by_others(store, reviewer))
        return json_answer({"items": [queued_facts(row) for row in rows], "left": left, "with_others": min(held, left)})

    async def review_item(request: Request) -> Response:
        reviewer, id = require(request, "review"), request.path_params["item"]
        item, decided = await reviews.do(lambda: (store.item(id), store.decisions(id, reviewer)))
        return json_answer({**item_facts(item), "decided": [decision_facts(one) for one in decided]})

    async def import_items(request: Request) -> Response:
        if reviews.importing.locked():  # a large one is held in memory
            raise Busy("rows are being added by somebody else; try again soon.")
        watch_of(request.scope).body_limit = reviews.server.settings.upload_bytes
        async with reviews.importing:
            return json_answer(await imported(await read_body(request)), 201)

    async def imported(raw: bytes) -> dict[str, int]:
        def work() -> tuple[int, int]:
            items = items_of_jsonl(raw)
            vocabulary = reviews.server.models.get(reviews.model).tagger.vocabulary_
            if vocabulary is not None:
                items = [item._replace(labels=label_ids(item.labels, vocabulary)) for item in items]
            counts = add_rows(store, items, "the body")
            reviews.suggest()
            return counts

        added, known = await reviews.do(work)
        return {"added": added, "known": known}

    async def export_items(request: Request) -> Response:
        part = query(request, ("part",)).get("part", "training")
        if part not in PARTS:
            raise Problem(422, f"part must be one of {', '.join(PARTS)}; got {part[:80]!r}.")
        headers = {"Content-Disposition": 'attachment; filename="reviewed.jsonl"'}
        return StreamingResponse(_chunks(store, part), headers=headers, media_type="application/x-ndjson")

    lines = Takes({"type": "string"}, "application/x-ndjson")
    part = {"part": {"type": "string", "enum": list(PARTS)}}
    exported = Gives({"type": "string"}, media_type="application/x-ndjson")
    found = Described("The next rows to review.", "review", QUEUE)
    return [
        Operation("GET", f"{ROOT}/queue", review_queue, found),
        Operation("POST", f"{ROOT}/items", import_items, Described("Add rows.", "review", takes=[lines])),
        Operation("GET", f"{ROOT}/items/{{item:path}}", review_item, Described("One row.", "review", errors=[404])),
        Operation(
            "GET", f"{ROOT}/export", export_items, Described("Finished rows as JSONL.", "review", part, gives=exported)
        ),
    ]


def _chunks(store: ReviewStore, part: str) -> Iterator[bytes]:
    """Yield an export in pieces of some size."""
    buffer = bytearray()
    for record in export_records(store, part):
        buffer += json_line(record)
        if len(buffer) >= CHUNK:
            yield bytes(buffer)
            buffer.clear()
    yield bytes(buffer)


def _decision_routes(reviews: Reviews) -> list[BaseRoute]:
    """Return the routes by which people decide; an answer comes when the decision is on the disk."""
    store = reviews.store

    async def decide(request: Request) -> Response:
        reviewer, fields = require(request, "review"), Fields(await read_json(request))
        item, label = (fields.string(name, most=2000, needed=True) or "" for name in ("item", "label"))
        verdict, note = fields.string("verdict", most=20, needed=True) or "", fields.string("note", most=4000) or ""
        fields.finish()

        def work() -> Decision:
            meant = reviews.known_label(label) if verdict == "add" else label
            return store.decide(item, meant, verdict, reviewer, note)

        made = await reviews.do(work)
        return json_answer(decision_facts(made), 201)

    async def undo(request: Request) -> Response:
        reviewer, number = require(request, "review"), decision_number(request.path_params["number"])
        made = await reviews.do(lambda: store.undo(number, reviewer))
        return json_answer(decision_facts(made), 201)

    async def finish(request: Request) -> Response:
        reviewer, id = require(request, "review"), request.path_params["item"]
        return json_answer(decision_facts(await reviews.do(lambda: store.finish(id, reviewer))), 201)

    created = Gives(OBJECT, 201)
    decided = Described(
        "Accept, reject or add a label.", "review", takes=[Takes(DECISION)], gives=created, errors=[404]
    )
    undone = Described("Take back a decision.", "review", gives=created, errors=[404])
    done = Described(
        "Finish a row: given labels, those the model would give, and accepted ones stand, unless rejected.",
        "review",
        gives=created,
        errors=[404],
    )
    return [
        Operation("POST", f"{ROOT}/decisions", decide, decided),
        Operation("POST", f"{ROOT}/decisions/{{number}}/undo", undo, undone),
        Operation("POST", f"{ROOT}/items/{{item:path}}/done", finish, done),
    ]


def _fact_routes(reviews: Reviews) -> list[BaseRoute]:
    """Return the routes of the dashboard and of guidelines."""
    store = reviews.store

    async def progress(request: Request) -> Response:
        reviews.check_model(query(request, ("model",)).get("model"))
        return json_answer(await reviews.do(lambda: reviews.fresh("progress", review_facts), heavy=True))

    async def agreement(request: Request) -> Response:
        reviews.check_model(query(request, ("model",)).get("model"))
        return json_answer(await reviews.do(lambda: reviews.fresh("agreement", agreement_facts), heavy=True))

    async def guidelines(request: Request) -> Response:
        found = await reviews.do(store.guidelines)
        return json_answer({"guidelines": [one._asdict() for one in found]})

    async def guideline(request: Request) -> Response:
        label = request.path_params["label"]
        found = await reviews.do(lambda: store.guideline(label))
        return json_answer(
            {"label": label, "text": "", "reviewer": None, "at": None} if found is None else found._asdict()
        )

    async def set_guideline(request: Request) -> Response:
        reviewer, fields = require(request, "review"), Fields(await read_json(request))
        text, label = fields.string("text", most=20_000, needed=True) or "", request.path_params["label"]
        fields.finish()
        return json_answer((await reviews.do(lambda: store.set_guideline(label, text, reviewer)))._asdict())

    model = {"model": TEXT}
    written = Described("Say when to give a label.", "review", takes=[Takes(GUIDELINE)])
    return [
        Operation("GET", f"{ROOT}/progress", progress, Described("Precision and work so far.", "review", model)),
        Operation("GET", f"{ROOT}/agreement", agreement, Described("How far people agree.", "review", model)),
        Operation("GET", f"{ROOT}/guidelines", guidelines, Described("All guidelines.", "review")),
        Operation("GET", f"{ROOT}/guidelines/{{label:path}}", guideline, Described("When to give a label.", "review")),
        Operation("PUT", f"{ROOT}/guidelines/{{label:path}}", set_guideline, written),
    ]


def _update_routes(reviews: Reviews) -> list[BaseRoute]:
    """Return the routes by which a new model is made, and the old one put back."""

    async def start_update(request: Request) -> Response:
        fields = Fields(await read_json(request, empty={}))
        reviews.check_model(fields.string("model", most=64))
        fields.finish()
        return json_answer(await reviews.do(reviews.start_update), 202)

    async def update_progress(request: Request) -> Response:
        reviews.check_model(query(request, ("model",)).get("model"))
        return json_answer(await reviews.do(reviews.update_facts))

    async def put_model_back(request: Request) -> Response:
        folder = reviews.server.settings.models[reviews.model]

        def work() -> tuple[str, str]:
            with updating(reviews.store):  # neither an update nor another admin may meet this one
                return put_back(folder)

        if is_updating(reviews.store):
            raise Problem(409, "an update is running; wait for its end.")
        before, after = await reviews.do(work, heavy=True)
        return json_answer({"before": before, "after": after})

    begun = Described("Make a new model of the reviews.", "admin", takes=[Takes(OBJECT)], gives=Gives(OBJECT, 202))
    model = {"model": TEXT}
    return [
        Operation("POST", f"{ROOT}/update", start_update, begun),
        Operation("GET", f"{ROOT}/update", update_progress, Described("How far an update is.", "review", model)),
        Operation("POST", f"{ROOT}/put-back", put_model_back, Described("Put the model before back.", "admin")),
    ]


def decision_number(text: str) -> int:
    """Return the number of a decision, as SQLite can hold it."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise Problem(404, f"there is no decision {text!r:.80}.")
    return int(text)


def item_facts(item: Item) -> dict[str, Any]:
    """Return a row as JSON."""
    tags = [{**tag._asdict(), "name": tag.name or tag.label} for tag in item.suggestions]
    return {"id": item.id, "text": item.text, "labels": list(item.labels), "suggestions": tags, "digest": item.digest}


def queued_facts(row: Queued) -> dict[str, Any]:
    """Return a row that was handed out as JSON."""
    why = {"order": row.order, "sentence": row.sentence}
    return {**item_facts(row.item), "why": why, "decided": [decision_facts(one) for one in row.decided]}


def decision_facts(made: Decision) -> dict[str, Any]:
    """Return a decision as JSON."""
    facts = made._asdict()
    return {"decision": facts.pop("number"), **facts}
