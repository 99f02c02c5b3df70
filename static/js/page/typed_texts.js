// Texts that a person has typed into forms: read when their place is about to change, and typed again where they belong.
const NOT_TYPED = "[type=hidden], [type=password], [type=file], [type=checkbox], [type=radio], [name=confirm]";
const FIELD = `:is(input, textarea, select)[name]:not(${NOT_TYPED})`;
const STORAGE_KEY = "gadget-typed";

export function initialValue(field) {
  return [...(field.options ?? [])].find((option) => option.defaultSelected)?.value ?? field.defaultValue ?? "";
}

const addressOf = (form) => form.getAttribute("action") ?? location.pathname;
const isSending = (form) => form.method === "post";

// Returns what was typed below this element: for each field, the address of its form, its name and its text.
export function readTyped(root) {
  const forms = [...root.querySelectorAll("form")].filter(isSending);
  return forms.flatMap((form) =>
    [...form.elements]
      .filter((field) => field.matches(FIELD) && field.value !== initialValue(field))
      .map((field) => ({ action: addressOf(form), name: field.name, value: field.value })),
  );
}

// Types the texts into the forms that they belong to, and opens these. Returns those that have no place here.
export function writeTyped(root, typed) {
  return typed.filter((one) => {
    const form = [...root.querySelectorAll("form")].find((other) => isSending(other) && addressOf(other) === one.action);
    const field = form && [...form.elements].find((other) => other.name === one.name && other.matches(FIELD));
    if (!field) {
      return !awaitForm(root, one);
    }
    for (let outer = field.closest("details"); outer; outer = outer.parentElement.closest("details")) {
      outer.open = true;
    }
    field.value = one.value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    return false;
  });
}

// The edit form of a card that came later than its page is fetched once it is opened.
function awaitForm(root, typed) {
  const edit = root.querySelector("details.edit:has([data-form-placeholder])");
  if (!edit || typed.action !== edit.dataset.form) {
    return false;
  }
  edit.addEventListener("form-loaded", () => writeTyped(root, [typed]), { once: true });
  edit.open = true;
  return true;
}

// Before a login, the texts on this page are kept in its tab, for the person who typed them.
export function keepForLogin() {
  const kept = { user: document.body.dataset.user, path: location.pathname, typed: readTyped(document) };
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify(kept));
  } catch {
    // Without storage, they are lost.
  }
}

export function restoreAfterLogin() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? "null");
    if (kept?.path === location.pathname && kept.user === document.body.dataset.user) {
      sessionStorage.removeItem(STORAGE_KEY);
      writeTyped(document, kept.typed);
    }
  } catch {
    sessionStorage?.removeItem?.(STORAGE_KEY);
  }
}

// Texts of a form that was sent after the session had ended: the server gives them back below a note.
export function restoreUnsent() {
  const note = document.querySelector("[data-unsent]");
  const texts = [...(note?.querySelectorAll("[data-unsent-name]") ?? [])];
  for (const text of texts) {
    const one = { action: note.dataset.unsent, name: text.dataset.unsentName, value: text.dataset.unsentText };
    if (writeTyped(document, [one]).length === 0) {
      text.closest("div").remove();
    }
  }
  if (note && !note.querySelector("[data-unsent-name]")) {
    note.querySelector("[data-unsent-texts]").remove();
  }
}
