"""Spellings that are ordinary in a language are odd only where the language is not written."""

# ruff: noqa: RUF001 - the tests contain look-alike letters
from __future__ import annotations

import pytest

from tools.contract.hidden_characters import find_hidden_characters
from tools.contract.languages import SCRIPTS, find_language, find_main_script, get_main_code
from tools.contract.mixed_hosts import is_mixed_host
from tools.contract.odd_letters import find_odd_parts

ORDINARY_IN_LANGUAGES = [
    ("fa", "می\u200cخواهم کتاب\u200cها را"),
    ("ur", "کام\u200cیاب"),
    ("hi", "क्\u200dष"),
    ("si", "ක්\u200dෂ"),
    ("ml", "അവന്\u200d വന്നു"),
    ("bn", "র\u200d্যাব"),
    ("km", "ភាសា\u200bខ្មែរ"),
    ("th", "ภาษา\u200bไทย"),
    ("he", "שלום \u200e050-555-0171"),
    ("ar", "لمبة LED\u200f 9 واط"),
    ("he", "מול (\u200fSuper-Pharm\u200f, קוד \u200e#0101\u200e)"),
    ("he", "דוח\u200f.exe"),
    ("he", "שלום\u200f! C++\u200f\u200f."),
    ("ja", "葛\U000e0100西"),
]


@pytest.mark.parametrize(("language", "text"), ORDINARY_IN_LANGUAGES)
def test_a_hidden_character_of_its_spelling_is_ordinary_only_where_the_language_is_written(
    language: str, text: str
) -> None:
    assert not find_hidden_characters(text, languages={language})
    assert find_hidden_characters(text)
    assert find_hidden_characters(text, languages={"el", "tr"})


@pytest.mark.parametrize(
    "text",
    [
        *("pay\u200cpal", "می\u200c\u200cخواهم", "\u200cمی", "Acme\u200d می", "می\u200c7"),
        *("می\u200bخواهم", "می\u202eخواهم", "می\u200eخواهم", "م\u200ca"),
        *("שלום 12\u200e34", "Acme\u200e", "A\U000e0100西"),
        *(
            "דוח fdp\u200f.exe",
            "דוח fdp\u200f\u200f.exe",
            "דוח fdp.\u200fexe",
            "דוח fdé\u200f...exe",
        ),
    ],
)
def test_a_joiner_elsewhere_and_other_hidden_characters_are_odd_in_every_language(
    text: str,
) -> None:
    assert find_hidden_characters(text, languages=set(SCRIPTS))


@pytest.mark.parametrize(
    "emoji",
    [
        *("👨\u200d👩\u200d👧", "🏳\ufe0f\u200d🌈", "👩🏽\u200d💻", "🇩🇪", "🇯🇵", "1\ufe0f\u20e3"),
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    ],
)
def test_joined_emoji_and_flags_are_ordinary_everywhere(emoji: str) -> None:
    assert not find_hidden_characters(f"Great {emoji} work")


@pytest.mark.parametrize(
    "text",
    [
        "🏴\U000e0070\U000e0061\U000e0079\U000e007f",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067",
        "x\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "👨\u200d work",
    ],
)
def test_a_flag_that_spells_another_text_and_a_loose_joiner_are_odd(text: str) -> None:
    assert find_hidden_characters(text)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("tr", "tıbbi rapor"),
        ("ja", "Invoice １２３"),
        ("zh", "Order 1，234"),
        ("fa", "Invoice ۱۲۳"),
        ("hi", "Invoice १२३"),
    ],
)
def test_letters_and_digits_of_a_language_are_ordinary_only_where_it_is_written(
    language: str, text: str
) -> None:
    assert not find_odd_parts(text, {language})
    assert find_odd_parts(text)
    assert find_odd_parts(text, {"el"})


@pytest.mark.parametrize(
    ("language", "host"),
    [
        ("ja", "例え.jp"),
        ("ja", "カタカナ一.com"),
        ("ru", "пример.com"),
        ("el", "ελλάδα.gr"),
        ("vi", "việt.vn"),
    ],
)
def test_a_host_in_a_language_is_mixed_only_where_it_is_not_written(
    language: str, host: str
) -> None:
    assert not is_mixed_host(host, {language})
    assert is_mixed_host(host)
    assert is_mixed_host(host, {"ko" if language != "ja" else "ru"})


@pytest.mark.parametrize(
    "host", ["сор.com", "раypal.com", "ｐａｙｐａｌ.com", "例e.jp", "xn--cme-7cd.com"]
)
def test_a_host_that_passes_for_a_latin_one_is_mixed_in_every_language(host: str) -> None:
    assert is_mixed_host(host, set(SCRIPTS))


def test_another_sign_below_a_letter_is_mixed_where_only_dots_are_written_below() -> None:
    assert not is_mixed_host("ọjà.ng", {"yo"})
    assert is_mixed_host("ḵoja.ng", {"yo"})


@pytest.mark.parametrize("word", ["Аcme", "Ｐaypal", "Gооgle"])
def test_a_word_of_two_alphabets_is_odd_in_every_language(word: str) -> None:
    assert find_odd_parts(f"pay {word} now", set(SCRIPTS))


def test_the_main_script_is_the_script_of_most_letters_and_indicates_a_language() -> None:
    assert find_main_script("漢字とカナ abc") == "CJK"
    assert find_main_script("Acme, 12 км") == "LATIN"
    assert find_language(SCRIPTS["fa"]) == "ar"
    assert find_language("LATIN") == ""
    assert get_main_code("zh-Hant_TW") == "zh"
