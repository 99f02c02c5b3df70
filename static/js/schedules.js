// The form of a new schedule preselects the reader's time zone; without this script, UTC.
const zones = document.querySelector("[data-preselect-zone]");
const own = Intl.DateTimeFormat().resolvedOptions().timeZone;

if (zones && own && [...zones.options].some((option) => option.value === own)) {
  zones.value = own;
}
