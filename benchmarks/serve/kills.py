"""Kill `longtail serve` with SIGKILL while people review and models are swapped, and look at what is left.

    python benchmarks/serve/kills.py

A server with a review file is started again and again; two reviewers decide, undo and finish rows, and a third caller
asks for labels of one text. Meanwhile models are swapped: in every other round another process puts two models in each
other's place without a pause, in the others an update is made from the reviews and put in place. Then the whole process
group is killed: server, workers, swapper, update. After every kill each decision that was acknowledged must be in the
file as it was acknowledged, the model folder must hold a whole model that is known, and every answer must have come
from a known model, with the labels that this model gives.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from longtail.pipeline import Tagger, load_tagger
from longtail.review import NewItem, ReviewStore, suggest_items, update_quietly, update_state
from longtail.serve import ServeSettings, add_token, run_server
from longtail.storage import copy_folder, folder_digest

THINGS = {"apple": "fruit", "pear": "fruit", "car": "vehicle", "train": "vehicle", "oak": "plant", "fir": "plant"}
PROBE = "an old pear beside the oak"
STAGES = ("Reading", "Updating", "Saving", "Comparing", "Swapping", "Suggesting", "end")
ROOT = "v1/longtail"
GONE = (OSError, URLError, HTTPException, ValueError)  # a server that was killed, perhaps in the middle of an answer


class Site(NamedTuple):
    """What a server works on: models, reviews and tokens."""

    folder: Path
    tokens: dict[str, str]

    @property
    def model(self) -> Path:
        """The folder that is served."""
        return self.folder / "model"

    @property
    def reviews(self) -> Path:
        """The review file."""
        return self.folder / "reviews.db"


class Acknowledged(NamedTuple):
    """A decision as the server confirmed it."""

    number: int
    item: str
    label: str
    verdict: str
    reviewer: str


def rows(first: int, last: int) -> list[tuple[str, str]]:
    """Return texts about things, each with its label."""
    things = [list(THINGS)[i % len(THINGS)] for i in range(first, last)]
    return [(f"{'old' if i % 3 else 'new'} {thing} number {i}", THINGS[thing]) for i, thing in enumerate(things, first)]


def make_site(folder: Path, n_rows: int) -> Site:
    """Train two models and make a review file in which enough control rows are finished for an update."""
    for name, n in (("first", 240), ("second", 300)):
        pairs = rows(0, n)
        Tagger(random_state=0).fit([text for text, _ in pairs], [[label] for _, label in pairs]).save(folder / name)
    copy_folder(folder / "first", folder / "model")
    site = Site(folder, {name: add_token(folder / "tokens", name, role) for name, role in roles().items()})
    with ReviewStore(site.reviews, create=True, control=0.05, twice=0.2) as store:
        store.add_items(NewItem(text, [label], id=str(i)) for i, (text, label) in enumerate(rows(1000, 1000 + n_rows)))
        suggest_items(store, load_tagger(site.model), folder_digest(site.model))
        with store.reading() as db:
            control = [id for (id,) in db.execute("SELECT id FROM items WHERE control = 1 LIMIT 60").fetchall()]
        for id in control:
            store.finish(id, "first reviewer")
    return site


def roles() -> dict[str, str]:
    """Return the callers and what they may do."""
    return {"ada": "review", "bob": "review", "eve": "admin"}


class Caller:
    """Someone who asks a server again and again until it is gone."""

    def __init__(self, address: str, token: str) -> None:
        self.address, self.token = address, token

    def ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        """Return the answer of the server; raises where it is gone or refuses."""
        raw = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        with urlopen(Request(self.address + path, raw, headers, method=method), timeout=30) as answer:
            return json.loads(answer.read())


def in_group(group: int, work: Callable[[], object]) -> int:
    """Do work in a process of its own, which is in a process group (0: its own), and return its number.

    A fork starts at once, with everything loaded; it is taken while this process has one thread.
    """
    child = os.fork()
    if child:
        os.setpgid(child, group)
        return child
    try:
        os.setpgid(0, group)
        work()
    finally:
        os._exit(0)


def serve(site: Site, workers: int, told: int) -> None:
    """Serve until killed; the address is written to a pipe."""
    settings = ServeSettings(
        {"model": site.model},
        port=0,
        tokens=site.folder / "tokens",
        reviews=site.reviews,
        workers=workers,
        watch_seconds=0.05,
        log_requests=False,
    )

    def tell(models: list[dict[str, Any]], address: str) -> None:
        os.write(told, f"{address}\n".encode())

    run_server(settings, tell)


def swap(site: Site) -> None:
    """Put two models in each other's place until killed."""
    while True:
        for name in ("first", "second"):
            copy_folder(site.folder / name, site.model)
            time.sleep(0.1)


