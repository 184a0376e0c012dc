"""The routes of batches: files of rows in, labels out, in the background."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute

from longtail.serve import schemas
from longtail.serve.batch_jobs import FORMATS, BatchJobs, Job
from longtail.serve.guards import watch_of
from longtail.serve.longtail_api import LINES, ROOT
from longtail.serve.operations import Described, Gives, Operation, Takes
from longtail.serve.problems import Problem, json_answer
from longtail.serve.requests import how_of_query, query
from longtail.serve.server import Server
from longtail.serve.tokens import Caller

MEDIA = {"csv": "text/csv; charset=utf-8", "jsonl": LINES}


def routes(server: Server) -> list[BaseRoute]:
    """Return the routes."""
    jobs = BatchJobs(server)
    server.at_end(jobs.close)

    def own(request: Request) -> Job:
        caller: Caller = request.scope["longtail.caller"]
        return jobs.get(request.path_params["batch"], caller.name, admin=caller.role == "admin")

    async def begin_batch(request: Request) -> Response:
        known = ("model", "format", "text_column", "id_column", *schemas.HOW)
        given = query(request, known, several=("text_column",))
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        kind = given.get("format") or FORMATS.get(media)
        if kind not in ("csv", "jsonl"):
            raise Problem(415, f"a batch is CSV (text/csv) or JSON lines ({LINES}); got {kind or media!r:.80}.")
        watch = watch_of(request.scope)
        watch.body_limit, watch.streams = server.settings.upload_bytes, True
        model, how = given.get("model", server.models.default), how_of_query(given, server.settings.most_labels)
        caller: Caller = request.scope["longtail.caller"]
        columns, id_column = request.query_params.getlist("text_column"), given.get("id_column")
        for name, empty in (("text_column", not all(columns)), ("id_column", id_column == "")):
            if empty:
                raise Problem(422, f"{name} must be the name of a column; got ''.")
        job = await jobs.begin(model, how, kind, request.stream(), caller.name, columns, id_column)
        return json_answer(job.facts(), 202, {"Location": f"{ROOT}/batches/{job.id}"})

    async def list_batches(request: Request) -> Response:
        caller: Caller = request.scope["longtail.caller"]
        # who asks an open server is nobody in particular: the id of a batch is all that tells whose it is
        found = [] if caller.by == "open" else jobs.listed(caller.name, admin=caller.role == "admin")
        return json_answer({"batches": [job.facts() for job in found]})

    async def batch(request: Request) -> Response:
        return json_answer(own(request).facts())

    async def batch_result(request: Request) -> Response:
        format = query(request, ("format",)).get("format", "csv")
        if format not in MEDIA:
            raise Problem(422, f"format must be csv or jsonl; got {format!r:.80}.")
        name = f'attachment; filename="labels.{format}"'
        file = jobs.result(own(request), format)
        return FileResponse(file, media_type=MEDIA[format], headers={"Content-Disposition": name})

    async def remove_batch(request: Request) -> Response:
        jobs.remove(own(request))
        return Response(status_code=204)

    one = f"{ROOT}/batches/{{batch}}"
    text = schemas.TEXT
    asked: dict[str, schemas.Schema] = {
        "model": text,
        "format": {"enum": ["csv", "jsonl"]},
        "text_column": {"type": "array", "items": {**text, "minLength": 1}},
        "id_column": {**text, "minLength": 1},
        **schemas.HOW_QUERY,
    }
    return [
        Operation(
            "POST",
            f"{ROOT}/batches",
            begin_batch,
            Described(
                "Give labels to the rows of a file, in the background. `text_column` names the column or field of the "
                "texts, several of which are joined in this order, and `id_column` that of the ids, by which the "
                "result calls the rows. Without them those that the model was trained with are read where the file has "
                "them, else `text` and `id`; rows without ids are numbered from 0.",
                query=asked,
                takes=[Takes(text, "text/csv", "id,text\n1,A fast editor\n"), Takes(text, LINES)],
                gives=Gives(schemas.JOB, 202),
                errors=[404, 413, 415, 422],
            ),
        ),
        Operation("GET", f"{ROOT}/batches", list_batches, Described("Your batches.", gives=Gives(schemas.JOBS))),
        Operation("GET", one, batch, Described("How far a batch is.", gives=Gives(schemas.JOB), errors=[404])),
        Operation(
            "GET",
            f"{one}/result",
            batch_result,
            Described(
                "The labels of a batch that is done, as CSV or as JSON lines.",
                query={"format": {"enum": ["csv", "jsonl"], "default": "csv"}},
                gives=Gives(text, media_type="text/csv"),
                errors=[404, 409, 422],
            ),
        ),
        Operation(
            "DELETE", one, remove_batch, Described("Stop and remove a batch.", gives=Gives(status=204), errors=[404])
        ),
    ]
