"""The service that many would write: uvicorn, Starlette and scikit-learn, in as few lines as it takes.

    python benchmarks/serve/plain_service.py PORT WORKERS

It trains TF-IDF and one linear classifier per label on the bundled `debtags`, then answers `POST /predict`
`{"texts": [...]}` with the five best labels of every text, in so many forked processes on one socket.
"""

from __future__ import annotations

import os
import socket
import sys

import numpy as np
import uvicorn
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from longtail.data import load_bundled


def main() -> None:
    port, workers = int(sys.argv[1]), int(sys.argv[2])
    data = load_bundled("debtags")
    used = np.flatnonzero(np.bincount(data.Y.indices, minlength=data.n_labels))
    words = TfidfVectorizer(min_df=2, sublinear_tf=True, dtype=np.float32)  # as W is: else that is copied each time
    model = OneVsRestClassifier(SGDClassifier(loss="log_loss", max_iter=10, tol=1e-2, random_state=0), n_jobs=2)
    model.fit(words.fit_transform(list(data.texts or ())), data.Y[:, used])
    coefficients = np.vstack([one.coef_ for one in model.estimators_]).astype(np.float32)
    W = np.ascontiguousarray(coefficients.T)  # scipy would copy it for every request; much faster than predict_proba
    bias = np.concatenate([one.intercept_ for one in model.estimators_])
    names = [data.names()[label] for label in used.tolist()]

    def predict(texts: list[str]) -> list[list[dict[str, object]]]:
        scores = 1 / (1 + np.exp(-(words.transform(texts) @ W + bias)))
        best = np.argsort(-scores, axis=1)[:, :5]
        return [
            [{"label": names[i], "score": float(row[i])} for i in ids] for ids, row in zip(best, scores, strict=True)
        ]

    async def answer(request: Request) -> Response:
        body = await request.json()
        return JSONResponse(await run_in_threadpool(predict, body["texts"]))

    app = Starlette(routes=[Route("/predict", answer, methods=["POST"])])
    listening = socket.create_server(("127.0.0.1", port), backlog=2048)
    for _ in range(workers - 1):
        if os.fork() == 0:
            break
    uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
