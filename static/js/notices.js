// The page of notices: adds this browser, and enters the code that its service worker receives.
import { announce } from "./page/announce.js";

const form = document.querySelector("[data-add-browser]");
const worker = navigator.serviceWorker;

if (form && worker && "PushManager" in window && "Notification" in window) {
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    addThisBrowser().catch((error) => explain(`This browser cannot be added: ${error.message}`));
  });
  worker.addEventListener("message", ({ data }) => enterCode(data.code));
  worker.getRegistration("/").then((registration) => registration?.active?.postMessage("code?"));
}

async function addThisBrowser() {
  if ((await Notification.requestPermission()) !== "granted") {
    explain("Allow notifications for this site in your browser’s settings, then try again.");
    return;
  }
  await worker.register("/service-worker.js");
  const registration = await worker.ready;
  const subscription = await registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: form.dataset.addBrowser,
  });
  const { endpoint, keys } = subscription.toJSON();
  Object.assign(form.elements.endpoint, { value: endpoint });
  Object.assign(form.elements.p256dh, { value: keys.p256dh });
  Object.assign(form.elements.auth, { value: keys.auth });
  Object.assign(form.elements.name, { value: nameBrowser() });
  form.submit();
}

function nameBrowser() {
  const agent = navigator.userAgent;
  const browser = ["Edg", "Firefox", "Chrome", "Safari"].find((name) => agent.includes(name)) ?? "Browser";
  const system = ["Android", "iPhone", "iPad", "Windows", "Mac", "Linux"].find((name) => agent.includes(name)) ?? "";
  return `${browser === "Edg" ? "Edge" : browser}${system ? ` on ${system}` : ""}`;
}

function enterCode(code) {
  const field = document.querySelector("[data-code-of-browser] input[name=code]");
  if (code && field) {
    field.value = code;
    field.form.requestSubmit();
  }
}

function explain(text) {
  form.querySelector("[data-problem]").textContent = text;
  announce(text);
}
