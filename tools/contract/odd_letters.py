"""Letters and digits that pass for other letters and digits: mixed alphabets, digits of other
scripts, letters in disguise, and letters that reverse the order of the text around them."""

# ruff: noqa: RUF001 - the tables consist of such letters
from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice, pairwise

from tools.caches import cache_by_text
from tools.contract.host_endings import ENDINGS
from tools.contract.languages import (
    CJK,
    LEFTWARD_SCRIPTS,
    find_main_script,
    may_be_east_asian,
    name_scripts,
)
from tools.contract.look_alikes import LOOKS, SMALL_CAPITALS, STROKES, fold_characters
from tools.contract.odd_numbers import find_odd_numbers
from tools.contract.odd_signs import find_led_numbers, find_odd_signs
from tools.contract.param_words import NamedThing, find_named

KINDS = MIXED, DISGUISED, ENCLOSED, STRUCK, DIGITS, TURNED, SIGNS = (
    "mixed alphabets",
    "letters in disguise",
    "letters in circles or boxes",
    "letters struck out",
    "digits of another kind",
    "letters that turn the order",
    "signs of another kind",
)
MOST_PARTS = 500
"""The maximum number of parts of one kind that are reported for one text; more parts would not help
a reader.
"""
LATIN, GREEK, STYLED = "LATIN", "GREEK", "STYLED"
NEUTRAL = frozenset(
    {
        *("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC"),
        *("HALFWIDTH", "MICRO", "FEMININE", "MASCULINE", "MODIFIER", "SUPERSCRIPT", "SUBSCRIPT"),
        *("COMBINING", "UNKNOWN"),
    }
)
"""Alphabets that occur beside Latin letters in ordinary words, and characters that do not belong to
an alphabet."""
WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f])*")
SHORTEST_MIX_WITH_GREEK = 3
"""The minimum number of letters in a word in which Greek letters among Latin letters are odd.
Shorter words are taken for formulas: Δx, αβ."""
WEAK = frozenset(SMALL_CAPITALS) | frozenset("гνιυ")
"""Letters that only resemble a Latin letter; a word that contains one does not pass for Latin."""
LIGATURES = frozenset(map(chr, range(0xFB00, 0xFB07)))
DOTLESS_I, DOTLESS_J = "ıȷ"
_TURKISH = re.compile("[ğĞşŞİ]")
_TURKISH_CODES = frozenset({"tr", "az"})
_VOWELS = "aeiouAEIOUıİöüÖÜâîûÂÎÛ"
_UNLIKE_TURKISH = re.compile(
    f"[qwxQWX]|c[hk]|[^\\x00-\\x7fçÇğĞşŞ{_VOWELS}]|[{_VOWELS}]{{2}}|^[^{_VOWELS}]{{2,}}ı"
    f"|[eiouöüîûEOUÖÜÎÛ][^{_VOWELS}]*ı|ı(?!yor)[^{_VOWELS}]*[eiouîûEOUÎÛ]"
)
"""What a Turkish word with a dotless ı hardly ever has: foreign letters, two vowels side by side,
two consonants at its start before the ı, or a vowel near the ı that vowel harmony excludes. Of the
excluded vowels, ö and ü may follow, as in Kadıköy, because Latin names rarely have them."""
_CERTAINLY_TURKISH = re.compile(
    f"[çöüÇÖÜ]|ıyor|^[^{_VOWELS}]*[Iı][^{_VOWELS}]*(?:ı[^{_VOWELS}]*)+$"
)
"""What shows that a word with a dotless ı is Turkish: another letter of Turkish, the ending of a
verb, or two dotless ı without another vowel, as in Yıldırım."""
_ADDRESS = re.compile(r"(?<![\w.@-])[\w-]++(?:[.@]++[\w-]++)++")
FIRST_RARE_LATIN = "\u0180"
"""The first rare Latin letter. Latin letters before it are part of the spelling of many languages:
ø, ł, æ."""
_ROMAN_NUMBER = re.compile("M{0,4}(?:CM|CD|D?C{0,4})(?:XC|XL|L?X{0,4})(?:IX|IV|V?I{0,4})")
_ENCLOSED = "Ⓐ-ⓩ⒜-⒵\U0001f110-\U0001f169\U0001f170-\U0001f189"
_ENCLOSED_LETTER = re.compile(f"[{_ENCLOSED}]")
_ENCLOSED_WORD = re.compile(f"[A-Za-z{_ENCLOSED}]+")
_STRUCK_WORD = re.compile(f"(?:\\w(?:{STROKES.pattern}|[\u0332\u0333])+)+")
_FIRST_REGIONAL = "\U0001f1e6"
_REGIONAL_LETTERS = re.compile("[\U0001f1e6-\U0001f1ff]+")
_FLAGS_WITHOUT_HOSTS = frozenset(
    {"bl", "bq", "cp", "dg", "ea", "eh", "ic", "mf", "ta", "um", "un", "xk"}
)
"""The codes of flags that are not endings of hosts."""
LONGEST_LEGAL_FORM = 3
_MIXED_WIDTHS = re.compile(
    "[A-Za-z\u00c0-\u036f][\uff21-\uff5a]|[\uff21-\uff5a][A-Za-z\u00c0-\u024f]"
)
_FULLWIDTH = re.compile("[\uff21-\uff5a]+")
_PHONETIC = re.compile("[ˈˌː]")
"""Signs in words that tell how something is pronounced."""
_NO_TWINS = "".join(char for char in map(chr, range(0x250, 0x2B0)) if char not in LOOKS)
_PRONUNCIATION = re.compile(
    r"(?<![\w/:.])/[^/\n0-9A-Z]{1,60}/(?![\w/])|(?<!\w)\[[^\[\]\n0-9A-Z]{1,60}\](?!\w)"
    rf"|\b(?=\w*[{_NO_TWINS}])\w+"
)
"""Text that may tell how something is pronounced: text between `/` or brackets, without capitals
or figures, and words with a phonetic letter that does not look like another letter."""
SHORTEST_STYLED = 3
"""The minimum number of letters in a word that is odd because all its letters are bold, script or
the like."""
_DIGIT = re.compile(r"\d")
_TOKEN = re.compile(r"\S+")
_LAST_NUMBER = re.compile(r"[0-9][0-9.,]*[^0-9\n]*$")
FURTHEST_NUMBER = 12
"""The maximum number of characters between a number and the letters that swap it with the next
number."""
FEWEST_OF_A_SENTENCE = 4
"""The minimum number of letters in a sentence: a shorter text that begins right to left is not
treated as a sentence."""
SHORTEST_IMITATION = 5
"""The minimum number of letters of a word that is odd, without being all in capitals, because each
of its letters has a Latin twin. In other alphabets, shorter words of such letters are common."""
_COMMON_LETTERS = re.compile("[а-яёα-ω]+")
"""The letters of Russian and Greek. Longer words of such letters alone, such as ресурс, are common
even if each letter has a Latin twin."""
_SINGLE = (
    "\u2e80-\u2fdf\u30a1-\u30ff\u3105-\u318f\u31a0-\u31ef\u3400-\u9fff\uf900-\ufaff"
    "\uff66-\uffdc\U00020000-\U0003ffff"
)
_IDEOGRAPH = re.compile(f"[{_SINGLE}\u3041-\u309f\uac00-\ud7a3]")
_IDEOGRAPHIC_WORD = re.compile(rf"[\w{_SINGLE}]+")
_SHAPED = "工丨卩丁卜尺乙几爪冂凵乂匚丂乃卂卄廾乇丫亅乚丿エロㄥㄒㄩㄖㄚㅣㅇ"
"""East Asian letters of the shape of a Latin letter that words in capitals rarely have beside
them."""
_SHAPED_INSIDE = _SHAPED + "\u2e80-\u2fdf〇一ー口囗日曰レメトハノヒニㅁㅂㅌㅅㅐㅡ"
"""East Asian letters of the shape of a Latin letter or a hyphen, and radicals, which are rare
between Latin letters."""
_LATIN = "[A-Za-z\u00c0-\u024f]"
_SPELLED_WITH_IDEOGRAPHS = re.compile(
    rf"(?!{_LATIN}.{_LATIN}\Z)"  # A対B
    f"(?:[{_SHAPED}](?=[A-Z]{{2}}))?{_LATIN}++(?:([{_SHAPED_INSIDE}])\\1?{_LATIN}++)*+"
    f"(?:(?<=[A-Z]{{2}})[{_SHAPED}])?"
)
_FIRST_STRONG = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class OddPart:
    """A part of a text that passes for other text.

    Attributes:
        start: where it begins.
        end: where it ends.
        letters: its odd characters.
        kind: one of KINDS, in words shown to people.
    """

    start: int
    end: int
    letters: frozenset[str]
    kind: str


