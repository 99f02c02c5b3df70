// Shows the text of the model while it is written, until its finished line arrives. Pieces have no event number: they
// wait for the line of their pass. If the model is asked again in a pass, even by another worker, the text of the pass
// starts over.
import { visible } from "../page/visible.js";

export class TextStream {
  constructor(lines) {
    this.lines = lines;
    this.waiting = new Map(); // text by pass, for passes without a line
    this.slot = "";
    this.epoch = 0; // of the newest worker
  }

  beginPass(pass) {
    this.lines.remove(`text-${pass}`);
    const text = this.waiting.get(pass);
    this.waiting.clear();
    if (text) {
      this.show({ pass_number: pass, epoch: this.epoch, text, start: 0 });
    }
  }

  drop() {
    if (this.lines.find(this.slot)?.classList.contains("streaming")) {
      this.lines.remove(this.slot);
    }
    this.waiting.clear();
  }

  // A text that starts at 0 comes from its beginning: after a new connection, or on a page that was opened late.
  show({ pass_number: pass, epoch, text, start }) {
    if (epoch < this.epoch) {
      return;
    }
    if (epoch > this.epoch) {
      this.epoch = epoch;
      this.drop();
    }
    if (!this.lines.find(`pass-${pass}`)) {
      this.waiting.set(pass, start === 0 ? text : (this.waiting.get(pass) ?? "") + text);
      return;
    }
    const line = this.lines.find(`text-${pass}`) ?? this.addLine(`text-${pass}`);
    if (line.classList.contains("streaming")) {
      const paragraph = line.firstChild;
      if (start === 0) {
        paragraph.replaceChildren();
      }
      paragraph.append(visible(text, paragraph.lastChild?.data));
      this.lines.noteMove(line);
    }
  }

  addLine(slot) {
    const line = document.createElement("li");
    line.className = "line model-text streaming";
    line.dataset.slot = this.slot = slot;
    line.append(Object.assign(document.createElement("p"), { className: "text" }));
    this.lines.place(line);
    return line;
  }
}
