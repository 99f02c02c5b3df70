"""Every kind of letter or digit that passes for another is found, and honest texts in 25 languages
are left alone."""

# ruff: noqa: RUF001 - the tests contain look-alike letters
from __future__ import annotations

from pathlib import Path

import pytest

from tests import confusables
from tools.contract.confusables import TWINS
from tools.contract.look_alikes import fold_characters, reduce_to_look
from tools.contract.odd_letters import (
    DIGITS,
    DISGUISED,
    ENCLOSED,
    MIXED,
    MOST_PARTS,
    SIGNS,
    STRUCK,
    TURNED,
    find_odd_parts,
)


def find(text: str, *languages: str) -> list[tuple[str, str]]:
    return [(text[part.start : part.end], part.kind) for part in find_odd_parts(text, languages)]


@pytest.mark.parametrize(
    ("text", "part", "kind"),
    [
        ("Gıthub", "Gıthub", DISGUISED),
        ("mıcrosoft", "mıcrosoft", DISGUISED),
        ("lınkedin", "lınkedin", DISGUISED),
        ("paypaı", "paypaı", DISGUISED),
        ("applıcation", "applıcation", DISGUISED),
        ("chına", "chına", DISGUISED),
        ("twıtch", "twıtch", DISGUISED),
        ("hıtachı", "hıtachı", DISGUISED),
        ("toshıba", "toshıba", DISGUISED),
        ("pay@vısa.com", "pay@vısa.com", DISGUISED),
        ("Vısa", "Vısa", DISGUISED),
        ("Cıtıbank", "Cıtıbank", DISGUISED),
        ("Adıdas", "Adıdas", DISGUISED),
        ("Capıtal One", "Capıtal", DISGUISED),
        ("Überweisung an Vısa", "Vısa", DISGUISED),
        ("Aydın", "Aydın", DISGUISED),
        ("vısa.com.tr", "vısa", DISGUISED),
        ("Pɑypɑlː 100", "Pɑypɑlː", DISGUISED),
        ("[Pɑypɑlː]", "Pɑypɑlː", DISGUISED),
        ("https://x.com/pɑypɑlː/", "pɑypɑlː", DISGUISED),
        ("[pɑypɑl] 5ː", "pɑypɑl", DISGUISED),
        ("𝗣ay𝗣al 銀行", "𝗣ay𝗣al", MIXED),
        ("ᴀᴄᴍᴇ Corp", "ᴀᴄᴍᴇ", DISGUISED),
        ("ɢoogle.com", "ɢoogle", DISGUISED),
        ("Ƨtripe Inc", "Ƨtripe", DISGUISED),
        ("head o\ufb03ce", "o\ufb03ce", DISGUISED),
        ("Ⓐcme", "Ⓐcme", ENCLOSED),
        ("ⒶⒸⓂⒺ", "ⒶⒸⓂⒺ", ENCLOSED),
        ("🅐🅒🅜🅔", "🅐🅒🅜🅔", ENCLOSED),
        ("pay 1\u03360\u03360", "1\u03360\u0336", STRUCK),
        ("do not d\u0336e\u0336l\u0336", "d\u0336e\u0336l\u0336", STRUCK),
        ("1০0 EUR", "1০0", DIGITS),
        ("৪00 EUR", "৪00", DIGITS),
        ("account 12٣45", "12٣45", DIGITS),
        ("𝟏𝟎𝟎 EUR", "𝟏𝟎𝟎", DIGITS),
        ("①00 EUR", "①00", DIGITS),
        ("❶❷ EUR", "❶❷", DIGITS),
        ("Room １２", "１２", DIGITS),
        ("pay 1O0 EUR", "1O0", DIGITS),
        ("pay 5OOO EUR", "5OOO", DIGITS),
        ("pay 1o5 EUR", "1o5", DIGITS),
        ("€1o5", "1o5", DIGITS),
        ("pay 6O25", "6O25", DIGITS),
        ("room 1O1", "1O1", DIGITS),
        ("pay 1l00 EUR", "1l00", DIGITS),
        ("pay 2I50 EUR", "2I50", DIGITS),
        ("pay 1О00 EUR", "1О00", DIGITS),
        ("pay З000 EUR", "З000", DIGITS),
        ("pay б00 EUR", "б00", DIGITS),
        ("pay 10О EUR", "10О", DIGITS),
        ("pay 1⁰00 EUR", "1⁰00", DIGITS),
        ("pay 5½00 EUR", "5½00", DIGITS),
        ("pay ⑩0 EUR", "⑩0", DIGITS),
        ("pay ①⓪⓪ EUR", "①⓪⓪", DIGITS),
        ("pay 1〇0 EUR", "1〇0", DIGITS),
        ("pay 1\ufe0f\u20e30\ufe0f\u20e30 EUR", "1\ufe0f\u20e30\ufe0f\u20e30", DIGITS),
        ("pay 1‚000 EUR", "1‚0", DIGITS),
        ("pay 1٬000 EUR", "1٬0", DIGITS),
        ("paypaⅼ", "paypaⅼ", MIXED),
        ("ⅿⅰⅾ Corp", "ⅿⅰⅾ", MIXED),
        ("pay 100 אבג 200", "100 אבג 200", TURNED),
        ("pay 100 USD א 200", "100 USD א 200", TURNED),
        ("100א200", "100א200", TURNED),
        ("https://acme.com/א/1", "https://acme.com/א/1", TURNED),
        ("pay 100 א 200", "100 א 200", TURNED),
        ("100 א 200", "100 א 200", TURNED),
        ("12־3456", "12־3456", TURNED),
        ("12׀3456", "12׀3456", TURNED),
        ("5׃100", "5׃100", TURNED),
        ("123؛456", "123؛456", TURNED),
        ("Pay 100 ׀ 900 EUR", "100 ׀ 900", TURNED),
        ("Pay 100 ׀900 EUR", "100 ׀900", TURNED),
        ("Pay 100 ׀ €900", "100 ׀ €900", TURNED),
        ("Pay 100 \ufb2a\ufb2a 900 EUR", "100 \ufb2a\ufb2a 900", TURNED),
        ("Pay 100 \U00010800 900 EUR", "100 \U00010800 900", TURNED),
        ("Pay 100 ב\u05bc 900 EUR", "100 ב\u05bc 900", TURNED),
        ("Аcme Corp", "Аcme", MIXED),
        ("Сорос Corp", "Сорос", MIXED),
        ("pay Сорос now, срочно и быстро", "Сорос", MIXED),
        ("в Москве ask аррӏе Inc", "аррӏе", MIXED),
        ("Асме Harbor", "Асме", MIXED),
        ("АСМЕ", "АСМЕ", MIXED),
        ("аррӏе", "аррӏе", MIXED),
        ("ꓮꓑꓑꓡꓰ", "ꓮꓑꓑꓡꓰ", MIXED),
        ("еВау", "еВау", MIXED),
        ("ꓮꓚꓟꓰ", "ꓮꓚꓟꓰ", MIXED),
        ("Wa丨mart", "Wa丨mart", MIXED),
        ("Amazㅇn", "Amazㅇn", MIXED),
        ("Pay卩al now", "Pay卩al", MIXED),
        ("Gㅇㅇgle", "Gㅇㅇgle", MIXED),
        ("Netfㄥix", "Netfㄥix", MIXED),
        ("Face⼀book", "Face⼀book", MIXED),
        ("工BM", "工BM", MIXED),
        ("G口口gle", "G口口gle", MIXED),
        ("Face一book", "Face一book", MIXED),
        ("СОРА-2041", "СОРА", MIXED),
        ("ΑΒΧ 2041", "ΑΒΧ", MIXED),
        ("ſudo ls", "ſudo", DISGUISED),
        ("Harbor 𝐂𝐥𝐨𝐮𝐝", "𝐂𝐥𝐨𝐮𝐝", DISGUISED),
        ("Harbor ＣＬＯＵＤ", "ＣＬＯＵＤ", DISGUISED),
        ("🇭🇦🇷🇧🇴🇷 Cloud", "🇭🇦🇷🇧🇴🇷", ENCLOSED),
        ("to 🇧🇴🇧", "🇧🇴🇧", ENCLOSED),
        ("pay h\u0332a\u0332rbor", "h\u0332a\u0332", STRUCK),
        ("pay 1Ⅽ0 EUR", "1Ⅽ0", DIGITS),
        ("pay 〡〢 EUR", "〡〢", DIGITS),
        ("pay ፩፪ EUR", "፩፪", DIGITS),
        ("account 5577991一", "5577991一", DIGITS),
        ("pay €l00", "l00", DIGITS),
        ("pay l00 EUR", "l00", DIGITS),
        ("＄100", "＄", SIGNS),
        ("pay 100 ￡", "￡", SIGNS),
        ("₤100", "₤", SIGNS),
        ("Є100", "Є", SIGNS),
        ("💲100", "💲", SIGNS),
        ("5％ off", "％", SIGNS),
    ],
)
def test_a_part_that_passes_for_another_is_found_with_its_kind(
    text: str, part: str, kind: str
) -> None:
    assert find(text) == [(part, kind)]