def find_odd_parts(
    text: str, languages: Collection[str] = (), *, is_name: bool = False
) -> list[OddPart]:
    """Find the parts of a text that pass for other text, from left to right, without overlaps.

    Args:
        languages: codes of the languages in which the text may be written, such as `tr`.
        is_name: True for the name of a param, in which any word that passes for Latin is odd.
    """
    digits = (*find_odd_numbers(text, languages), *find_led_numbers(text))
    numbers = (OddPart(*number, DIGITS) for number in digits)
    searches = (
        (numbers,)
        if text.isascii()
        else (
            _find_odd_words(text, languages, is_name=is_name),
            _find_lone_ideographs(text, languages),
            _find_disguised_letters(text, languages),
            numbers,
            (OddPart(*sign, SIGNS) for sign in find_odd_signs(text, languages)),
            _find_turned_parts(text, languages),
        )
    )
    found = (part for search in searches for part in islice(search, MOST_PARTS))
    parts: list[OddPart] = []
    for part in sorted(found, key=lambda each: (each.start, -each.end)):
        if not parts or part.start >= parts[-1].end:
            parts.append(part)
    return parts


@lru_cache(maxsize=4096)
def name_alphabet(char: str) -> str:
    """Name the alphabet, e.g. `CYRILLIC`; `STYLED` for styled ASCII letters, empty for characters
    that do not belong to an alphabet."""
    first = unicodedata.name(char, "UNKNOWN").partition(" ")[0]
    is_numeral = unicodedata.category(char) == "Nl"
    if first in NEUTRAL or not (char.isalpha() or is_numeral):
        return ""
    plain = unicodedata.normalize("NFKC", char)
    is_styled = is_numeral or (first != LATIN and len(plain) == 1)
    return STYLED if is_styled and plain.isascii() else "" if is_numeral else first


