// The page of notices: adds this browser, and enters the code that its service worker receives.
import { announce } from "./page/announce.js";

const form = document.querySelector("[data-add-browser]");
const worker = navigator.serviceWorker;

if (worker && "PushManager" in window && "Notification" in window) {
  worker.addEventListener("message", ({ data }) => enterCode(data));
  worker.getRegistration("/").then((registration) => registration?.active?.postMessage("code?"));
  if (form) {
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      addThisBrowser().catch((error) => explain(`This browser cannot be added: ${error.message}`));
    });
  }
}

async function addThisBrowser() {
  if ((await Notification.requestPermission()) !== "granted") {
    explain("Allow notifications for this site in your browser’s settings, then try again.");
    return;
  }
  await worker.register("/service-worker.js");
  const registration = await worker.ready;
  await endOldSubscription(registration.pushManager);
  const subscription = await registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: form.dataset.addBrowser,
  });
  const { endpoint, keys } = subscription.toJSON();
  const fields = { endpoint, p256dh: keys.p256dh, auth: keys.auth, name: nameBrowser() };
  for (const [name, value] of Object.entries(fields)) {
    form.elements.namedItem(name).value = value;
  }
  form.submit();
}

// A subscription that was made for another key of the installation gets no messages, and prevents a new one.
async function endOldSubscription(manager) {
  const subscription = await manager.getSubscription();
  const key = subscription?.options.applicationServerKey;
  if (key && encode(key) !== form.dataset.addBrowser) {
    await subscription.unsubscribe();
  }
}

function encode(buffer) {
  const text = btoa(String.fromCharCode(...new Uint8Array(buffer)));
  return text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function nameBrowser() {
  const agent = navigator.userAgent;
  const browser = ["Edg", "Firefox", "Chrome", "Safari"].find((name) => agent.includes(name)) ?? "Browser";
  const system = ["Android", "iPhone", "iPad", "Windows", "Mac", "Linux"].find((name) => agent.includes(name)) ?? "";
  return `${browser === "Edg" ? "Edge" : browser}${system ? ` on ${system}` : ""}`;
}

// The worker hands each code over once, so that a refused one is not sent again.
function enterCode({ code, channel }) {
  const field = document.querySelector(`[data-code-of="${Number(channel)}"] input[name=code]`);
  if (code && field) {
    field.value = code;
    field.form.requestSubmit();
  }
}

function explain(text) {
  form.querySelector("[data-problem]").textContent = text;
  announce(text);
}
