// The frame of the page: views by address, the model that is asked, sign in, language and colours.

import { announce, button, h, icon, show, svg } from "./dom.js";
import { events, hasReviews, known, may, meetServer, signOut } from "./server.js";
import { chooseModel, chosenModel, draft } from "./settings.js";
import { askToSignIn, signInForm } from "./sign_in.js";
import { LANGUAGES, chooseLanguage, currentLanguage, t } from "./words.js";

// Views with models of their own do not follow the choice in the header: reviews are of the default model.
const VIEWS = [
  { name: "try", load: () => import("./views/try.js") },
  { name: "compare", ownModel: true, load: () => import("./views/compare.js") },
  { name: "batch", load: () => import("./views/batch.js") },
  { name: "labels", load: () => import("./views/labels.js") },
  { name: "review", ownModel: true, load: () => import("./views/review.js"), needs: "review", reviews: true },
  { name: "dashboard", ownModel: true, load: () => import("./views/dashboard.js"), needs: "review", reviews: true },
  { name: "models", ownModel: true, load: () => import("./views/models.js"), needs: "admin" },
];
const THEMES = ["auto", "light", "dark"];

const page = document.getElementById("page");
let leave = null; // what the shown view does when it is left
let shownTo = null; // who the shown view is for, where somebody has signed in
let drawn = 0; // counts the views begun, so that a slow one does not draw over a later one

function address() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  try {
    return { name: name || "try", rest: rest.map(decodeURIComponent) };
  } catch {
    return { name: "try", rest: [] }; // no address of ours
  }
}

function offered() {
  if (known.session === null) return [];
  return VIEWS.filter((view) => (!view.needs || may(view.needs)) && (!view.reviews || hasReviews()));
}

function theme() {
  return document.documentElement.dataset.theme ?? "auto";
}

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("longtail.theme", name);
  } catch {
    // it holds until the page is closed then
  }
}

function themeButton() {
  const drawing = { auto: "auto", light: "sun", dark: "moon" }[theme()];
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
  const change = () => {
    setTheme(next);
    drawHeader();
    announce(t(`theme.${next}`));
    document.querySelector(".theme-button").focus();
  };
  return button("", change, { kind: "bare theme-button", icon: drawing, name: t(`theme.${theme()}`) });
}

function languageButton() {
  const next = LANGUAGES[(LANGUAGES.indexOf(currentLanguage()) + 1) % LANGUAGES.length];
  const change = async () => {
    await chooseLanguage(next);
    draw();
    document.querySelector(".language-button").focus();
  };
  const words = h("span", { lang: next }, next.toUpperCase());
  const name = t("language.switch");
  return h("button", { type: "button", class: "button bare language-button", onclick: change, title: name, "aria-label": `${next.toUpperCase()}: ${name}` }, words);
}

function accountButton() {
  if (!known.session?.csrf) return null; // nobody has signed in: all who can reach the server are treated alike
  const { name, role } = known.session;
  const leavePage = async () => {
    await signOut();
    draft.text = ""; // the next person finds nothing of this one
    draw();
  };
  return h("details", { class: "account" },
    h("summary", { class: "button bare", "aria-label": t("account.of", { name }) }, icon("user"), h("span", { class: "account-name" }, name)),
    h("div", { class: "popup" },
      h("p", null, h("strong", null, name)),
      h("p", { class: "soft" }, t(`role.${role}`)),
      button(t("account.leave"), leavePage)));
}

function modelSelect() {
  if (known.models.length < 2 || VIEWS.find((view) => view.name === address().name)?.ownModel) return null;
  const change = (event) => {
    chooseModel(event.target.value);
    drawView();
  };
  const options = known.models.map(({ id, title }) =>
    h("option", { value: id, selected: id === chosenModel() }, title || id));
  return h("label", { class: "model-choice" }, h("span", { class: "caption" }, t("model")), h("select", { onchange: change }, options));
}

function mark() {
  const bars = [[0, 22], [5, 14], [10, 8.5], [15, 5], [20, 3]];
  return svg("svg", { class: "mark", viewBox: "0 0 24 22", "aria-hidden": "true" },
    bars.map(([x, height]) => svg("rect", { x, y: 22 - height, width: 3.4, height, rx: 1 })));
}

function drawHeader() {
  const current = address().name;
  const links = offered().map(({ name }) =>
    h("li", null, h("a", { href: `#/${name}`, "aria-current": name === current ? "page" : null, "data-words": t(`${name}.nav`) }, t(`${name}.nav`))));
  show(document.getElementById("head"),
    h("a", { class: "wordmark", href: "#/try", "aria-label": `longtail: ${t("try.nav")}` }, mark(), h("span", null, "longtail")),
    links.length > 0 && h("nav", { "aria-label": t("views") }, h("ul", null, links)),
    h("div", { class: "tools" }, modelSelect(), languageButton(), themeButton(), accountButton()));
  document.querySelector("nav a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

async function drawView() {
  const main = document.getElementById("main");
  const turn = (drawn += 1);
  leave?.();
  leave = null;
  const { name, rest } = address();
  shownTo = known.session?.name ?? null;
  if (known.session === null) {
    document.title = `${t("sign-in.title")} · longtail`;
    main.className = "view narrow";
    show(main, signInForm(draw));
    main.querySelector("input").focus();
    return;
  }
  const view = offered().find((one) => one.name === name) ?? offered()[0];
  document.title = `${t(`${view.name}.nav`)} · longtail`;
  if (known.models.length === 0) {
    main.className = "view";
    show(main, h("p", { class: "empty" }, t("models.none")));
    return;
  }
  try {
    const { render } = await view.load();
    if (turn !== drawn) return;
    main.replaceChildren();
    main.className = `view view-${view.name}`;
    leave = (await render(main, { model: view.reviews || view.needs ? known.defaultModel : chosenModel(), rest })) ?? null;
  } catch (error) {
    main.className = "view";
    show(main, notice(error));
  }
}

function notice(error) {
  return h("p", { class: "notice bad", role: "alert" }, error.status === 0 ? t("offline") : error.message);
}

function draw() {
  show(page,
    h("a", { class: "skip", href: "#main", onclick: skip }, t("skip")),
    h("header", { id: "head" }),
    h("main", { id: "main", tabindex: "-1" }));
  drawHeader();
  return drawView();
}

function skip(event) {
  event.preventDefault(); // the address says which view is shown
  document.getElementById("main").focus();
}

async function begin() {
  await chooseLanguage();
  try {
    await meetServer();
  } catch (error) {
    show(page, h("main", { class: "view narrow" }, h("h1", null, "longtail"), notice(error), button(t("again"), () => location.reload(), { kind: "main" })));
    return;
  }
  addEventListener("hashchange", () => {
    drawHeader();
    drawView().then(() => document.getElementById("main").focus({ preventScroll: true }));
    scrollTo(0, 0);
  });
  events.addEventListener("models", () => document.getElementById("head") && drawHeader());
  events.addEventListener("signin-needed", () => known.session !== null && askToSignIn());
  events.addEventListener("session", () => {
    if (known.session === null || shownTo === null || shownTo === known.session.name) return;
    draft.text = ""; // somebody else has signed in
    draw();
  });
  document.addEventListener("click", (event) => {
    for (const open of document.querySelectorAll("details.account[open]")) if (!open.contains(event.target)) open.open = false;
  });
  document.addEventListener("keydown", (event) => {
    const open = event.key === "Escape" && document.querySelector("details.account[open]");
    if (open) {
      open.open = false;
      open.querySelector("summary").focus();
    }
  });
  await draw();
}

begin();
