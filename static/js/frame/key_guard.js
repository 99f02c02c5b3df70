// The one place that decides whether a key counts as a shortcut, and how forms, dialogs and menus affect it.
const FIELD = "input:not([type=hidden]), textarea, select";
const TYPING = `${FIELD}, [contenteditable]:not([contenteditable=false]), [role=textbox], [role=combobox], [role=listbox]`;
const MENU = "dialog[open], :popover-open, [role=menu]";
const FORM = `details:has(form, ${FIELD})`;
const OPEN_FORM = `${FORM}[open]`;
const STORAGE_KEY = "gadget-keys";

export function areKeysOn() {
  try {
    return localStorage.getItem(STORAGE_KEY) !== "off";
  } catch {
    return true;
  }
}

export function switchKeys(isOn) {
  try {
    localStorage.setItem(STORAGE_KEY, isOn ? "on" : "off");
  } catch {
    // Without storage, the shortcuts stay on.
  }
}

const isShown = (element) => element.checkVisibility();

// The open `details` that contain a form, such as the reason of a denial; those that only show something are left out.
export const openForms = () => [...document.querySelectorAll(OPEN_FORM)].filter(isShown);

// True if the key is a shortcut at all: the shortcuts are on, nobody types, and no dialog or menu takes the key.
export function isShortcut(event) {
  const isTyped = event.isComposing || event.target.closest?.(TYPING) || document.activeElement?.closest(TYPING);
  const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
  return areKeysOn() && !event.defaultPrevented && !isTyped && !hasModifier && ![...document.querySelectorAll(MENU)].some(isShown);
}

// The reason why a shortcut must not act on the page now; empty if it may.
export function explainRefusal() {
  if (openForms().length === 0) {
    return document.activeElement?.closest(FORM) ? "A form has the focus. Leave it with Esc." : "";
  }
  return document.querySelector("[data-card][data-edited]")
    ? "You have unsaved edits. Preview them, or close the form first."
    : "A form is open. Send it, or close it with Esc.";
}

// Focuses the field to fill in first: one with a problem, else the marked field of a form, else its first one.
export function focusFirstField(form) {
  const marked = form.querySelector("[aria-invalid=true]") ?? form.querySelector("[data-first-field]");
  const field = marked ?? [...form.querySelectorAll(FIELD)].find((one) => !one.disabled && isShown(one));
  field?.focus({ preventScroll: true });
  return Boolean(field);
}

// Opening a form by its summary puts the cursor into its first field, so that what is typed next goes there. Closing it
// with the pointer gives the keys back to the page. A key can arrive before the event that reports either.
let pressed = null;
let isByPointer = false;

document.addEventListener(
  "click",
  (event) => {
    pressed = event.target.closest?.("summary")?.parentElement ?? null;
    isByPointer = event.detail > 0;
  },
  { capture: true },
);
document.addEventListener("toggle", ({ target }) => target === pressed && moveFocus(), { capture: true });
document.addEventListener("keydown", moveFocus, { capture: true });

function moveFocus() {
  const form = pressed;
  pressed = null;
  if (!form?.matches(FORM) || !form.contains(document.activeElement)) {
    return;
  }
  if (form.open) {
    focusFirstField(form);
  } else if (isByPointer) {
    document.activeElement.blur();
  }
}
