// A WebSocket that comes back by itself: after 0.3 s, then ever longer up to 10 s, and at once when the network returns.
const FINAL = new Set([4401, 4404]);

export class LastingSocket {
  constructor(address, { onMessage, onOpen, onLost, onEnd }) {
    this.address = address; // () => path, asked anew at each connection
    this.on = { onMessage, onOpen, onLost, onEnd };
    this.failures = 0;
    addEventListener("online", () => this.now());
    addEventListener("pageshow", (event) => event.persisted && this.now());
    this.connect();
  }

  connect() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    this.socket = new WebSocket(`${scheme}//${location.host}${this.address()}`);
    this.socket.onopen = () => {
      this.isOpen = true;
    };
    this.socket.onmessage = (event) => {
      this.welcome();
      this.on.onMessage?.(JSON.parse(event.data));
    };
    this.socket.onclose = (event) => this.closed(event);
    // Refusals come as a close right after the opening: only what stays open a moment counts as connected.
    this.settling = setTimeout(() => this.isOpen && this.welcome(), 250);
  }

  welcome() {
    if (!this.welcomed) {
      this.welcomed = true;
      this.failures = 0;
      this.on.onOpen?.();
    }
  }

  // For good: there is nothing more to come.
  end() {
    this.isOver = true;
    clearTimeout(this.retry);
    this.socket.close();
  }

  closed(event) {
    clearTimeout(this.settling);
    this.isOpen = this.welcomed = false;
    if (this.isOver) {
      return;
    }
    if (FINAL.has(event.code)) {
      this.on.onEnd?.(event.code);
      return;
    }
    this.on.onLost?.();
    const wait = Math.min(10_000, 300 * 2 ** this.failures) * (0.8 + Math.random() * 0.4);
    this.failures += 1;
    this.retry = setTimeout(() => this.connect(), wait);
  }

  now() {
    if (!this.isOver && this.socket.readyState === WebSocket.CLOSED) {
      clearTimeout(this.retry);
      this.connect();
    }
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) {
      this.socket.send(JSON.stringify(message));
    }
  }
}