@cache_by_text
def passes_for_latin(word: str) -> bool:
    """Return True if every letter has a Latin twin. A single Greek letter does not pass for Latin,
    because formulas contain such letters."""
    alphabets = _list_alphabets(word)
    if len(alphabets) != 1 or alphabets & {LATIN, STYLED} or (GREEK in alphabets and len(word) < 2):
        return False
    return all(
        LOOKS.get(char, "").isalpha() and char not in WEAK for char in word if char.isalpha()
    )


@cache_by_text
def _nearly_passes_for_latin(word: str) -> bool:
    """Return True if every letter resembles a Latin letter, and most of the letters have a Latin
    twin."""
    letters = [unicodedata.normalize("NFD", char)[0] for char in word if char.isalpha()]
    twins = sum(passes_for_latin(char) for char in letters if char not in WEAK)
    return (
        len(_list_alphabets(word)) == 1
        and len(letters) < 2 * twins
        and all(LOOKS.get(char, "").isalpha() and not _is_right_to_left(char) for char in letters)
    )


def _find_odd_words(text: str, languages: Collection[str], *, is_name: bool) -> Iterator[OddPart]:
    """Find words that mix alphabets, and words that imitate Latin words, either among Latin words
    or alone as a name or code."""
    alphabets_of_text = {name_alphabet(char) for char in set(text)} - {""}
    if not alphabets_of_text - {LATIN}:
        return
    scripts = name_scripts(languages)
    usual = {find_main_script(text), *scripts}
    words = [(found.start(), found.end(), found.group()) for found in WORD.finditer(text)]
    plain = [word for _, _, word in words]
    passing = [
        passes_for_latin(word)
        or (is_name and _reads_as_known_name(word))
        or (usual.isdisjoint(_list_alphabets(word)) and _nearly_passes_for_latin(word))
        for word in plain
    ]
    is_foreign = scripts.isdisjoint(alphabets_of_text)
    may_pass = (
        any(LATIN in _list_alphabets(word) for word in plain)
        or (is_name and (is_foreign or _reads_as_known_name(text)))
        or (is_foreign and _imitates_latin(text, plain))
    )
    honest = _list_honest_words(plain, passing)
    is_east_asian = may_be_east_asian(text, languages)
    for place, (start, end, word) in enumerate(words):
        if word.isascii():
            continue
        alphabets = _list_alphabets(word)
        if alphabets == {LATIN, STYLED} and is_east_asian and _has_separate_widths(word):
            letters = frozenset[str]()
        elif len(alphabets) > 1:
            letters = _find_odd_letters(word, alphabets)
        else:
            has_letters_of_a_word = (
                is_name or len(word) == 1 or not _is_legal_form(word, alphabets <= scripts)
            )
            is_disguised = _is_word_of_numerals(word) or (
                may_pass and has_letters_of_a_word and passing[place] and place not in honest
            )
            letters = frozenset(word) if is_disguised else frozenset()
        if letters:
            yield OddPart(start, end, letters, MIXED)


