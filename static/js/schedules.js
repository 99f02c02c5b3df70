// The form of a new schedule begins with the reader's own time zone. Without this script it begins with UTC.
const zones = document.querySelector("[data-own-zone]");
const own = Intl.DateTimeFormat().resolvedOptions().timeZone;

if (zones && own && [...zones.options].some((option) => option.value === own)) {
  zones.value = own;
}
