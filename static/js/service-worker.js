// Shows notices while no page is open. It serves no requests and caches nothing.
let lastCode = null; // { code, channel }, until a page has taken it

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  event.waitUntil(receive(event.data ? event.data.json() : {}));
});

async function receive(message) {
  await showCount(message.waiting ?? 0);
  await closeNotifications(message.close ?? []);
  if (!message.title) {
    return;
  }
  if (message.code) {
    lastCode = { code: message.code, channel: message.channel };
    await tellPages();
  }
  await self.registration.showNotification(message.title ?? "Gadget", {
    tag: message.tag,
    renotify: true,
    icon: "/static/icons/icon-192.png",
    data: { path: message.code ? `/notices/?code=${encodeURIComponent(message.code)}` : message.path },
  });
}

async function closeNotifications(tags) {
  for (const tag of tags) {
    for (const notification of await self.registration.getNotifications({ tag })) {
      notification.close();
    }
  }
}

// An open page shows the waiting cards, so their notifications are no longer needed.
async function closeCards() {
  for (const notification of await self.registration.getNotifications()) {
    if (notification.tag.startsWith("card-") || notification.tag === "several") {
      notification.close();
    }
  }
}

// The number on the icon of the installed page.
async function showCount(count) {
  try {
    await (count ? self.navigator.setAppBadge?.(count) : self.navigator.clearAppBadge?.());
  } catch {
    // Only installed pages have one.
  }
}

async function tellPages() {
  for (const page of await self.clients.matchAll({ type: "window", includeUncontrolled: true })) {
    if (lastCode && new URL(page.url).pathname === "/notices/") {
      page.postMessage(lastCode);
      lastCode = null;
    }
  }
}

self.addEventListener("message", (event) => {
  if (event.data === "opened") {
    event.waitUntil(closeCards());
  }
  if (event.data === "code?" && lastCode) {
    event.source.postMessage(lastCode);
    lastCode = null;
  }
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data?.path ?? "/"));
});

async function open(path) {
  const address = new URL(path, self.location.origin);
  if (address.origin !== self.location.origin) {
    return;
  }
  for (const page of await self.clients.matchAll({ type: "window" })) {
    if (new URL(page.url).pathname === address.pathname) {
      await page.focus();
      return;
    }
  }
  await self.clients.openWindow(address.href);
}
