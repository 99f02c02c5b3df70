// Cards: guards against hasty and blind clicks, and decisions through the REST API; without this script they are plain forms.
import { keepAges } from "../page/ages.js";
import { announce } from "../page/announce.js";
import { elementsFrom, fetchPage } from "../page/fragments.js";
import { keepLengths } from "../page/length.js";
import { countDown, localTime, localTimes } from "../page/times.js";
import { visible } from "../page/visible.js";

const INERT_MS = 400;
const places = new WeakMap();
const movedAt = new WeakMap();

const csrfToken = () => document.querySelector('meta[name="csrf-token"]').content;
const topOf = (element) => Math.round(element.getBoundingClientRect().top + scrollY);

// The card as the server shows it now, or with `newest` the one that has taken its place.
async function fetched(card, newest) {
  return (await fetchPage(`${card.dataset.now}${newest ? "?newest=1" : ""}`)).querySelector("[data-card]");
}

// A card that has just appeared or moved takes no click for 0.4 s: the click was meant for what stood there before.
export function noteMoves() {
  for (const card of document.querySelectorAll("[data-card]")) {
    const top = topOf(card);
    if (places.get(card) !== top) {
      places.set(card, top);
      movedAt.set(card, performance.now());
    }
  }
}

function isInert(card) {
  return performance.now() - (movedAt.get(card) ?? performance.now()) < INERT_MS;
}

function clampsIn(card) {
  return [...card.querySelectorAll(".clamp, .rest")].filter((part) => part.closest(".sentence, .facts, .effect, .changed"));
}

const oneSpaced = (text) => text.trim().split(/\s+/).join(" ");

// Approve stays off while the edit form holds values that this card does not show. At destructive level it also stays
// off until the whole list and every shortened value were opened once, and the confirmation is typed.
function showApprove(card) {
  const unread = isGuarded(card) ? clampsIn(card).filter((clamp) => !("read" in clamp.dataset)) : [];
  const confirm = card.querySelector("[data-confirm]");
  const isConfirmed = !confirm || oneSpaced(confirm.value) === oneSpaced(confirm.dataset.confirm);
  const isEdited = "edited" in card.dataset;
  card.querySelector(".approve-button").disabled = unread.length > 0 || !isConfirmed || isEdited;
  card.querySelector("[data-unread]").hidden = !unread.length;
  const what = card.querySelector("[data-unread-what]");
  what.textContent = namesOf(unread, what.dataset.list);
  card.querySelector("[data-unsent]").hidden = !isEdited;
}

function namesOf(clamps, list) {
  const isThere = (selector) => clamps.some((clamp) => clamp.matches(selector));
  return [isThere(".rest") && list, isThere(".clamp") && "the shortened values"].filter(Boolean).join(" and ");
}

const isGuarded = (card) => card.classList.contains("level-destructive");

function guardApprove(card) {
  for (const clamp of clampsIn(card)) {
    clamp.addEventListener("toggle", () => {
      clamp.dataset.read = "";
      showApprove(card);
    });
  }
  card.querySelector("[data-confirm]")?.addEventListener("input", () => showApprove(card));
  card.querySelector("[data-open-all]")?.addEventListener("click", () => clampsIn(card).forEach((clamp) => (clamp.open = true)));
  showApprove(card);
}

// The two forms open in the same place: one closes the other, also where `details` do not do so by their name.
function keepOneForm(card) {
  const forms = [...card.querySelectorAll(".acts > details")];
  for (const one of forms) {
    one.addEventListener("toggle", () => one.open && forms.forEach((other) => (other.open &&= other === one)));
  }
}

// A card that came by itself has no edit form yet: it comes from the card's own page once it is opened.
async function fetchForm(card, edit) {
  const note = edit.querySelector("[data-late-form]:not([data-asked])");
  if (!note || !edit.open) {
    return;
  }
  note.dataset.asked = "";
  try {
    const form = (await fetchPage(card.querySelector(".own-page").href)).querySelector(`#${card.id} .edit > form`);
    if (form) {
      note.replaceWith(document.adoptNode(form));
      edit.dispatchEvent(new CustomEvent("form-came", { bubbles: true }));
    } else {
      await showCardNow(card, false);
    }
  } catch {
    delete note.dataset.asked;
    note.textContent = "The form could not be loaded. Close this and try again.";
  }
}

// Values typed into the edit form are on no card yet; closing the form takes them back.
function watchEdit(card) {
  const edit = card.querySelector("details.edit");
  edit?.addEventListener("input", () => {
    card.dataset.edited = "";
    showApprove(card);
  });
  edit?.addEventListener("toggle", () => {
    fetchForm(card, edit);
    if (!edit.open && "edited" in card.dataset) {
      edit.querySelector("form").reset();
      delete card.dataset.edited;
      showApprove(card);
    }
  });
}

