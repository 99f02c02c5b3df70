// Shows characters that hide: zero-width, bidirectional and control characters become tokens like ⟦U+202E⟧.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]/gu;

export function visible(text) {
  return text.replace(HIDDEN, (char) =>
    char === "\n" || char === "\t" ? char : `⟦U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`,
  );
}
