"""The page in a real browser: reviewing by key, saves that fail, the dashboard, models, and signing in."""

import json
import time
import urllib.request

import pytest
from page_browser import (
    BASE,
    EVIL,
    TOPICS,
    chromium,
    complaints,
    expect,
    go,
    is_wider_than_screen,
    opened,
    rows,
    save_models,
    serving,
)

from longtail.review import NewItem, ReviewStore
from longtail.serve import ServeSettings, add_token

ROWS = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("review")


@pytest.fixture(scope="module")
def models(folder):
    return save_models(folder)


@pytest.fixture(scope="module")
def store(folder):
    with ReviewStore(folder / "reviews.db", create=True, control=0.3, twice=0.0) as store:
        texts, labels = rows(ROWS, seed=5)
        store.add_items(
            [NewItem(text, given[:1], id=f"row {i}/a") for i, (text, given) in enumerate(zip(texts, labels))]
        )
        yield store


@pytest.fixture(scope="module")
def address(models, store):
    with serving(ServeSettings(models, reviews=store.path, log_requests=False)) as address:
        while any(not store.item(f"row {i}/a").suggestions for i in range(ROWS)):
            time.sleep(0.05)
        yield address


@pytest.fixture(scope="module")
def tokens(folder, models, store):
    path = folder / "tokens.jsonl"
    made = {role: add_token(path, f"ms-{role}", role) for role in ("suggest", "review", "admin")}
    with serving(ServeSettings(models, tokens=path, reviews=store.path, log_requests=False)) as address:
        yield address, made


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser, address, store):
    with opened(browser, address, "review") as page:
        page.locator(".candidate").first.wait_for()
        while said(store, shown_item(page)):  # a row that nobody has decided about
            before = shown_item(page)
            page.keyboard.press("Enter")
            expect(page.locator(".review-words")).not_to_have_text(text_of(before))
        all_saved(page)
        yield page


def text_of(item):
    return rows(ROWS, seed=5)[0][int(item.split()[1].split("/")[0])]


def shown_item(page):
    """Return the id of the row that is shown, by its text."""
    text = page.locator(".review-words").text_content()
    return next(f"row {i}/a" for i, one in enumerate(rows(ROWS, seed=5)[0]) if one == text)


def all_saved(page):
    """Wait until the server has stored everything."""
    expect(page.locator(".outbox-part")).to_have_attribute("data-waiting", "0")


def said(store, item):
    return [(made.label.removeprefix(BASE), made.verdict) for made in store.decisions(item)]


def test_a_text_is_reviewed_by_key_alone(page, store):
    item, left = shown_item(page), page.locator(".left-over").inner_text()
    first, second, third = (row.get_attribute("data-label") for row in page.locator(".candidate").all()[:3])
    assert page.locator(".candidate").first.evaluate("row => row === document.activeElement")
    assert page.locator(".review-words mark").count() > 0  # what carried the label at the cursor
    page.keyboard.press("a")
    page.keyboard.press("r")
    expect(page.locator('.candidate[aria-current="true"]')).to_have_attribute("data-label", third)
    page.keyboard.press("k")
    expect(page.locator('.candidate[aria-current="true"]')).to_have_attribute("data-label", second)
    page.keyboard.press("u")  # the rejection
    page.keyboard.press("ArrowDown")
    page.keyboard.press("r")
    page.keyboard.press("+")
    page.keyboard.type("c")
    page.locator(".option", has_text="Cats").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator(".candidate:focus")).to_have_count(1)
    all_saved(page)
    assert "local, " in page.locator(f'.candidate[data-label="{first}"]').inner_text()  # who and when
    page.keyboard.press("Enter")
    expect(page.locator(".review-words")).not_to_have_text(text_of(item))
    all_saved(page)
    assert page.locator(".left-over").inner_text() != left
    verdicts = said(store, item)
    assert (first.removeprefix(BASE), "accept") in verdicts and (third.removeprefix(BASE), "reject") in verdicts
    assert [verdict for _, verdict in verdicts][-1] == "done"


def test_a_label_is_added_by_search_and_taken_back(page, store):
    item = shown_item(page)
    shown = {row.get_attribute("data-label") for row in page.locator(".candidate").all()}
    plain = [label for below in TOPICS.values() for label in below if label not in ("evil", "formula")]
    missing = next(label for label in plain if BASE + label not in shown)
    page.keyboard.press("+")
    page.keyboard.type(missing[:4])
    page.locator(".option", has_text=missing.title()).first.wait_for()
    page.keyboard.press("Enter")
    row = page.locator(f'.candidate[data-label="{BASE}{missing}"]')
    expect(row).to_contain_text("added")
    all_saved(page)
    assert said(store, item)[-1] == (missing, "add")
    page.keyboard.press("u")
    expect(row).to_have_count(0)
    all_saved(page)
    assert said(store, item) == []