export function prepareCards() {
  noteMoves();
  keepAges();
  keepLengths();
  for (const card of document.querySelectorAll("[data-card]:not([data-prepared])")) {
    card.dataset.prepared = "";
    if (card.querySelector(".approve-button")) {
      guardApprove(card);
      watchEdit(card);
      keepOneForm(card);
    }
    for (const form of card.querySelectorAll("[data-only-user]")) {
      form.hidden = form.dataset.onlyUser !== document.body.dataset.user;
    }
    if (card.dataset.notBy?.split(" ").includes(document.body.dataset.user)) {
      card.dataset.own = "";
    }
  }
}

function say(card, text) {
  const note = card.querySelector("[data-outcome]");
  if (note) {
    note.textContent = text;
    note.hidden = false;
  }
  announce(text);
}

// A control that is switched off loses the focus: until the answer is there, the card itself holds it.
const held = new WeakMap();

function lock(card) {
  card.dataset.locked = "";
  if (card.contains(document.activeElement)) {
    held.set(card, document.activeElement);
    card.focus({ preventScroll: true });
  }
  for (const control of card.querySelectorAll(".decide :is(button, input, select, textarea)")) {
    control.disabled = true;
  }
}

function unlock(card) {
  delete card.dataset.locked;
  card.removeAttribute("aria-busy");
  for (const control of card.querySelectorAll(".decide :is(button, input, select, textarea)")) {
    control.disabled = false;
  }
  if (card.querySelector(".approve-button")) {
    showApprove(card);
  }
  if (document.activeElement === card) {
    held.get(card)?.focus({ preventScroll: true });
  }
}

// Keep what was typed into a card's edit form when somebody else decides the card, so that it can be used again.
function keepTyped(card, now) {
  const kept = card.querySelector(".kept");
  if (kept) {
    now.append(kept);
    return;
  }
  const before = (input) => [...(input.options ?? [])].find((option) => option.defaultSelected)?.value ?? input.defaultValue ?? "";
  const inputs = [...card.querySelectorAll(".edit [name^='param.']")].filter((input) => input.value !== before(input));
  if (!("edited" in card.dataset) || inputs.length === 0) {
    return;
  }
  const list = document.createElement("dl");
  for (const input of inputs) {
    const name = Object.assign(document.createElement("dt"), { textContent: input.name.replace("param.", "").replaceAll(".", " · ") });
    const text = Object.assign(document.createElement("dd"), { textContent: visible(input.value) });
    list.append(name, text);
  }
  const words = "Your edit was not applied. Here is what you typed, so you can use it again:";
  const section = Object.assign(document.createElement("section"), { className: "kept" });
  section.append(Object.assign(document.createElement("p"), { className: "label", textContent: words }), list);
  now.append(section);
}

// The card as it is now, in the place of the one that was shown. Who was in that one finds themselves in this one.
export async function showCardNow(card, newest) {
  const fresh = await fetched(card, newest);
  if (!fresh || !card.isConnected) {
    return;
  }
  const [now] = elementsFrom(fresh.outerHTML);
  const hadFocus = card.contains(document.activeElement);
  keepTyped(card, now);
  const double = document.getElementById(now.id);
  if (double && double !== card) {
    (double.closest("[data-inbox-card]") ?? double).remove(); // the list was quicker to show it
  }
  card.replaceWith(now);
  now.dispatchEvent(new CustomEvent("card-shown", { bubbles: true }));
  if (hadFocus) {
    now.focus({ preventScroll: true });
  }
  localTimes(now);
  countDown(now);
  prepareCards();
}

// Locks a card that another one has replaced; the reader asks for the new one, which shows what changed.
export function offerNewCard(card, words = "This card has changed since it was shown. Nothing was decided. ") {
  if ("locked" in card.dataset && card.querySelector("[data-outcome] button")) {
    return;
  }
  card.removeAttribute("aria-busy");
  lock(card);
  say(card, words);
  const button = Object.assign(document.createElement("button"), {
    type: "button",
    className: "secondary",
    textContent: "Show the new card and what changed",
  });
  button.addEventListener("click", () => showCardNow(card, true));
  card.querySelector("[data-outcome]")?.append(button);
}

