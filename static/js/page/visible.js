// Shows hidden characters: zero-width, bidirectional and control characters become tokens like ⟦U+202E⟧, as in
// agents/web/text/safe_text.py. A variation selector stays as it is after an emoji and in a keycap.
const CATEGORIES = String.raw`\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}`;
const BLANKS = String.raw`\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0`;
const SELECTORS = String.raw`\ufe00-\ufe0d\u{e0100}-\u{e01ef}`;
const MISPLACED = String.raw`[\ufe0e\ufe0f](?<!(?![0-9#*])\p{Emoji}.)(?<![0-9#*]\ufe0f(?=\u20e3))`;
const HIDDEN = new RegExp(`(?![\n\t])[${CATEGORIES}${BLANKS}${SELECTORS}]|${MISPLACED}`, "gu");

const token = (char) => `⟦U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`;

// `before` is the earlier part of a text that arrives in pieces.
export function visible(text, before = "") {
  const whole = `${before}${text.replaceAll("\r\n", "\n")}`;
  return whole.replace(HIDDEN, (char, place) => (place < before.length ? char : token(char))).slice(before.length);
}
