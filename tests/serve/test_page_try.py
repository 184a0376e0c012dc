"""The page in a real browser: trying, comparing, whole files, labels; languages, colours, phones and hostile names."""

import csv
import io
import json

import pytest
from page_browser import (
    BASE,
    CAT_TEXT,
    EVIL,
    FORMULA,
    N_LABELS,
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

import longtail as lt
from longtail.serve import ServeSettings


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with serving(ServeSettings(save_models(tmp_path_factory.mktemp("models")), log_requests=False)) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser, address):
    with opened(browser, address) as page:
        yield page


def write(page, text):
    """Write a text and wait for its tags and the words behind them."""
    with page.expect_response("**/explain"):
        page.fill(".paper-text", text)
    page.wait_for_selector(".tag .behind")


def names(page, which=".tag"):
    return page.locator(f"{which} .tag-name").all_inner_texts()


def test_tags_appear_as_a_text_is_typed(page):
    page.locator(".paper-text").press_sequentially("a kitten purring")
    first = page.locator(".tag").first
    first.wait_for()
    assert names(page)[0] == "Cats" and "is-given" in first.get_attribute("class")
    assert first.locator(".tag-share").inner_text().endswith("%")
    assert BASE not in page.locator(".results").inner_text()  # people see names
    page.get_by_role("button", name="Clear").click()
    page.get_by_text("Write or paste a text: its tags appear here").wait_for()


def test_the_words_that_carried_a_tag_are_marked(page):
    write(page, "We saw a 🐈 kitten: whiskers!\nAn engine.")
    page.locator(".tag", has_text="Cats").hover()
    marked = page.locator(".behind-text mark").all_inner_texts()
    assert set(marked) == {"kitten", "whiskers"}
    page.locator(".tag-head", has_text="Cars").focus()  # by key as well
    page.mouse.move(5, 5)
    assert page.locator(".behind-text mark").all_inner_texts() == ["engine"]
    assert page.locator(".behind-text").text_content() == page.locator(".paper-text").input_value()


def test_the_threshold_says_what_to_expect(page):
    write(page, CAT_TEXT)
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("Home")
    everything = page.locator(".expected").inner_text()
    assert page.locator(".tag").count() == page.locator(".tag.is-given").count() == N_LABELS
    page.keyboard.press("End")
    assert page.locator(".tag.is-given").count() <= 1
    assert page.locator(".expected").inner_text() != everything and "Precision" in everything and "Recall" in everything
    assert page.get_by_label("Tags are given by").input_value() == "threshold"


def test_a_target_moves_the_line(page):
    write(page, CAT_TEXT)
    choice = page.get_by_label("Tags are given by")
    choice.select_option("recall=0.9")
    assert choice.locator("option:checked").inner_text() == "at least 90% found"
    found = float(page.locator(".key.recall b").inner_text().rstrip("%"))
    assert found >= 90 and page.locator(".tag.is-given").count() >= 1


def test_only_some_labels_and_never_some(page):
    write(page, CAT_TEXT)
    page.get_by_text("Only some labels, or never some").click()
    only = page.get_by_role("combobox", name="Only these")
    for typed, found in (("dog", "Dogs"), ("fel", "Cats")):  # an alternative name finds it too
        only.fill(typed)
        page.get_by_role("option", name=found).wait_for()
        with page.expect_response("**/suggest"):
            only.press("Enter")
    expect(page.locator(".tag")).to_have_count(2)
    assert sorted(names(page)) == ["Cats", "Dogs"]
    page.get_by_role("button", name="Remove Dogs").click()
    expect(page.locator(".tag")).to_have_count(1)
    page.get_by_role("button", name="Remove Cats").click()
    expect(page.locator(".tag")).to_have_count(N_LABELS)
    page.locator(".tag-head", has_text="Cats").click()
    page.get_by_role("button", name="Never this one").click()
    expect(page.locator(".tag")).to_have_count(N_LABELS - 1)
    assert "Cats" not in names(page)