class Round:
    """One start of a server, what callers were told until it was killed, and what they counted."""

    def __init__(self, site: Site, number: int, workers: int) -> None:
        self.site, self.number, self.stop = site, number, threading.Event()
        self.told: list[Acknowledged] = []
        self.answers: Counter[tuple[str, str]] = Counter()
        self.refused: Counter[str] = Counter()
        heard, told = os.pipe()
        self.server = in_group(0, lambda: serve(site, workers, told))
        os.close(told)
        with os.fdopen(heard) as pipe:
            self.address = pipe.readline().strip()
        if not self.address:
            sys.exit(f"round {number}: the server did not start.")
        self.threads = [
            threading.Thread(target=self.review, args=("ada",)),
            threading.Thread(target=self.review, args=("bob",)),
            threading.Thread(target=self.suggest),
        ]

    def begin(self) -> None:
        """Let the callers begin."""
        for thread in self.threads:
            thread.start()

    def review(self, name: str) -> None:
        """Decide, undo and finish rows; what is acknowledged is written down."""
        caller, rng = Caller(self.address, self.site.tokens[name]), random.Random(f"{self.number} {name}")
        while not self.stop.is_set():
            try:
                for item in caller.ask(f"{ROOT}/review/queue?order=mixed&limit=3")["items"]:
                    self.decide(caller, item, rng)
            except HTTPError as error:
                self.refused[f"{error.code}"] += 1
            except GONE:
                return

    def decide(self, caller: Caller, item: dict[str, Any], rng: random.Random) -> None:
        """Say something about every label of a row, take one word back, and finish the row."""
        for tag in item["suggestions"][:3]:
            right = tag["label"] in item["labels"]
            body = {"item": item["id"], "label": tag["label"], "verdict": "accept" if right else "reject"}
            time.sleep(rng.uniform(0.0, 0.02))
            made = self.note(caller.ask(f"{ROOT}/review/decisions", body))
            if rng.random() < 0.2:
                self.note(caller.ask(f"{ROOT}/review/decisions/{made['decision']}/undo", method="POST"))
                self.note(caller.ask(f"{ROOT}/review/decisions", body))
        self.note(caller.ask(f"{ROOT}/review/items/{item['id']}/done", method="POST"))

    def note(self, made: dict[str, Any]) -> dict[str, Any]:
        """Write down what was acknowledged."""
        facts = (made["decision"], made["item"], made["label"], made["verdict"], made["reviewer"])
        self.told.append(Acknowledged(*facts))
        return made

    def suggest(self) -> None:
        """Ask for the labels of one text, and count the answers by model and labels."""
        caller = Caller(self.address, self.site.tokens["ada"])
        while not self.stop.is_set():
            try:
                got = caller.ask(f"{ROOT}/models/model/suggest", {"text": PROBE, "k": 3})
                tags = json.dumps([[tag["label"], tag["score"]] for tag in got["results"][0]["tags"]])
                self.answers[got["digest"], tags] += 1
            except HTTPError as error:
                self.refused[f"{error.code}"] += 1
            except GONE:
                return

    def end(self) -> None:
        """Kill the server with all its processes, and let the callers notice."""
        self.stop.set()
        if self.server:
            os.killpg(self.server, signal.SIGKILL)
            while True:
                try:
                    os.waitpid(-self.server, 0)
                except ChildProcessError:
                    break
        self.server = 0
        for thread in self.threads:
            if thread.ident is not None:
                thread.join()


def swap_until_killed(turn: Round, rng: random.Random) -> str:
    """Let another process swap models while reviews go on, for a random time."""
    in_group(turn.server, lambda: swap(turn.site))
    turn.begin()
    time.sleep(rng.uniform(0.2, 2.5))
    turn.end()
    return "swapping"


