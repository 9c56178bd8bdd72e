// Adds live updates to the pages of zdc-todo, which also work without scripts.
"use strict";

const app = document.getElementById("app");
const notice = document.getElementById("notice");

function say(text, isLasting = false) {
  notice.textContent = text;
  clearTimeout(say.timer);
  if (!isLasting) clearNotice(6000);
}

// The user may be about to use the button in it.
function clearNotice(milliseconds) {
  say.timer = setTimeout(() => {
    if (notice.matches(":hover, :focus-within")) clearNotice(2000);
    else notice.textContent = "";
  }, milliseconds);
}

// The address of a page that offers to undo a deletion says so. A reload does not offer it again.
if (notice.firstElementChild) {
  history.replaceState(null, "", location.pathname);
  clearNotice(10000);
}

// --- The page follows the database ---

// Changes `old` until it equals `fresh`. Equal parts keep their state: the focus, the selection, an open menu.
// A field that the user has edited keeps the user's value. Only its default value, the stored one, is updated.
function morph(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  // A row that the page has as it is: most rows of a long list.
  if (fresh.dataset.same !== undefined) return isTicked(old) ? showStored(old) : undefined;
  // The full photo, or the progress of its download.
  if (old.dataset.shown !== undefined && old.dataset.version === fresh.dataset.version) return;
  const isUntouched = old.value === defaultValue(old);
  morphAttributes(old, fresh);
  if (old.tagName === "TEXTAREA") old.defaultValue = fresh.defaultValue;
  else morphChildren(old, fresh);
  if (isField(old) && isUntouched && old.value !== fresh.value) old.value = fresh.value;
}

// Whether the user has ticked a box, and the page does not show it as stored yet.
function isTicked(row) {
  const box = row.querySelector("[type=checkbox]");
  return box !== null && box.checked !== box.defaultChecked;
}

// After a tick that another device has undone. A tick that is being sent stays.
function showStored(row) {
  const box = row.querySelector("[type=checkbox]");
  if (!sending.has(box.form.action)) showTick(box, box.defaultChecked);
}

const isField = (element) => element.matches("textarea, select, input:not([type=checkbox], [type=file])");

function defaultValue(element) {
  if (element.tagName !== "SELECT") return element.defaultValue;
  return [...element.options].find((option) => option.defaultSelected)?.value ?? element.options[0]?.value;
}