def test_buttons_do_the_same_and_a_finished_text_can_be_taken_back(page, store):
    item = shown_item(page)
    row = page.locator(".candidate").nth(1)
    row.locator(".yes").click()
    expect(row.locator(".yes")).to_have_attribute("aria-pressed", "true")
    row.locator(".no").click()
    expect(row.locator(".no")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Done, next").click()
    expect(page.locator(".review-words")).not_to_have_text(text_of(item))
    all_saved(page)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".review-words")).to_have_text(text_of(item))
    all_saved(page)
    assert [verdict for _, verdict in said(store, item)] == ["accept", "reject"]


def test_keys_are_explained_and_left_alone_while_typing(page, store):
    before = len(store.all_decisions())
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("add a label by search")
    page.keyboard.press("a")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("combobox", name="Add a label").press_sequentially("arju")
    assert len(store.all_decisions()) == before


def test_a_failed_save_is_shown_kept_and_tried_again(page, store):
    item, label = shown_item(page), page.locator(".candidate").first.get_attribute("data-label")
    page.on("dialog", lambda dialog: dialog.accept())
    page.route("**/review/decisions", lambda route: route.abort())
    page.keyboard.press("a")
    expect(page.locator(".outbox")).to_contain_text("1 decision is not saved yet. The server cannot be reached.")
    expect(page.locator(".candidate").first).to_contain_text("not saved yet")
    page.reload()  # it outlives the page
    expect(page.locator(".outbox")).to_contain_text("1 decision is not saved yet.")
    assert said(store, item) == []
    busy = json.dumps({"title": "x", "status": 503, "detail": "busy."})
    page.unroute("**/review/decisions")
    page.route("**/review/decisions", lambda route: route.fulfill(status=503, body=busy), times=1)
    expect(page.locator(".outbox")).to_have_count(0, timeout=20_000)
    assert said(store, item) == [(label.removeprefix(BASE), "accept")]


def test_another_window_sends_what_one_could_not(page, store):
    item, label = shown_item(page), page.locator(".candidate").first.get_attribute("data-label")
    page.route("**/review/decisions", lambda route: route.abort())
    page.keyboard.press("a")
    expect(page.locator(".outbox")).to_contain_text("1 decision is not saved yet.")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator(".outbox-part")).to_have_attribute("data-waiting", "0")
    expect(page.locator(".outbox")).to_have_count(0)
    assert said(store, item) == [(label.removeprefix(BASE), "accept")]
    page.keyboard.press("u")  # of a decision whose number this window never heard
    all_saved(page)
    assert said(store, item) == []


def test_a_refused_decision_is_said_and_given_up_by_a_person_only(page, store):
    before = len(store.all_decisions())
    refusal = json.dumps({"title": "x", "status": 422, "detail": "label must be sound."})
    page.route("**/review/decisions", lambda route: route.fulfill(status=422, body=refusal))
    page.keyboard.press("r")
    expect(page.locator(".outbox")).to_contain_text("1 decision is not saved yet. label must be sound.")
    page.get_by_role("button", name="Give this one up").click()
    expect(page.locator(".outbox")).to_have_count(0)
    assert len(store.all_decisions()) == before


def test_guidelines_stand_beside_the_label(page, store):
    about = page.locator(".about-label")
    name = about.locator(".card-name").inner_text()
    about.get_by_role("button", name="Write a guideline").click()
    about.get_by_role("textbox", name="Guideline").fill(f"Only if it is about these. {EVIL}")
    about.get_by_role("button", name="Save").click()
    expect(about.locator(".guideline-text")).to_have_text(f"Only if it is about these. {EVIL}")
    label = page.locator('.candidate[aria-current="true"]').get_attribute("data-label")
    assert store.guideline(label).text.startswith("Only if")
    go(page, "labels")
    page.get_by_role("searchbox").fill(name[:5])
    page.locator(".hit", has_text=name).first.click()
    expect(page.locator(".label-detail .guideline-text")).to_contain_text("Only if it is about these.")


def test_the_dashboard_tells_precision_and_work(browser, address, store):
    for i in range(ROWS):
        if store.item(f"row {i}/a").control and not store.item(f"row {i}/a").finished:
            store.finish(f"row {i}/a", "ada")
    with opened(browser, address, "dashboard") as page:
        page.locator(".figure").first.wait_for()
        assert "%" in page.locator(".figure").first.inner_text()
        assert page.locator(".plot svg").count() == 2 and page.locator(".plot .dot").count() >= 1
        page.locator(".as-table summary").first.click()
        assert "95% interval" in page.locator(".as-table").first.inner_text()
        assert "ada" in page.locator(".board", has_text="People").last.inner_text()
        assert BASE not in page.locator("main").inner_text()