def _has_separate_widths(word: str) -> bool:
    """Return True if the styled letters of a word are fullwidth letters, none of which is beside
    another Latin letter."""
    is_fullwidth = all(_FULLWIDTH.match(char) for char in word if name_alphabet(char) == STYLED)
    return is_fullwidth and not _MIXED_WIDTHS.search(word)


def _is_legal_form(word: str, is_usual: bool) -> bool:
    """Return True for a word of one repeated letter, such as the OOO of Russian companies, or a
    short word in capitals in an alphabet that the organization writes."""
    is_short = len(word) <= LONGEST_LEGAL_FORM and word.isupper()
    return len(set(word.casefold())) == 1 or (is_usual and is_short)


def _imitates_latin(text: str, words: Sequence[str]) -> bool:
    """Return True if a text without Latin letters reads as a Latin name in capitals, as a Latin
    word with a number or an inner capital, or as a longer Latin word with a rare letter."""
    return (
        all(map(passes_for_latin, words))
        and any(len(word) > 1 for word in words)
        and (
            fold_characters(text).isupper()
            or (text != text.upper() and _DIGIT.search(text) is not None)
            or any(map(_is_unusual_word, words))
        )
    )


def _is_unusual_word(word: str) -> bool:
    """Return True for a word with a capital after a small letter, and for a longer word with a rare
    letter."""
    has_inner_capital = any(one.islower() and other.isupper() for one, other in pairwise(word))
    return has_inner_capital or (
        len(word) >= SHORTEST_IMITATION and not _COMMON_LETTERS.fullmatch(word.lower())
    )


def _reads_as_known_name(name: str) -> bool:
    return find_named(fold_characters(name)) != NamedThing.NOTHING


def _list_honest_words(words: Sequence[str], passing: Sequence[bool]) -> frozenset[int]:
    """List the places of honest words. Neighboring words of one alphabet are honest if at least one
    of them cannot pass for Latin: together they are a name or phrase in that alphabet."""
    honest: set[int] = set()
    for _, row in groupby(range(len(words)), key=lambda place: _list_alphabets(words[place])):
        places = list(row)
        if not all(passing[place] for place in places):
            honest.update(places)
    return frozenset(honest)


def _is_word_of_numerals(word: str) -> bool:
    """Return True if the word consists of Roman numerals but is not a number, such as `ⅾⅰⅿ`."""
    return all(unicodedata.category(char) == "Nl" for char in word) and not (
        _ROMAN_NUMBER.fullmatch(unicodedata.normalize("NFKC", word).upper())
    )


def _list_alphabets(word: str) -> frozenset[str]:
    return frozenset(name for name in map(name_alphabet, word) if name)


def _find_odd_letters(word: str, alphabets: frozenset[str]) -> frozenset[str]:
    """Return the letters outside the word's main alphabet. Greek letters in a Latin word are odd
    only if they look like other letters, and never in short words, which are formulas."""
    counts = {name: sum(name_alphabet(char) == name for char in word) for name in alphabets}
    main = max(alphabets, key=lambda name: (counts[name], name == LATIN))
    odd = frozenset(char for char in word if name_alphabet(char) not in ("", main))
    if alphabets == {LATIN, GREEK} and main == LATIN:
        return (
            frozenset(odd & LOOKS.keys()) if len(word) >= SHORTEST_MIX_WITH_GREEK else frozenset()
        )
    return odd