// A card that is decided or changed elsewhere while it is read says so; `words`, if it was not only read.
export async function lookAgain(card, words) {
  const newest = await fetched(card, true);
  if (!newest || !card.isConnected || "locked" in card.dataset) {
    return;
  }
  const isAnother = newest.dataset.card !== card.dataset.card;
  if (isAnother && !newest.matches(".unknown")) {
    offerNewCard(card, words);
  } else if (isAnother || !("open" in newest.dataset)) {
    await showCardNow(card, false);
  }
}

// A card that is still open stays as it is, with what is typed into it.
export async function showIfDecided(card) {
  const now = await fetched(card, false);
  if (now && !("open" in now.dataset)) {
    await showCardNow(card, false);
  }
}

// The same act on the same card is the same decision, however often it has to be sent.
function decisionId(card, act) {
  card.dataset[`${act}Id`] ??= crypto.randomUUID?.() ?? "";
  return card.dataset[`${act}Id`];
}

function bodyOf(form, card, submitter) {
  const field = (name) => form.elements.namedItem(name)?.value ?? "";
  const decision = { digest: card.dataset.digest, decision_id: decisionId(card, form.dataset.action) };
  switch (form.dataset.action) {
    case "approve":
      return { ...decision, grace_s: Number(form.dataset.grace), confirm: field("confirm") };
    case "deny":
      return { ...decision, reason: [field("preset"), field("reason")].filter(Boolean).join(". ") };
    case "undo":
      return {};
    case "answer":
      return { text: submitter?.name === "choice" ? submitter.value : field("text").trim(), decision_id: decision.decision_id };
    default:
      return { outcome: submitter?.value ?? "", reason: field("reason") };
  }
}

async function post(address, body) {
  return fetch(address, {
    method: "POST",
    credentials: "same-origin",
    headers: { "Content-Type": "application/json", "X-CSRFToken": csrfToken() },
    body: JSON.stringify(body),
  });
}

const sentence = (text) => (text.endsWith(".") ? text : `${text}.`);

function wordsOf(problem) {
  const when = problem.decided_at ? `, ${localTime(problem.decided_at)}` : "";
  return `Couldn’t do that: ${sentence(problem.detail + when)}`;
}

async function decide(form, card, submitter) {
  const body = bodyOf(form, card, submitter);
  card.setAttribute("aria-busy", "true");
  lock(card);
  let response;
  try {
    response = await post(form.dataset.api, body);
  } catch {
    leaveOpen(card, "Gadget could not be reached.");
    return;
  }
  try {
    await showOutcome(response, form, card);
  } catch {
    say(card, response.ok ? "Done. Reload the page to see the card as it is now." : "Couldn’t do that. Reload the page to see the card as it is now.");
    card.removeAttribute("aria-busy");
  }
}

async function showOutcome(response, form, card) {
  if (response.ok) {
    document.querySelectorAll(".notice[role]").forEach((notice) => notice.remove());
    await showCardNow(card, form.dataset.action === "undo");
    return;
  }
  const problem = await response.json().catch(() => ({ detail: `The server answered ${response.status}` }));
  if (response.status === 412 || problem.approval_status === "superseded") {
    offerNewCard(card);
  } else if (response.status === 409 || response.status === 410) {
    say(card, wordsOf(problem));
    await showCardNow(card, false);
    announce(wordsOf(problem));
  } else if (response.status >= 500) {
    leaveOpen(card, sentence(problem.detail));
  } else {
    unlock(card);
    say(card, wordsOf(problem));
  }
}

// A decision without a proper answer may have arrived all the same, and its bell rung while the card was busy.
function leaveOpen(card, why) {
  unlock(card);
  say(card, `${why} It is not known whether your decision arrived. If the card does not show it soon, press again.`);
  lookWhetherItArrived(card).catch((error) => console.warn("The card is not fresh:", error.message));
}

async function lookWhetherItArrived(card) {
  if ("open" in card.dataset) {
    await lookAgain(card, "This card has changed since it was shown. ");
    return;
  }
  const newest = await fetched(card, true);
  if (newest && "open" in newest.dataset) {
    await showCardNow(card, true);
  }
}

function withToken(form) {
  if (!form.elements.namedItem("csrfmiddlewaretoken")) {
    form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "csrfmiddlewaretoken", value: csrfToken() }));
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  const card = form.closest("[data-card]");
  if (!card || !form.dataset.action) {
    return;
  }
  if (isInert(card)) {
    event.preventDefault();
    say(card, "The list just moved. Check the card and press again.");
    return;
  }
  if (card.hasAttribute("data-locked")) {
    event.preventDefault();
    return;
  }
  if (form.dataset.action === "edit") {
    withToken(form);
    return;
  }
  event.preventDefault();
  decide(form, card, event.submitter);
});

new ResizeObserver(noteMoves).observe(document.body);
