"""The page in a real browser where reviewing comes to an end: of an order, of all texts, of a session."""

import time

import pytest
from page_browser import chromium, expect, go, opened, rows, save_models, serving

from longtail.review import NewItem, ReviewStore, next_items, release
from longtail.serve import ServeSettings, add_token

ROWS = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ends")


@pytest.fixture(scope="module")
def models(folder):
    return save_models(folder)


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def store(tmp_path):
    with ReviewStore(tmp_path / "reviews.db", create=True, control=0.4, twice=0.0) as store:
        texts, labels = rows(ROWS, seed=5)
        store.add_items([NewItem(text, given[:1], id=f"row {i}") for i, (text, given) in enumerate(zip(texts, labels))])
        yield store


@pytest.fixture
def address(models, store):
    with serving(ServeSettings(models, reviews=store.path, log_requests=False)) as address:
        while any(not store.item(f"row {i}").suggestions for i in range(ROWS)):
            time.sleep(0.05)
        yield address


@pytest.fixture
def with_tokens(tmp_path, models, store):
    path = tmp_path / "tokens.jsonl"
    made = {name: add_token(path, name, "review") for name in ("ada", "bob")}
    with serving(ServeSettings(models, tokens=path, reviews=store.path, log_requests=False)) as address:
        yield address, made


def finish_all(page, n):
    """Press Enter until n texts are done."""
    for _ in range(n):
        page.locator(".candidates").wait_for()
        page.keyboard.press("Enter")
    page.locator(".finished").wait_for()


def sign_in(page, token):
    page.get_by_label("Token").fill(token)
    page.keyboard.press("Enter")


def test_an_order_that_has_ended_is_left_for_another(browser, address, store):
    n_control = sum(store.item(f"row {i}").control for i in range(ROWS))
    assert 0 < n_control < ROWS
    with opened(browser, address, "review") as page:
        page.get_by_label("Order").select_option("control")
        expect(page.locator(".why .badge")).to_have_text("control sample")
        finish_all(page, n_control)
        expect(page.locator(".finished")).to_contain_text(
            f"Nothing is left in this order; {ROWS - n_control} texts are left in other orders."
        )
        assert "Thank you" not in page.locator(".finished").inner_text()
        page.get_by_label("Order").select_option("newest")
        expect(page.locator(".why .badge")).to_have_text("new")
        expect(page.locator(".left-over")).to_have_text(f"{ROWS - n_control} texts left")
        page.get_by_role("button", name="Undo").click()  # the last text of the order before
        expect(page.locator(".why .badge")).to_have_text("control sample")


def test_the_last_text_is_counted_though_it_is_saved_slowly(browser, address, store):
    def slowly(route):
        time.sleep(0.05)
        route.continue_()

    with opened(browser, address, "review") as page:
        page.route("**/done", slowly)
        finish_all(page, ROWS)
        expect(page.locator(".finished")).to_contain_text("Nothing is left to review. Thank you.")
        expect(page.locator(".left-over")).to_have_text("")
        assert store.counts()["finished"] == ROWS


def test_texts_of_others_and_skipped_ones_are_no_end(browser, address, store):
    next_items(store, "ada", "mixed", ROWS - 2)
    with opened(browser, address, "review", locale="de-DE") as page:
        page.locator(".candidates").wait_for()
        page.keyboard.press("s")
        page.locator(".candidates").wait_for()
        page.keyboard.press("s")
        end = page.locator(".finished")
        expect(end).to_contain_text("2 Texte wurden übersprungen")
        expect(end).to_contain_text(f"{ROWS - 2} Texte sind für eine Weile bei anderen offen")
        release(store, "ada")
        page.get_by_role("button", name="Noch einmal nachsehen").click()
        finish_all(page, ROWS)
        expect(end).to_contain_text("Nichts mehr zu prüfen.")


def test_who_was_signed_out_is_asked_to_sign_in_and_decisions_stay_theirs(browser, with_tokens, store):
    address, made = with_tokens
    with opened(browser, address) as page:
        sign_in(page, made["ada"])
        page.locator("main.view-try").wait_for()
        go(page, "review")
        page.locator(".candidate").first.wait_for()
        page.context.clear_cookies()  # as a restart of the server does
        page.keyboard.press("a")
        page.get_by_role("dialog").wait_for()
        page.keyboard.press("Escape")
        expect(page.locator(".outbox")).to_contain_text("1 decision is not saved yet. Sign in again to save it.")
        assert "Authorization" not in page.locator("main").inner_text()
        page.locator(".outbox").get_by_role("button", name="Sign in").click()
        sign_in(page, made["bob"])
        waiting = page.locator(".outbox", has_text="1 decision of ada waits in this browser until ada signs in.")
        waiting.wait_for()
        assert not store.all_decisions()
        page.get_by_label("Signed in as bob").click()
        page.get_by_role("button", name="Sign out").click()
        sign_in(page, made["ada"])
        expect(page.locator(".outbox-part")).to_have_attribute("data-waiting", "0")
        expect(page.locator(".outbox")).to_have_count(0)
        assert [one.reviewer for one in store.all_decisions()] == ["ada"]