def _find_lone_ideographs(text: str, languages: Collection[str]) -> Iterator[OddPart]:
    """Find Latin words in which an East Asian letter passes for a Latin one, such as Wa丨mart. In a
    text with other East Asian letters, such words are ordinary."""
    if CJK in name_scripts(languages) or not _IDEOGRAPH.search(text):
        return
    parts = []
    for found in _IDEOGRAPHIC_WORD.finditer(text):
        odd = frozenset(_IDEOGRAPH.findall(found[0]))
        if odd and not _is_spelled_with_ideographs(found[0]):
            return
        if odd:
            parts.append(OddPart(found.start(), found.end(), odd, MIXED))
    yield from parts


def _is_spelled_with_ideographs(word: str) -> bool:
    """Return True for a word of Latin letters with few East Asian letters between them, or with one
    beside capitals at an edge that has the shape of a capital."""
    count = len(_IDEOGRAPH.findall(word))
    return _SPELLED_WITH_IDEOGRAPHS.fullmatch(word) is not None and len(word) >= 3 * count


def _find_disguised_letters(text: str, languages: Collection[str]) -> Iterator[OddPart]:
    """Find words with Latin letters that pass for other letters, and words in styled, enclosed or
    struck-out letters."""
    characters = set(text)
    twins = set(filter(_is_rare_latin_twin, characters))
    is_turkish = _TURKISH_CODES & set(languages) or _TURKISH.search(text)
    if DOTLESS_J in characters and not is_turkish:
        twins.add(DOTLESS_J)
    if DOTLESS_I in characters and not is_turkish:
        yield from _find_dotless_words(text)
    styled = {char for char in characters - _ASCII if name_alphabet(char) == STYLED}
    spelled = _PRONUNCIATION.sub(_remove_pronunciation, text) if twins else text
    for found in WORD.finditer(text) if twins or styled else ():
        letters = frozenset(twins.intersection(spelled[found.start() : found.end()]))
        if styled.issuperset(found[0]) and _is_styled_word(found[0], text, languages):
            letters |= frozenset(found[0])
        if letters:
            yield OddPart(found.start(), found.end(), letters, DISGUISED)
    if _ENCLOSED_LETTER.search(text):
        for found in _ENCLOSED_WORD.finditer(text):
            if len(found[0]) > 1 and (odd := frozenset(found[0]) - _ASCII):
                yield OddPart(found.start(), found.end(), odd, ENCLOSED)
    for found in _REGIONAL_LETTERS.finditer(text):
        if not _are_flags(found[0]):
            yield OddPart(found.start(), found.end(), frozenset(found[0]), ENCLOSED)
    for found in _STRUCK_WORD.finditer(text):
        letters = frozenset(filter(str.isalnum, found[0]))
        yield OddPart(found.start(), found.end(), letters, STRUCK)


def _remove_pronunciation(found: re.Match[str]) -> str:
    """Replace a match that has a phonetic sign with spaces."""
    return " " * len(found[0]) if _PHONETIC.search(found[0]) else found[0]


def _find_dotless_words(text: str) -> Iterator[OddPart]:
    """Find the words in which a dotless i passes for an i: all of them in a text without a word
    that can only be Turkish, elsewhere words that do not read as Turkish, and addresses, unless
    they end with `.tr` or the like."""
    words = [found for found in WORD.finditer(text) if DOTLESS_I in found[0]]
    plain = [unicodedata.normalize("NFC", found[0]) for found in words]
    unlike = [_UNLIKE_TURKISH.search(word) is not None for word in plain]
    is_turkish = any(
        _CERTAINLY_TURKISH.search(word) and not is_unlike
        for word, is_unlike in zip(plain, unlike, strict=True)
    )
    for found, is_unlike in zip(words, unlike, strict=True):
        if is_unlike or not is_turkish:
            yield OddPart(found.start(), found.end(), frozenset(DOTLESS_I), DISGUISED)
    for found in _ADDRESS.finditer(text):
        ending = re.split("[.@]", found[0].lower())[-1]
        if DOTLESS_I in found[0] and ending in ENDINGS and ending not in _TURKISH_CODES:
            yield OddPart(found.start(), found.end(), frozenset(DOTLESS_I), DISGUISED)


