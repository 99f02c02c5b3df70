// The bar that says when a page is no longer updated: while the connection is lost, and after the end of the session.
import { announce } from "./announce.js";
import { keepForLogin } from "./typed_texts.js";

const LOGGED_OUT = 4401;
const bar = document.querySelector("[data-lost], [data-inbox-lost]");
const lostText = bar?.textContent;
const run = document.querySelector("[data-run]");

function show(text, link = null) {
  if (!bar) {
    return;
  }
  const wasShown = !bar.hidden && bar.textContent.startsWith(text);
  bar.replaceChildren(text);
  if (link) {
    bar.append(" ", link);
  }
  bar.hidden = false;
  run?.setAttribute("data-link-down", "");
  if (!wasShown) {
    announce(bar.textContent);
  }
}

function buildLoginLink() {
  const link = document.createElement("a");
  link.href = `/login/?next=${encodeURIComponent(location.pathname + location.search)}`;
  link.textContent = "Log in";
  link.addEventListener("click", keepForLogin);
  return link;
}

function showLoggedOut() {
  show("You are logged out. Your text is kept.", buildLoginLink());
}

export const showLost = () => show(lostText);

export function showConnected() {
  if (bar && !bar.hidden) {
    bar.hidden = true;
    run?.removeAttribute("data-link-down");
    announce("Connected again.");
  }
}

export function showClosed(code) {
  if (code === LOGGED_OUT) {
    showLoggedOut();
  } else {
    show("This page no longer updates. Reload it.");
  }
}

document.addEventListener("logged-out", showLoggedOut);
document.addEventListener("logged-in", showConnected);
