"""Known names of params: English names of recipients, places and amounts, and names of credentials,
amounts and end times in many languages.

A known name shows what a param names, even if the param has no value. Params with other names, in
any language, are judged by `param_naming`.
"""

import re
import unicodedata
from enum import StrEnum
from functools import lru_cache

from tools.caches import cache_by_text
from tools.contract.look_alikes import fold_characters


class NamedThing(StrEnum):
    """The thing that a param names."""

    RECIPIENT = "recipient"
    DESTINATION = "destination"
    ACCOUNT = "account"
    RIGHT = "right"
    AMOUNT = "amount"
    COMMAND = "command"
    UNKNOWN = "unknown"
    """Something unknown: the param looks like the id or address of something."""
    NOTHING = "nothing"


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


HOST_WORDS = _split("host hostname domain website server site")
FILE_WORDS = _split("path file filename folder")
RECIPIENT_WORDS = _split(
    "to cc bcc recipient recipients receiver receivers addressee payee beneficiary attendees"
)
"""Names of params whose plain texts are recipients."""
PERSON_WORDS = RECIPIENT_WORDS | _split(
    "assignee assignees owner owners user users username member members author reviewer reviewers "
    "approver approvers manager participant participants invitee invitees person people"
)
"""Names of params whose plain texts are people."""
PHONE_WORDS = _split("phone phones mobile fax")
WORDS = {
    NamedThing.RECIPIENT: RECIPIENT_WORDS | PHONE_WORDS | _split("contact email emails mail mails"),
    NamedThing.ACCOUNT: _split("account accounts iban bic swift wallet bank routing sortcode"),
    NamedThing.DESTINATION: HOST_WORDS
    | FILE_WORDS
    | _split(
        "address addresses hosts domains url urls uri uris "
        "href link links endpoint webhook callback proxy ip redirect destination destinations target targets channel "
        "channels paths files filepath directory"
    ),
    NamedThing.AMOUNT: _split("amount amounts price total sum cost fee fees quantity"),
    NamedThing.RIGHT: _split("role roles permission permissions privilege privileges scope scopes"),
    NamedThing.COMMAND: _split("command commands script scripts sql"),
}
"""For each thing, the words in a param's name that show that the param names it."""
LATER_WORDS = WORDS[NamedThing.RIGHT] | WORDS[NamedThing.COMMAND] | _split("attendees sortcode")
"""Words that were not known in the first recordings."""
_PASSWORD_LAST = _split(
    "password passwords passwd passwort kennwort passphrase passcode pwd wachtwoord adgangskode kodeord losenord "
    "passord salasana jelszo heslo haslo sifre kata sandi lozinka"
)
"""Words for a password that also begin the names of other things, such as `password_policy`."""
_PASSWORD = _split(
    "motdepasse contrasena contrasenya senha palavrapasse katasandi matkhau claveacceso пароль лозинка "
    "κωδικοςπροσβασης 密码 密碼 口令 パスワード 暗証番号 비밀번호 암호 סיסמה كلمةالمرور كلمةالسر رمزعبور पासवर्ड รหัสผ่าน"
)
_ANY_PASSWORD = _PASSWORD_LAST | _PASSWORD
_SECRET = _split("secret secrets apikey geheimnis segreto segredo secreto секрет 密钥 密鑰")
_KEY = _SECRET | _split(
    "key keys privatekey secretkey accesskey token tokens accesstoken authtoken refreshtoken credential credentials "
    "authorization cookie jwt parola cle schlussel clave llave chiave chave sleutel nyckel avain klucz klic kulcs "
    "anahtar jeton ключ токен κλειδι 令牌 鍵 キー トークン 키 토큰 מפתח مفتاح कुंजी"
)
_NUMBER_CODE = _split("pin otp totp cvv cvc puk tan")
_NO_CREDENTIAL = _split(
    "idempotency page next previous cursor sync continuation partition sort primary foreign object "
    "cache row issue project file storage registry routing translation"
)
"""Words before *key* or *token* that make it an ordinary id."""
_AMOUNT = WORDS[NamedThing.AMOUNT] | _split(
    "betrag summe preis montant somme prix importe monto precio valor quantia importo prezzo bedrag prijs belopp "
    "pris belob summa kwota cena castka osszeg tutar jumlah сумма цена ποσο 金额 金額 価格 금액 סכום مبلغ राशि"
)
_END = _split(
    "expires expiry expiration expire expirydate ttl until validuntil notafter maxage lifetime ablauf ablaufdatum "
    "gultigbis expiracion caduca caducidad vencimiento validade scadenza verloopt vervaldatum wygasa истекает "
    "срокдействия 有効期限 过期时间 到期 만료"
)
_SIGN = _split(
    "unit units symbol sign suffix prefix operator op delimiter separator bullet marker char character quote "
    "einheit zeichen unite unidad unidade unita eenheid enhet simbolo symbole единица знак 単位 单位"
)
_KIND = _split("type types typ tipo kind art unit mode basis soort rodzaj тип 类型 類型 種類 유형")
_LIMIT = _split(
    "limit limits max maximum cap quota budget ceiling threshold limite grenze limiet лимит 上限 限额"
)
_PATTERN = _split("pattern patterns regex regexes regexp regexps")
_PART = _split(
    "tax taxes vat gst shipping delivery freight discount discounts tip surcharge deposit refund "
    "commission interest duty insurance warranty steuer mwst versand rabatt impuesto envio descuento "
    "taxe tva livraison remise iva spedizione sconto imposto frete desconto btw korting налог скидка"
)
"""Names of parts of an amount."""
_AFTER = _split("confirm confirmation again repeat new old current value plain text")
"""Words that may follow the word for a password, as in `password_confirm`."""
_SHORTEST_JOINED = 6
"""The minimum number of ASCII letters in a word that is found at the beginning or end of a name
without separators."""
_LATIN = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "\u0131": "i"})
_SEPARATORS = re.compile(r"(?<=[^\W_])(?<!\d)[\s_.\-]+(?=[^\W_])|(?<=\d)[\s_.\-]+(?=[^\W\d_])")
_ANY_WORD = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@cache_by_text
def split_name(name: str) -> frozenset[str]:
    """Split a name into its words: `accountNumber` and `account_number` have the same words."""
    return frozenset(word.lower() for word in _WORD.findall(name))