def _is_styled_word(word: str, text: str, languages: Collection[str]) -> bool:
    """Return True for a word of styled letters, but not for short symbols, as in mathematics, or
    for fullwidth letters in East Asian texts."""
    return (
        len(word) >= SHORTEST_STYLED
        and not any(unicodedata.category(char) == "Nl" for char in word)
        and not (_FULLWIDTH.fullmatch(word) and may_be_east_asian(text, languages))
    )


def _are_flags(letters: str) -> bool:
    """Return True if the regional letters are flags of countries; each flag consists of two
    letters."""
    plain = "".join(chr(ord(char) - ord(_FIRST_REGIONAL) + ord("a")) for char in letters)
    pairs = [plain[at : at + 2] for at in range(0, len(plain), 2)]
    return all(pair in ENDINGS or pair in _FLAGS_WITHOUT_HOSTS for pair in pairs)


_ASCII = frozenset(map(chr, range(128)))


@lru_cache(maxsize=4096)
def _is_rare_latin_twin(char: str) -> bool:
    if name_alphabet(char) != LATIN:
        return False
    plain = unicodedata.normalize("NFKC", char)
    if char in LIGATURES or (plain != char and len(plain) == 1 and plain.isascii()):
        return True
    is_rare = char >= FIRST_RARE_LATIN
    return is_rare and len(LOOKS.get(char, "")) == 1


def _find_turned_parts(text: str, languages: Collection[str]) -> Iterator[OddPart]:
    """Find numbers and addresses whose displayed order is changed by right-to-left letters or
    signs."""
    leftward = frozenset(filter(_is_right_to_left, set(text)))
    if not leftward:
        return
    is_written_leftwards = _is_written_leftwards(text, languages)
    for found in _TOKEN.finditer(text):
        token = found[0]
        first = next((at for at, char in enumerate(token) if char in leftward), 0)
        odd = leftward.intersection(token)
        is_ordinary = is_written_leftwards and not any(map(str.isalpha, odd))
        if not is_ordinary and all(
            any(map(_is_latin_or_digit, part)) for part in (token[:first], token[first:])
        ):
            yield OddPart(found.start(), found.end(), odd, TURNED)
    for found in () if is_written_leftwards else _build_turned_numbers(text).finditer(text):
        before = text[max(0, found.start() - FURTHEST_NUMBER) : found.start()]
        number = _LAST_NUMBER.search(before)
        odd = leftward.intersection(found[1])
        if number and odd:
            yield OddPart(found.start() - len(before) + number.start(), found.end(), odd, TURNED)


def _is_written_leftwards(text: str, languages: Collection[str]) -> bool:
    """Return True if one of the languages is written from right to left, or if the text is a
    sentence that begins with such letters. Signs such as the Hebrew hyphen are ordinary there."""
    strong = _FIRST_STRONG.search(text)
    return not LEFTWARD_SCRIPTS.isdisjoint(name_scripts(languages)) or (
        strong is not None
        and _is_right_to_left(strong[0])
        and sum(char.isalpha() and _is_right_to_left(char) for char in text) >= FEWEST_OF_A_SENTENCE
    )


def _build_turned_numbers(text: str) -> re.Pattern[str]:
    """Build a pattern for a number after the text's right-to-left letters and signs, with the marks
    on them."""
    leftward = "".join(filter(_is_right_to_left_or_combining, sorted(set(text))))
    letters = f"[{re.escape(leftward)}]"
    return re.compile(f"(?<!{letters})({letters}++)[^\\S\n]{{0,9}}[+#$£€¥₪-]?[0-9]{{1,40}}")


@lru_cache(maxsize=4096)
def _is_right_to_left(char: str) -> bool:
    is_shown = unicodedata.category(char) != "Cf"
    return is_shown and unicodedata.bidirectional(char) in {"R", "AL"}


def _is_right_to_left_or_combining(char: str) -> bool:
    return _is_right_to_left(char) or unicodedata.bidirectional(char) == "NSM"


def _is_latin_or_digit(char: str) -> bool:
    return char.isascii() and char.isalnum()