def test_details_of_a_label_lead_up_and_down_the_hierarchy(page):
    write(page, CAT_TEXT)
    page.locator(".tag-head", has_text="Cats").click()
    more = page.locator(".tag-more:visible")
    more.get_by_text("felines").wait_for()
    assert f"{BASE}cats" in more.inner_text() and "training texts" in more.inner_text()
    more.get_by_role("button", name="Animals").click()
    more.get_by_role("button", name="Birds").click()
    more.get_by_role("heading", name="Birds").wait_for()
    more.get_by_role("button", name="Back to Cats").click()
    more.get_by_role("link", name="Show among all labels").click()
    page.locator(".label-detail").get_by_role("heading", name="Cats").wait_for()


def test_given_tags_are_copied_as_json_and_csv(browser, address):
    with opened(browser, address, permissions=["clipboard-read", "clipboard-write"]) as page:
        write(page, "the proof of a theorem in algebra")
        page.get_by_role("slider").focus()
        page.keyboard.press("Home")
        page.get_by_role("button", name="Copy the given tags as JSON").click()
        copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
        assert len(copied) == N_LABELS and copied[0]["label"] == f"{BASE}formula" and 0 < copied[0]["probability"] <= 1
        page.get_by_role("button", name="Copy the given tags as CSV").click()
        page.wait_for_timeout(50)
        table = list(csv.DictReader(io.StringIO(page.evaluate("navigator.clipboard.readText()"))))
        assert table[0]["label"] == f"{BASE}formula" and table[0]["name"] == f"'{FORMULA}"  # no formula any more


def drop(page, where, name, content, kind):
    page.evaluate(
        """([where, name, content, kind]) => {
            const data = new DataTransfer();
            data.items.add(new File([content], name, { type: kind }));
            document.querySelector(where).dispatchEvent(
                new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }""",
        [where, name, content, kind],
    )


def test_files_are_dropped_and_opened(page):
    drop(page, ".paper", "note.txt", CAT_TEXT, "text/plain")
    page.locator(".tag", has_text="Cats").wait_for()
    assert page.locator(".paper-text").input_value() == CAT_TEXT
    html = "<title>no</title><p>A car &amp; <b>engine</b></p><script>hacked=1</script><img src=x onerror='hacked=1'>"
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open a file").click()
    chooser.value.set_files([{"name": "a.html", "mimeType": "text/html", "buffer": html.encode()}])
    expect(page.locator(".paper-text")).to_have_value("A car & engine")
    drop(page, ".paper", "photo.png", "PNG", "image/png")
    page.get_by_text("photo.png is not a text file").wait_for()


def test_a_text_without_known_words_says_so(page):
    page.fill(".paper-text", "qqqq zzzz")
    page.get_by_text("The model knows no word of this text").wait_for()


def test_names_and_texts_that_are_markup_stay_text(page):
    text = f"cheese of the dairy cellar <script>window.hacked=1</script>{EVIL}"
    write(page, text)
    assert names(page)[0] == EVIL
    page.locator(".tag-head").first.click()
    page.locator(".tag-more .card-name", has_text="cheese").wait_for()
    go(page, "compare")
    page.locator(".pair-name", has_text=EVIL).first.wait_for()
    go(page, "labels")
    page.get_by_role("searchbox").fill("img")
    page.locator(".hit", has_text=EVIL).click()
    page.locator(".label-detail .card-name", has_text=EVIL).wait_for()
    assert page.locator("img").count() == 0 and page.locator("main script").count() == 0


def test_two_models_side_by_side(page):
    page.fill(".paper-text", "the kitten sat beside a car with an engine on the harbour")
    go(page, "compare")
    page.get_by_label("First model").select_option("small")
    page.get_by_label("Second model").select_option("things")
    page.locator(".pairs li").first.wait_for()
    shown = page.locator(".pair-lists").inner_text()
    assert "The models differ in" in shown or "Both models give the same tags" in shown
    assert page.locator(".pairs .side.left").count() == page.locator(".pairs .side.right").count() > 0
    page.get_by_label("Second model").select_option("small")
    page.locator("main").get_by_text("Both models give the same tags").wait_for()