@pytest.mark.parametrize(
    "text",
    [
        "قیمت ۱۲۰۰ تومان",
        "ব-১২৩ টাকা ৫০০",
        "ราคา ๕๐๐ บาท",
        "１２３号室",
        "פגישה ב-Google 10:30, 2 או 3",
        "m² 10⁶ ① erstens ② zweitens",
        "Ⓜ️ Station, Ⓐ or Ⓑ",
        "Øre, Ærø, Łukasz, Đorđe, þing, œuvre",
        "Kılıç Yılmaz, Işık",
        "Can Yıldırım, Pınar Aydın",
        "Kadıköy, Kırıkkale, Diyarbakır",
        "Toplantı yarın, bakıyor",
        "Can Yıldırım, Aydın, Yılmaz",
        "Hr. Yıldız",
        "Kadıköy",
        "yıldız.com.tr",
        "בשנים 2020־2021 היו 100 ־ 200",
        "טלוויזיה 55״ ב־10 תשלומים",
        "الأرقام 123؛456؛789",
        "Ask the בית־ספר at 5",
        "ресурс",
        "Сахара",
        "Tシャツ, A型, X線, 3D印刷",
        "A型",
        "A対B",
        "IT部",
        "元CEO",
        "Web版URL",
        "Windows用Driver",
        "PC版Excel 東京",
        "½ kg, 5 №",
        "1o1 with Ann",
        "6CO2 + 6H2O → C6H12O6 + 6O2",
        "1½ kg, 5²",
        "ООО Google",
        "соус",
        "рост",
        "Chapter Ⅳ, part ⅲ",
        "дом 5б, кв. 3а, О2 и СО2",
        "قبل 10 و 20",
        "１，０００円",
        "有1，2，3",
        "二〇二六年",
        "1’000 Fr., 3×4, 2–3",
        "COVID 2O, H2O2, 5O, 10l, 2 l50",
        "Contact: Вера Роса Иванова, Berlin",
        "1\ufe0f\u20e3 first 2\ufe0f\u20e3 second",
        "Вера",
        "В 2041",
        "Тема: смета",
        "𝑓(𝑥) ∈ ℝ",
        "ＡＢＣ株式会社",
        "🇩🇪🇫🇷 and 🇺🇳",
        "Ⅱ.1, Louis ⅩⅣ",
        "በ፲፱፻ ዓ.ም",
        "10万円, 3千, 第1章",
        "chmod 0o755, room I20, l10n, 10 l",
        "$100, 100 €, £5, 5 %",
        "￥１，０００ 円",
        "Є 100 примірників",
        "naïve is said /naɪˈiːv/",
        "[ˈɡʊd ˈmɔːnɪŋ]",
        "golden is said ˈɡəʊldən",
        "−5 °C",
    ],
)
def test_ordinary_letters_and_digits_of_many_languages_are_left_alone(text: str) -> None:
    assert find(text) == []


