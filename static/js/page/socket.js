// A WebSocket that reconnects: after 0.3 s, then after longer and longer waits up to 10 s, and at once when the network
// returns.
const LOGGED_OUT = 4401;
const NOT_FOUND = 4404;

export class ReconnectingSocket {
  constructor(address, { onMessage, onOpen, onLost, onEnd }) {
    this.address = address; // a function, called for each connection
    this.on = { onMessage, onOpen, onLost, onEnd };
    this.failures = 0;
    addEventListener("online", () => this.reconnect());
    addEventListener("pageshow", (event) => event.persisted && this.reconnect());
    // A login in another tab counts here, too.
    document.addEventListener("visibilitychange", () => this.wasLoggedOut && !document.hidden && this.reconnect());
    document.addEventListener("logged-in", () => this.wasLoggedOut && this.reconnect());
    this.connect();
  }

  connect() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    this.socket = new WebSocket(`${scheme}//${location.host}${this.address()}`);
    this.socket.onopen = () => {
      this.isOpen = true;
    };
    this.socket.onmessage = (event) => {
      this.noteConnection();
      this.on.onMessage?.(JSON.parse(event.data));
    };
    this.socket.onclose = (event) => this.handleClose(event);
    // The server refuses with a close code right after opening, so only a socket that stays open counts as connected.
    this.settling = setTimeout(() => this.isOpen && this.noteConnection(), 250);
  }

  noteConnection() {
    if (!this.isConnected) {
      this.isConnected = true;
      this.failures = 0;
      this.on.onOpen?.();
    }
  }

  // Closes the socket without reconnecting.
  end() {
    this.hasEnded = true;
    clearTimeout(this.retry);
    this.socket.close();
  }

  handleClose(event) {
    const wasConnected = this.isConnected;
    clearTimeout(this.settling);
    this.isOpen = this.isConnected = false;
    if (this.hasEnded) {
      return;
    }
    if (event.code === LOGGED_OUT && wasConnected) {
      this.connect(); // the session of this socket has ended, but there may be a new one
      return;
    }
    if (event.code === LOGGED_OUT || event.code === NOT_FOUND) {
      this.wasLoggedOut = event.code === LOGGED_OUT;
      this.on.onEnd?.(event.code);
      return;
    }
    this.on.onLost?.();
    const wait = Math.min(10_000, 300 * 2 ** this.failures) * (0.8 + Math.random() * 0.4);
    this.failures += 1;
    this.retry = setTimeout(() => this.connect(), wait);
  }

  reconnect() {
    if (!this.hasEnded && this.socket.readyState === WebSocket.CLOSED) {
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