function morphAttributes(old, fresh) {
  for (const { name, value } of [...fresh.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) {
    const isOfTheReader = name === "open" && old.tagName === "DETAILS";
    if (!fresh.hasAttribute(name) && !isOfTheReader) old.removeAttribute(name);
  }
  if (old.type === "checkbox") old.checked = fresh.hasAttribute("checked");
}

const isSame = (a, b) => a.nodeType === b.nodeType && a.tagName === b.tagName && (a.id || "") === (b.id || "");

function morphChildren(old, fresh) {
  const byID = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  let place = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    let found = wanted.id ? byID.get(wanted.id) : place && isSame(place, wanted) ? place : null;
    if (found && found.tagName !== wanted.tagName) found = null;
    if (!found) {
      if (wanted.dataset?.same !== undefined) continue;
      old.insertBefore(document.importNode(wanted, true), place);
      continue;
    }
    if (found !== place) old.insertBefore(found, place);
    else place = place.nextSibling;
    morph(found, wanted);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

let dragged = null;
const delayed = [];

// Each event names the rows that have not changed since the one before, so none may be left out.
function show(html) {
  if (dragged) return delayed.push(html);
  const fresh = new DOMParser().parseFromString(`<div>${html}</div>`, "text/html").body.firstElementChild;
  const focused = document.activeElement;
  keepTyped(fresh);
  morphChildren(app, fresh);
  keepFocus(focused);
}

// A form in which the user has typed stays when its task is deleted or moved elsewhere: the text is nowhere else.
function keepTyped(fresh) {
  const isLeft = (form) => [...fresh.querySelectorAll("form.fields")].some((other) => other.action === form.action);
  const isTyped = (form) => [...form.elements].some((field) => isField(field) && field.value !== defaultValue(field));
  if (![...app.querySelectorAll("form.fields")].some((form) => isTyped(form) && !isLeft(form))) return;
  fresh.querySelector("#main").replaceWith(document.getElementById("main").cloneNode(true));
  say("This item was deleted or moved. Copy your text before you leave.", true);
}

// A task that is ticked moves to the completed ones, where it is another element. They may be folded.
function keepFocus(focused) {
  const same = focused.isConnected ? focused : document.getElementById(focused.id);
  const target = same?.closest("details:not([open])")?.querySelector("summary") ?? same;
  if (target && target !== document.activeElement) target.focus({ preventScroll: true });
}

let source = null;
let seen = null;

function follow() {
  if (!app?.dataset.live) return;
  const address = new URL(app.dataset.live, location.href);
  if (seen) address.searchParams.set("seen", seen);
  source = new EventSource(address);
  source.onmessage = (event) => {
    seen = event.lastEventId || seen;
    show(event.data);
  };
  // The browser connects again unless the server refuses it, because zdc-todo was started again and has a new link.
  source.onerror = () => say("Not connected to zdc-todo. Reload the page.", source.readyState === EventSource.CLOSED);
}

// A browser opens six connections to a server, so hidden pages have none: a form would wait for one of them to close.
document.addEventListener("visibilitychange", () => {
  source?.close();
  if (!document.hidden) follow();
});

// --- Forms ---

// Forms whose requests are not answered yet, by their addresses: the last request of each. The next one waits for it, so
// that two ticks of one box arrive in their order.
const sending = new Map();

const sendForm = ({ action }, body) => inTurn(action, () => send(action, body));

function inTurn(turn, request) {
  const sent = (sending.get(turn) ?? Promise.resolve()).then(request).catch(() => null);
  sending.set(turn, sent);
  sent.then(() => sending.get(turn) === sent && sending.delete(turn));
  return sent;
}

// Returns the answer's text, or null if the request failed.
async function send(url, body, type) {
  const headers = { Accept: "application/json" };
  if (type) headers["Content-Type"] = type;
  // It is sent even if the page is closed. Browsers limit the size of such requests.
  const keepalive = body instanceof URLSearchParams && `${body}`.length < 16_000;
  const answer = await fetch(url, { method: "POST", body, headers, keepalive }).catch(() => null);
  if (!answer) {
    say("zdc-todo is not running. Start it again.");
    return null;
  }
  if (answer.ok) return answer.text();
  const text = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("h1")?.textContent;
  say(text || "That was not possible.");
  return null;
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  const question = event.submitter?.dataset.confirm;
  if (question && !confirm(question)) return event.preventDefault();
  if (form.dataset.quiet === undefined) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form));
  const leads = form.querySelector("[data-go]") !== null;  // the answer is the address of a page
  const cleared = form.querySelector("[data-clear]");
  if (cleared) cleared.value = "";
  const answer = await sendForm(form, body);
  const isDone = answer !== null;
  if (isDone && leads) return location.assign(answer);
  if (!isDone && cleared) restore(cleared, body.get(cleared.name));
  if (!isDone && !sending.has(form.action)) form.querySelectorAll("[data-submit]").forEach((box) => showTick(box, box.defaultChecked));
  if (isDone && form.closest(".menu")) form.closest(".menu").open = false;
  const done = event.submitter?.dataset.done ?? (form.classList.contains("fields") ? "Saved." : null);
  if (isDone && done) say(done);
});

// The user may have typed the next text before the answer to the first arrived.
function restore(field, text) {
  if (field.value === "") field.value = text;
  else say(`“${text}” was not stored.`, true);
}

function showTick(box, isDone) {
  box.checked = isDone;
  const { classList } = box.closest(".task") ?? box;
  for (const name of ["is-done", "is-ticked"]) classList.toggle(name, isDone);
}