def test_letters_and_digits_of_the_given_languages_are_left_alone() -> None:
    assert find("tıbbi") == [("tıbbi", DISGUISED)]
    assert find("tıbbi", "tr") == []
    assert find("۱۲۰۰ EUR") == [("۱۲۰۰", DIGITS)]
    assert find("۱۲۰۰ EUR", "fa") == []
    assert find("1۲00 EUR", "fa") == [("1۲00", DIGITS)]
    assert find("ΑΒΧ 2041", "el") == find("Асме Harbor", "ru") == []
    assert find("Сорос Corp", "ru") == [("Сорос", MIXED)]
    assert find("ＡＢＣ 10％", "ja") == []
    assert find("Є100", "uk") == []
    assert find("12־3456", "he") == []
    assert find("ТОВ «Smart»") == [("ТОВ", MIXED)]
    assert find("ТОВ «Smart»", "uk") == []
    assert find("公開ＰｙｔｈｏｎとC++", "ja") == []
    assert find("𝗣aypal", "ja") == [("𝗣aypal", MIXED)]
    assert find("éｙ入門", "ja") == [("éｙ入門", MIXED)]
    assert find("Vısa, Aydın", "tr") == []
    assert find("Ｐｙthon入門", "ja") == [("Ｐｙthon入門", MIXED)]
    assert find("12א3456", "he") == [("12א3456", TURNED)]