def find_named(name: str, without: frozenset[str] = frozenset()) -> NamedThing:
    """Find the thing that a param with this name names, if the name is known.

    Args:
        without: words that do not count.
    """
    words = split_name(name) - without
    return next((kind for kind, known in WORDS.items() if words & known), NamedThing.NOTHING)


@cache_by_text
def fold_name(name: str) -> str:
    """Fold a name so that all spellings of one name become equal: `dry-run`, `Dry_Run` and
    `dryRun`.

    Signs at its edges and between digits stay, because they distinguish names.
    """
    return _SEPARATORS.sub("", fold_characters(name).casefold().strip())


@cache_by_text
def names_password(name: str) -> bool:
    """Return True for the name of a password, in any known language."""
    words = _list_words(name)
    while words and (words[-1] in _AFTER or words[-1].isdecimal()):
        words = words[:-1]
    return _is_at_end(words, _ANY_PASSWORD) or (
        bool(words) and (words[0] in _PASSWORD or "".join(words).startswith(_LONG_PASSWORDS))
    )


@cache_by_text
def names_key(name: str) -> bool:
    """Return True for the name of a key or token, but not of an ordinary id."""
    words = _list_words(name)
    return _is_at_end(words, _KEY) and _NO_CREDENTIAL.isdisjoint(words)


@cache_by_text
def names_secret(name: str) -> bool:
    """Return True if the name says that its value is secret."""
    words = _list_words(name)
    return _is_at_end(words, _SECRET) or words[-2:] == ("api", "key")


@cache_by_text
def names_number_code(name: str) -> bool:
    """Return True for the name of a secret number: `pin`, `otp`."""
    return _is_at_end(_list_words(name), _NUMBER_CODE)


@cache_by_text
def names_amount(name: str) -> bool:
    """Return True if a word of the name means an amount in a known language."""
    return not _AMOUNT.isdisjoint(_list_words(name))


@cache_by_text
def names_end(name: str) -> bool:
    """Return True for the name of a time or age at which something ends."""
    words = _list_words(name)
    return not _END.isdisjoint({*words, "".join(words)})


@cache_by_text
def names_sign(name: str) -> bool:
    """Return True for the name of a sign, such as a unit or a separator."""
    return _is_at_end(_list_words(name), _SIGN)


@cache_by_text
def names_kind(name: str) -> bool:
    """Return True for the name of a kind, such as `discount_type`."""
    return _is_at_end(_list_words(name), _KIND)


@cache_by_text
def names_limit(name: str) -> bool:
    """Return True if a word of the name means a limit in a known language."""
    return not _LIMIT.isdisjoint(_list_words(name))


@cache_by_text
def names_pattern(name: str) -> bool:
    """Return True for the name of a regular expression."""
    return _is_at_end(_list_words(name), _PATTERN)


@cache_by_text
def names_part(name: str) -> bool:
    """Return True if a word of the name means an amount, or a part of one, in a known language."""
    return not (_AMOUNT | _PART).isdisjoint(_list_words(name))


_LONG_PASSWORDS = tuple(word for word in _PASSWORD if len(word) >= _SHORTEST_JOINED)


def _is_at_end(words: tuple[str, ...], known: frozenset[str]) -> bool:
    """Return True if the last word is known, or if the name without separators ends with a known
    word that is long or written in a script without spaces."""
    return bool(words) and (words[-1] in known or "".join(words).endswith(_list_ends(known)))


@lru_cache
def _list_ends(known: frozenset[str]) -> tuple[str, ...]:
    return tuple(word for word in known if len(word) >= _SHORTEST_JOINED or _needs_no_space(word))


def _needs_no_space(word: str) -> bool:
    return unicodedata.category(word[0]) == "Lo" and unicodedata.bidirectional(word[0]) == "L"


@cache_by_text
def _list_words(name: str) -> tuple[str, ...]:
    """List the words of a name, without accents on Latin letters, and in lower case."""
    plain = unicodedata.normalize("NFKC", name)
    if not plain.isascii():
        plain = "".join(map(_drop_accent, plain))
    words = _ANY_WORD.findall(_CAMEL.sub(" ", plain))
    return tuple(word.casefold().translate(_LATIN) for word in words)


def _drop_accent(char: str) -> str:
    base = unicodedata.normalize("NFKD", char)[0]
    return base if base.isascii() else char
