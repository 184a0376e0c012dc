// Signing in with a token, as a page of its own or over what is being done.

import { field, h, newId } from "./dom.js";
import { signIn } from "./server.js";
import { t } from "./words.js";

/** The form; `done` is called once the token is taken. */
export function signInForm(done, ...more) {
  const problem = h("p", { class: "notice bad", role: "alert", hidden: true });
  const token = h("input", { type: "password", autocomplete: "current-password", required: true, spellcheck: "false", name: "token" });
  const send = h("button", { type: "submit", class: "button main" }, h("span", null, t("sign-in.send")));
  const submit = async (event) => {
    event.preventDefault();
    problem.hidden = true;
    send.disabled = true;
    try {
      await signIn(token.value.trim());
      await done();
    } catch (error) {
      problem.textContent = error.status === 0 ? t("offline") : error.message;
      problem.hidden = false;
      token.focus();
      token.select();
    } finally {
      send.disabled = false;
    }
  };
  return h("form", { class: "sign-in", onsubmit: submit },
    h("h1", null, t("sign-in.title")),
    h("p", { class: "soft" }, t("sign-in.about")),
    field(t("sign-in.token"), token),
    problem,
    h("div", { class: "line" }, send, more));
}

let open = null;
let putOff = false; // whether the question was closed without an answer, and nothing was done since

for (const done of ["keydown", "pointerdown"]) addEventListener(done, () => (putOff = false), { capture: true });

/** Ask for the token because an answer of the server needs it: not again before the person who put it off does something. */
export function askToSignIn() {
  if (!putOff) openSignIn();
}

/** Ask for the token in a dialog; the promise says whether it was given. */
export function openSignIn() {
  if (open) return open;
  open = new Promise((resolve) => {
    const dialog = h("dialog", { class: "dialog", "aria-label": t("sign-in.title"), id: newId("dialog") });
    let signed = false;
    const close = h("button", { type: "button", class: "button", onclick: () => dialog.close() }, t("cancel"));
    dialog.append(signInForm(async () => {
      signed = true;
      dialog.close();
    }, close));
    dialog.addEventListener("close", () => {
      dialog.remove();
      open = null;
      putOff = !signed;
      resolve(signed);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return open;
}