def test_who_put_signing_in_off_is_not_asked_again_by_what_the_page_does_itself(browser, with_tokens):
    address, made = with_tokens
    late = []
    with opened(browser, address) as page:
        sign_in(page, made["ada"])
        page.locator("main.view-try").wait_for()
        go(page, "review")
        page.locator(".candidate").first.wait_for()
        page.context.clear_cookies()
        page.route("**/review/queue?*", lambda route: late.append(route))
        page.evaluate(
            "void (window.question = import('/static/server.js').then((server) => server.ask('/review/queue?n=1'))"
            ".then(() => '', (refusal) => `${refusal.status}`))"
        )
        page.keyboard.press("a")
        page.get_by_role("dialog").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")
        late[0].continue_()  # the server refuses what was asked before
        said = page.evaluate("window.question")
        assert (said, page.get_by_role("dialog").count()) == ("401", 0)
        page.keyboard.press("r")  # what the person does asks again
        page.get_by_role("dialog").wait_for()


def test_a_server_that_is_back_is_found_without_asking_again(browser, address):
    with opened(browser, address, "try") as page:
        page.route("**/review/queue?*", lambda route: route.abort())
        go(page, "review")
        expect(page.locator(".finished")).to_contain_text("The server cannot be reached.")
        page.unroute("**/review/queue?*")
        page.locator(".candidate").first.wait_for()


def test_the_keys_say_what_done_keeps(browser, address):
    for locale, words in (("en-GB", "kept only if you accept them"), ("de-DE", "bleiben nur, wenn Sie sie annehmen")):
        with opened(browser, address, "review", locale=locale) as page:
            page.locator(".candidate").first.wait_for()
            page.keyboard.press("?")
            expect(page.get_by_role("dialog")).to_contain_text(words)


def test_an_update_is_told_in_german(browser, address):
    numbers = {"rows": 105, "before": 0.61, "after": 0.6, "difference": -0.01, "low": -0.034, "high": 0.012}
    more = {"margin": 0.01, "not_worse": False, "rows_needed": 1200, "metric": "F1 of the labels given to a row"}
    facts = {"state": "done", "swapped": False, "sentence": "On 105 …", "comparison": {**numbers, **more}}
    swapped = {**facts, "swapped": True, "backup": "things.previous"}
    few = {"state": "done", "swapped": False, "sentence": "3 rows", "rows": 9, "control": 3, "fewest": 50}
    told = []

    def answered(facts):
        return lambda route: route.fulfill(json=facts)

    for one in (facts, swapped, few):
        with opened(browser, address, "try", locale="de-DE") as page:
            page.route("**/review/update?*", answered(one))
            go(page, "models")
            told.append(page.locator(".update .notice").inner_text())
            if one is facts:
                assert (
                    page.locator(".update tbody th, .update tbody td")
                    .first.inner_text()
                    .startswith("F1 der vergebenen")
                )
    assert [one.replace("\xa0", " ") for one in told] == [
        "An 105 Kontrolltexten geht F1 von 61 % auf 60 % (−1 Punkte, 95-%-Intervall −3,4 bis +1,2). "
        "Das neue Modell ist vielleicht um mehr als 1 Punkte schlechter; das alte bleibt. "
        "Etwa 1.200 fertige Kontrolltexte würden es zeigen.",
        "An 105 Kontrolltexten geht F1 von 61 % auf 60 % (−1 Punkte, 95-%-Intervall −3,4 bis +1,2). "
        "Das neue Modell ist in Gebrauch. Das alte liegt in things.previous.",
        "3 Texte der Kontrollstichprobe sind fertig; zum Vergleich der Modelle braucht es 50.",
    ]


def test_labels_that_were_always_right_are_not_listed_as_wrong(browser, address):
    def judged(label, right):
        return {
            "label": label,
            "pairs": 8,
            "right": right,
            "precision": right / 8,
            "low": 0.2,
            "high": 1.0,
            "accepted": 0,
        }

    def answered(labels):
        def answer(route):
            route.fulfill(json={**route.fetch().json(), "labels": labels})

        return answer

    with opened(browser, address, "try") as page:
        board = page.locator(".board", has_text="Labels most often wrong")
        page.route("**/review/progress?*", answered([judged("right", 8), judged("wrong", 5)]))
        go(page, "dashboard")
        expect(board.locator("tbody tr")).to_have_count(1)
        assert "63%" in board.inner_text()
        go(page, "try")
        page.unroute("**/review/progress?*")
        page.route("**/review/progress?*", answered([judged("right", 8)]))
        go(page, "dashboard")
        expect(board).to_contain_text("None: every label that was judged often enough was right.")