def test_a_file_is_tagged_and_downloaded(page):
    go(page, "batch")
    table = "key;note;body\n" + "".join(f"{i};x;{text}\n" for i, text in enumerate(rows(40, seed=1)[0]))
    page.set_input_files("main input[type=file]", [{"name": "b.csv", "mimeType": "text/csv", "buffer": table.encode()}])
    assert page.get_by_label("Column with the text").input_value() == "body"
    page.get_by_text("Join further columns").click()
    assert page.get_by_role("checkbox", name="body").is_disabled()
    page.get_by_role("checkbox", name="note").check()
    expect(page.locator(".preview th.chosen")).to_have_text(["note", "body"])
    page.get_by_label("Tags a row, at most").fill("2")
    page.get_by_role("button", name="Tag the file").click()
    page.get_by_text("done · 40 of 40 rows").wait_for()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    got = list(csv.DictReader(io.StringIO(download.value.path().read_text("utf-8-sig"))))
    assert download.value.suggested_filename == "labels.csv"
    assert {row["id"] for row in got} == {str(i) for i in range(40)} and len(got) == 80
    with page.expect_download() as download:
        page.get_by_role("link", name="JSONL").click()
    assert len(download.value.path().read_text("utf-8").splitlines()) == 40
    page.reload()  # it is still there
    page.get_by_text("done · 40 of 40 rows").wait_for()
    page.get_by_role("button", name="Remove").click()
    expect(page.locator(".job")).to_have_count(0)


def test_a_file_like_the_training_file_is_read_as_that_was(browser, tmp_path):
    tagger = lt.Tagger("ova", random_state=0).fit(*rows(60))
    tagger.data_["reading"] = {"format": "csv", "text_column": ["note", "body"], "id_column": "key"}
    table = {"name": "b.csv", "mimeType": "text/csv", "buffer": b"key,body,note\na7,a kitten,purring\n"}
    settings = ServeSettings({"kept": tagger.save(tmp_path / "kept")}, log_requests=False)
    with serving(settings) as address, opened(browser, address, "batch") as page:
        page.set_input_files("main input[type=file]", [table])
        assert page.get_by_label("Column with the text").input_value() == "note"
        expect(page.get_by_role("checkbox", name="body")).to_be_checked()
        page.get_by_text("The column “key” says in the result which row is meant.").wait_for()
        page.get_by_role("button", name="Tag the file").click()
        with page.expect_download() as download:
            page.get_by_role("link", name="CSV").click()
        got = list(csv.DictReader(io.StringIO(download.value.path().read_text("utf-8-sig"))))
        assert got[0]["id"] == "a7" and got[0]["place"] == "1" and got[0]["label"] == f"{BASE}cats"


def test_a_file_can_be_cancelled_and_a_broken_one_says_why(page):
    go(page, "batch")
    line = json.dumps({"id": "a", "text": CAT_TEXT}) + "\n"
    file = {"name": "many.jsonl", "mimeType": "", "buffer": (line * 60_000).encode()}
    page.set_input_files("main input[type=file]", [file])
    page.get_by_role("button", name="Tag the file").click()
    page.locator(".job progress").wait_for()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".job")).to_have_count(0)
    broken = {"name": "bad.jsonl", "mimeType": "", "buffer": (line + '{"text": 3}\n').encode()}
    page.set_input_files("main input[type=file]", [broken])
    page.get_by_role("button", name="Tag the file").click()
    page.locator(".job .notice.bad").wait_for()
    assert "line 2" in page.locator(".job .notice.bad").inner_text()
    page.set_input_files("main input[type=file]", [{"name": "x.csv", "mimeType": "", "buffer": b"PNG\x00\x01"}])
    page.get_by_text("x.csv cannot be read as CSV").wait_for()


def test_labels_are_searched_and_the_tree_walked_by_key(page):
    go(page, "labels")
    page.get_by_role("treeitem", name="Animals").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_role("treeitem", name="Birds").wait_for()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.locator(".label-detail").get_by_role("heading", name="Birds").wait_for()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.get_by_role("treeitem", name="Animals").get_attribute("aria-expanded") == "false"
    page.get_by_role("searchbox").fill("FELÍ")  # without capitals and accents
    page.locator(".hit", has_text="also felines").wait_for()
    page.keyboard.press("Enter")
    page.locator(".label-detail").get_by_role("heading", name="Cats").wait_for()
    page.reload()  # the address names the label
    page.locator(".label-detail").get_by_role("heading", name="Cats").wait_for()


