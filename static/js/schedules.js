// The form of a new schedule begins with the reader's own time zone, and says when its task is too long. Without this
// script it begins with UTC, and the server says it.
import { keepLengths } from "./length.js";

keepLengths();

const zones = document.querySelector("[data-own-zone]");
const own = Intl.DateTimeFormat().resolvedOptions().timeZone;

if (zones && own && [...zones.options].some((option) => option.value === own)) {
  zones.value = own;
}