def update_until_killed(turn: Round, rng: random.Random) -> str:
    """Let a new model be made while reviews go on, until a random stage of that is reached."""
    site, wanted, end = turn.site, rng.choice(STAGES), time.perf_counter() + 60
    by_button = turn.number % 10 == 5
    if not by_button:
        in_group(turn.server, lambda: update_quietly(site.reviews, site.model))
    turn.begin()
    if by_button:
        Caller(turn.address, site.tokens["eve"]).ask(f"{ROOT}/review/update", {}, "POST")
    reached, begun = "", False
    with ReviewStore(site.reviews) as store:
        while time.perf_counter() < end and reached != wanted:
            state = update_state(store)
            running = state["state"] == "running"
            begun |= running
            reached = state.get("stage", "") if running else "end" if begun else ""
            if reached == "end" or (reached in STAGES and STAGES.index(reached) > STAGES.index(wanted)):
                break
            time.sleep(0.001)
    time.sleep(rng.uniform(0.0, 0.03))
    turn.end()
    return f"update: {reached or 'starting'}"


class Checks:
    """What was found after the kills, all of them together."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.told: list[Acknowledged] = []
        self.answers: Counter[tuple[str, str]] = Counter()
        self.refused: Counter[str] = Counter()
        self.killed_while: Counter[str] = Counter()
        self.labels: dict[str, str] = {}  # what each known model says to the probe, by digest
        self.broken_folders = self.unknown_folders = 0
        for name in ("first", "second"):
            self.learn(site.folder / name)

    def learn(self, folder: Path) -> None:
        """Write down what the model in a folder says; it must be whole."""
        tags = load_tagger(folder).tag([PROBE], k=3)[0]
        self.labels[folder_digest(folder)] = json.dumps([[tag.label, tag.score] for tag in tags])

    def look(self, turn: Round, what: str) -> None:
        """Look at what a kill has left."""
        self.killed_while[what] += 1
        self.told += turn.told
        self.answers += turn.answers
        self.refused += turn.refused
        try:
            self.learn(self.site.model)
        except Exception as error:
            self.broken_folders += 1
            print(f"round {turn.number}: {error}", flush=True)
        self.unknown_folders += folder_digest(self.site.model) not in self.known()

    def known(self) -> set[str]:
        """Return the digests of all models that were ever whole: the two, and those that updates wrote."""
        two = {folder_digest(self.site.folder / name) for name in ("first", "second")}
        with ReviewStore(self.site.reviews) as store, store.reading() as db:
            return two | {digest for (digest,) in db.execute("SELECT new_digest FROM updates")}

    def facts(self) -> Facts:
        """Return what was found."""
        with ReviewStore(self.site.reviews) as store:  # which checks the whole file
            made = store.all_decisions()
        kept = {d.number: Acknowledged(d.number, d.item, d.label, d.verdict, d.reviewer) for d in made}
        known = self.known()
        wrong = sum(n for (digest, tags), n in self.answers.items() if self.labels.get(digest, tags) != tags)
        return {
            "kills": self.killed_while.total(),
            "killed_while": dict(sorted(self.killed_while.items())),
            "acknowledged": len(set(self.told)),
            "lost": sum(kept.get(one.number) != one for one in self.told),
            "decisions_in_the_file": len(kept),
            "answers": self.answers.total(),
            "answers_of_unknown_models": sum(n for (digest, _), n in self.answers.items() if digest not in known),
            "answers_with_wrong_labels": wrong,
            "models_seen": len({digest for digest, _ in self.answers}),
            "broken_folders": self.broken_folders,
            "unknown_folders": self.unknown_folders,
            "refused": dict(self.refused),
        }


def main() -> None:
    parser = make_parser(__doc__, "serve_kills.json")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--rows", type=int, default=6_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    facts = start_facts(args, {})
    with tempfile.TemporaryDirectory() as name:
        site = make_site(Path(name), args.rows)
        checks = Checks(site)
        for number in range(args.kills):
            turn = Round(site, number, workers=2 if number % 10 == 9 else 1)
            try:
                what = (update_until_killed if number % 2 else swap_until_killed)(turn, rng)
            finally:
                turn.end()
            checks.look(turn, what)
            found = checks.facts()
            write_results(facts | found, args.output)
            bad = ("lost", "answers_of_unknown_models", "answers_with_wrong_labels", "broken_folders")
            print(number + 1, what, found["acknowledged"], found["answers"], *(found[one] for one in bad), flush=True)
    print(json.dumps(found, indent=1))
    if any(found[one] for one in (*bad, "unknown_folders")):
        sys.exit("something was lost")


if __name__ == "__main__":
    main()