def test_models_are_loaded_anew_and_made_of_reviews(browser, address):
    states = [
        {"state": "idle", "swapped": False, "sentence": ""},
        {"state": "running", "stage": "Training", "done": 1, "total": 3, "swapped": False, "sentence": ""},
        {
            "state": "done",
            "swapped": False,
            "sentence": "The new model may be worse; the old one stays.",
            "comparison": {
                "rows": 12,
                "metric": "F1",
                "before": 0.61,
                "after": 0.6,
                "precision_at": {"p@1": {"before": 0.5, "after": 0.4}},
            },
        },
    ]
    with opened(browser, address, "models") as page:
        card = page.locator('[data-model="things"]')
        card.get_by_role("button", name="Load anew").click()
        page.locator("main").get_by_text("things has not changed on disk.").wait_for()
        answer = lambda route: route.fulfill(status=202, json=states[1])  # noqa: E731
        page.route("**/review/update", answer)
        page.route(
            "**/review/update?*", lambda route: route.fulfill(json=states.pop(1) if len(states) > 2 else states[-1])
        )
        page.get_by_role("button", name="Make a new model").click()
        expect(page.locator(".update progress")).to_have_count(1)
        expect(page.locator(".update .notice")).to_have_text("The new model may be worse; the old one stays.")
        assert "−1" in page.locator(".update tr", has_text="F1").inner_text()


def test_signing_in_shows_what_a_role_may_do(browser, tokens):
    address, made = tokens
    with opened(browser, address) as page:
        page.get_by_label("Token").fill("lt_wrong")
        page.keyboard.press("Enter")
        expect(page.locator(".notice.bad")).to_have_text("this token is not known here.")
        found = [complaints(page)]
        page.get_by_label("Token").fill(made["suggest"])
        page.keyboard.press("Enter")
        page.locator("main.view-try").wait_for()
        assert page.locator("nav a").all_inner_texts() == ["Try", "Compare", "Batch", "Labels"]
        page.locator(".paper-text").fill("the kitten was purring")  # with cookie and CSRF token
        page.locator(".tag", has_text="Cats").wait_for()
        page.reload()
        page.locator("main.view-try").wait_for()
        page.locator(".paper-text").fill("private words")
        page.get_by_label("Signed in as ms-suggest").click()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Token").fill(made["admin"])
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Models").wait_for()
        expect(page.locator(".paper-text")).to_have_value("")  # the next person finds nothing of this one
        assert found == [[]] and "lt_" not in page.evaluate("JSON.stringify(localStorage) + document.cookie")


def test_a_session_that_ended_is_asked_for_and_nothing_is_lost(browser, tokens, store):
    address, made = tokens
    with opened(browser, address) as page:
        page.get_by_label("Token").fill(made["review"])
        page.keyboard.press("Enter")
        page.locator("main.view-try").wait_for()
        go(page, "review")
        page.locator(".candidate").first.wait_for()
        item = shown_item(page)
        page.context.clear_cookies()
        page.keyboard.press("a")
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Token").fill(made["review"])
        page.keyboard.press("Enter")
        expect(dialog).to_have_count(0)
        expect(page.locator(".outbox")).to_have_count(0)
        all_saved(page)
        assert [made.reviewer for made in store.decisions(item)][-1] == "ms-review"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (390, "light")])
def test_axe_finds_nothing_in_the_views_of_reviewers(browser, address, width, scheme):
    with opened(browser, address, "review", viewport={"width": width, "height": 800}, color_scheme=scheme) as page:
        page.locator(".candidate").first.wait_for()
        page.keyboard.press("r")
        page.locator(".about-label .rows-line").wait_for()
        found = {"review": (complaints(page), is_wider_than_screen(page))}
        page.keyboard.press("u")
        page.keyboard.press("?")
        found["keys"] = complaints(page), is_wider_than_screen(page)
        page.keyboard.press("Escape")
        go(page, "dashboard")
        page.locator(".figure").first.wait_for()
        found["dashboard"] = complaints(page), is_wider_than_screen(page)
        go(page, "models")
        page.locator(".update .button").first.wait_for()
        found["models"] = complaints(page), is_wider_than_screen(page)
        assert found == {view: ([], False) for view in found}


def test_the_page_needs_no_other_address(browser, address):
    asked = []
    with opened(browser, address, "review") as page:
        page.on("request", lambda request: asked.append(request.url))
        for view in ("try", "compare", "batch", "labels", "dashboard", "models"):
            go(page, view)
    assert asked and all(url.startswith(address) for url in asked)
    with urllib.request.urlopen(f"{address}/") as answer:
        assert "https://" not in answer.read().decode()