@pytest.mark.parametrize("name", ["сс", "Сс", "то", "το", "сору", "аԁԁrеss"])
def test_a_word_in_the_name_of_a_param_that_passes_for_latin_is_found(name: str) -> None:
    assert [part.kind for part in find_odd_parts(name, is_name=True)] == [MIXED]


def test_names_of_params_in_a_language_of_the_organization_are_left_alone() -> None:
    assert find_odd_parts("ресурс", {"ru"}, is_name=True) == []
    assert find_odd_parts("сс", {"ru"}, is_name=True)
    for name in ("цена", "адрес", "имя", "вес"):
        assert find_odd_parts(name, is_name=True) == []


def test_latin_words_with_ideographs_are_left_alone_where_an_east_asian_language_is_written() -> (
    None
):
    assert find("Wa丨mart", "ja") == []


def test_the_number_of_parts_of_one_kind_in_a_text_is_limited() -> None:
    assert len(find("aא1 " * (MOST_PARTS + 1))) == MOST_PARTS


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "1" * 200_000 + " א",
        "1," * 100_000 + "א",
        "1 א " * 50_000,
        "1 ׀ " * 50_000,
        "1 " + "׀" * 200_000,
        "О" * 200_000 + "1",
        "1О," * 60_000,
        "1l" * 100_000,
        "1" + "O" * 200_000,
        "Сорос " * 50_000,
        "1O" * 100_000,
        "Wa丨" * 60_000,
        "丨" * 200_000,
        "a" * 200_000 + "丨",
        "aı" * 100_000,
        "ız" * 100_000,
        "ı.a" * 60_000,
        "ː/" * 100_000 + "ɑ",
        "[ː" * 100_000 + "ɑ",
        "bı" * 100_000,
        "1\u20e3" * 100_000,
    ],
)
def test_a_long_text_is_read_in_linear_time(text: str) -> None:
    find_odd_parts(text)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Ａｃｍｅ", "Acme"),
        ("ᴀcme", "acme"),
        ("аcme", "acme"),
        ("ac\u0336me", "acme"),
        ("ac\u200bme", "acme"),
        ("০১٢۳", "0123"),
        ("①②", "12"),
        ("ø", "o"),
        ("Москва", "Mockba"),
    ],
)
def test_characters_are_folded_to_their_ascii_look_alikes(text: str, folded: str) -> None:
    assert fold_characters(text) == folded


@pytest.mark.parametrize(
    ("one", "other"),
    [("P4ypal", "Paypal"), ("Micr0soft", "Microsoft"), ("Асме", "Acme"), ("Bank ١٢", "Bank 12")],
)
def test_names_look_the_same_despite_inner_digits_or_digits_of_another_script(
    one: str, other: str
) -> None:
    assert reduce_to_look(one) == reduce_to_look(other)


@pytest.mark.parametrize(("one", "other"), [("Model3", "Modele"), ("Web5", "Webs"), ("3M", "EM")])
def test_digits_at_the_ends_of_words_distinguish_names(one: str, other: str) -> None:
    assert reduce_to_look(one) != reduce_to_look(other)


def test_the_table_of_look_alikes_is_the_generated_one() -> None:
    page = Path(confusables.MODULE).read_text(encoding="utf-8")
    assert page == confusables.render(), "`python -m tests.confusables` writes the module"
    assert len(TWINS) > 600