def test_german_from_the_browser_and_by_the_switch(browser, address):
    with opened(browser, address, locale="de-AT") as page:
        page.get_by_role("link", name="Ausprobieren", exact=True).wait_for()
        write(page, CAT_TEXT)
        assert page.evaluate("document.documentElement.lang") == "de" and names(page)[0] == "Katzen"
        page.get_by_role("button", name="Page in English").click()
        page.get_by_role("link", name="Compare").wait_for()
        page.locator(".tag", has_text="Cats").wait_for()
        page.reload()
        page.get_by_role("link", name="Compare").wait_for()


def test_refusals_are_said_in_german(browser, address):
    with opened(browser, address, locale="de-DE", view="labels/nothing-of-this-name") as page:
        page.get_by_text("Das Modell hat kein Schlagwort nothing-of-this-name.").wait_for()
        page.goto(f"{address}/#/batch")
        broken = {"name": "bad.jsonl", "mimeType": "", "buffer": b'{"text": "a"}\n{"text": 3}\n'}
        page.set_input_files("main input[type=file]", [broken])
        page.get_by_role("button", name="Datei verschlagworten").click()
        page.locator(".job .notice.bad").wait_for()
        said = page.locator(".job .notice.bad").inner_text()
        assert said.startswith("Das hat nicht geklappt. Der Server sagt: „") and "line 2" in said


def test_colours_follow_the_system_and_the_switch(browser, address):
    background = "getComputedStyle(document.body).backgroundColor"
    with opened(browser, address, color_scheme="dark") as page:
        dark = page.evaluate(background)
        page.get_by_role("button", name="Colours: as the system").click()
        light = page.evaluate(background)
        assert light != dark
        page.reload()
        page.wait_for_selector("main.view-try")
        assert page.evaluate(background) == light
        page.get_by_role("button", name="Colours: light").click()
        assert page.evaluate(background) == dark


def test_a_server_that_is_gone_is_said_and_comes_back(page):
    write(page, CAT_TEXT)
    page.context.set_offline(True)
    page.fill(".paper-text", "an engine")
    page.get_by_text("The server cannot be reached.").wait_for()
    page.context.set_offline(False)
    page.locator(".paper-text").press("Control+Enter")
    page.locator(".tag", has_text="Cars").wait_for()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(browser, address, width, scheme):
    with opened(browser, address, viewport={"width": width, "height": 800}, color_scheme=scheme) as page:
        write(page, f"{CAT_TEXT} And the harbour with a ship, a captain, cheese and flour.")
        page.locator(".tag-head").first.click()
        page.locator(".tag-more .rows-line").wait_for()
        page.get_by_text("Only some labels, or never some").click()
        page.get_by_role("combobox", name="Only these").fill("c")
        page.locator(".option").first.wait_for()
        found = {"try": (complaints(page), is_wider_than_screen(page))}
        go(page, "compare")
        page.locator(".pairs li").first.wait_for()
        found["compare"] = complaints(page), is_wider_than_screen(page)
        go(page, "labels")
        page.locator("[role=treeitem] .tree-row").first.click()
        page.locator(".label-detail .rows-line").wait_for()
        found["labels"] = complaints(page), is_wider_than_screen(page)
        go(page, "batch")
        table = {"name": "b.csv", "mimeType": "text/csv", "buffer": b"id,text\n1,a kitten\n"}
        page.set_input_files("main input[type=file]", [table])
        page.locator(".preview").wait_for()
        found["batch"] = complaints(page), is_wider_than_screen(page)
        assert found == {view: ([], False) for view in found}


def test_an_address_that_is_none_shows_a_view(browser, address):
    with opened(browser, address) as page:
        page.goto(f"{address}/#/labels/%")
        page.reload()
        page.wait_for_selector("main.view-try")