document.addEventListener("change", async (event) => {
  const input = event.target;
  if (input.dataset.submit !== undefined) {
    showTick(input, input.checked);
    input.form.requestSubmit();
  } else if (input.dataset.upload && input.files[0]) {
    const [file] = input.files;
    if (input.dataset.confirm && !confirm(input.dataset.confirm)) return (input.value = "");
    if (file.size > 25e6) return say("The photo is larger than 25 MB.");
    say("The photo is being prepared …");
    const note = await send(input.dataset.upload, file, "application/octet-stream");
    if (note !== null) say(note || "The photo is attached.");
    input.value = "";
  }
});

// --- Photos: first the thumbnail, and the photo after its download ---

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-full]");
  if (!button) return;
  const figure = button.closest("figure");
  const [image, bar] = [figure.querySelector("img"), figure.querySelector("progress")];
  const [photo, version] = [figure.dataset.photo, image.dataset.version];
  const source = new EventSource(figure.dataset.progress);
  bar.hidden = false;
  bar.dataset.shown = "";
  const finish = () => {
    source.close();
    bar.hidden = true;
    delete bar.dataset.shown;
  };
  source.onmessage = ({ data }) => {
    if (image.dataset.version !== version) return finish();  // replaced in the meantime
    bar.value = Number(data) || 0;
    if (Number(data) < 1) return;
    image.src = photo;
    image.dataset.shown = "";
    finish();
  };
  source.onerror = () => {
    finish();
    say("The photo cannot be fetched now.");
  };
});

// A picture that cannot be loaded leaves a grey square.
document.addEventListener("error", (event) => event.target.matches?.("img.thumb") && event.target.classList.add("missing"), true);

// --- The order of tasks: with the mouse, or with the arrow keys on a task's handle ---

const rows = () => [...document.querySelectorAll("#open > .task")];

// Without an answer, the row returns to its place in front of `home`. Moves wait for each other, because the place of each
// depends on those before it.
async function move(row, next, home) {
  const url = new URL("move", row.querySelector("form").action);
  const body = new URLSearchParams({ before: next?.dataset.task ?? "" });
  const answer = await inTurn("move", () => send(url, body));
  if (answer === null && !sending.has("move")) putBack(row, home);
}

function putBack(row, home) {
  row.parentNode?.insertBefore(row, home?.parentNode === row.parentNode ? home : null);
}

let home = null;
let isDropped = false;

document.addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.("#open > .task");
  if (!dragged) return;
  [home, isDropped] = [dragged.nextElementSibling, false];
  dragged.classList.add("dragged");
  event.dataTransfer.effectAllowed = "move";
});

document.addEventListener("dragover", (event) => {
  const over = event.target.closest?.("#open > .task");
  if (!dragged) return;
  event.preventDefault();
  if (!over || over === dragged) return;
  const { top, height } = over.getBoundingClientRect();
  over.parentNode.insertBefore(dragged, event.clientY < top + height / 2 ? over : over.nextElementSibling);
});

document.addEventListener("drop", (event) => {
  if (!dragged) return;
  event.preventDefault();
  isDropped = true;
  move(dragged, dragged.nextElementSibling, home);
});

document.addEventListener("dragend", () => {
  if (dragged && !isDropped) putBack(dragged, home);
  dragged?.classList.remove("dragged");
  dragged = null;
  delayed.splice(0).forEach(show);
});

document.addEventListener("keydown", (event) => {
  const handle = event.target.closest?.(".handle");
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!handle || !step) return;
  event.preventDefault();
  const [row, all] = [handle.closest(".task"), rows()];
  const target = all.indexOf(row) + step;
  if (!all[target]) return say(step < 0 ? "This is the first task." : "This is the last task.");
  const next = step < 0 ? all[target] : all[target + 1];
  const home = row.nextElementSibling;
  row.parentNode.insertBefore(row, next ?? null);
  handle.focus();
  say(`Moved to place ${target + 1} of ${all.length}.`);
  move(row, next, home);
});

// --- Sharing ---

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy).textContent;
  const isCopied = await navigator.clipboard.writeText(text).then(() => true, () => false);
  say(isCopied ? "Copied." : "Select the text, and copy it.");
});

// A menu closes with Escape, and with a click outside of it.
document.addEventListener("keydown", (event) => {
  const menu = document.querySelector(".menu[open]");
  if (event.key !== "Escape" || !menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll(".menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

if (!document.hidden) follow();
