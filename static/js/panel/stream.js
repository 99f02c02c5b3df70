// The text that the model writes, until its line comes. Pieces have no number: they wait until the line of their pass is
// there, and a pass that is asked again begins from its first word, even where another worker has taken over unnoticed.
import { visible } from "../page/visible.js";

export class TextStream {
  constructor(lines) {
    this.lines = lines;
    this.waiting = new Map(); // text by pass, for passes without a line
    this.slot = "";
    this.epoch = 0; // the newest worker's
  }

  beginPass(pass) {
    this.lines.remove(`text-${pass}`);
    const text = this.waiting.get(pass);
    this.waiting.clear();
    if (text) {
      this.show({ pass_number: pass, epoch: this.epoch, text });
    }
  }

  drop() {
    if (this.lines.find(this.slot)?.classList.contains("streaming")) {
      this.lines.remove(this.slot);
    }
    this.waiting.clear();
  }

  show({ pass_number: pass, epoch, text }) {
    if (epoch < this.epoch) {
      return;
    }
    if (epoch > this.epoch) {
      this.epoch = epoch;
      this.drop();
    }
    if (!this.lines.find(`pass-${pass}`)) {
      this.waiting.set(pass, (this.waiting.get(pass) ?? "") + text);
      return;
    }
    const line = this.lines.find(`text-${pass}`) ?? this.addLine(`text-${pass}`);
    if (line.classList.contains("streaming")) {
      const paragraph = line.firstChild;
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
