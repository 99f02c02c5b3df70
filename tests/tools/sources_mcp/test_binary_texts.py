"""Binary content in any text form becomes a short sentence; people's texts, ids, keys and numbers
stay unchanged."""

from __future__ import annotations

import base64
import json
import random
import struct
import time
import uuid
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.features import feature
from tests.sampling import take_sample
from tools.sources.mcp.binary_texts import replace_binary


def chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


NOISE = random.Random(11)
PIXELS = b"".join(b"\x00" + NOISE.randbytes(180) for _ in range(60))
PNG = (
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 60, 60, 8, 2, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(PIXELS))
    + chunk(b"IEND", b"")
)
UNKNOWN = NOISE.randbytes(9_000)
SPARSE = b"".join(NOISE.randbytes(40) + bytes(60) for _ in range(90))


def cut(text: str, width: int) -> list[str]:
    return [text[at : at + width] for at in range(0, len(text), width)]


def wrap(text: str, width: int = 76, sign: str = "\n") -> str:
    return sign.join(cut(text, width))


def rows(data: bytes) -> list[bytes]:
    return [data[at : at + 16] for at in range(0, len(data), 16)]


def dump(data: bytes) -> str:
    return "\n".join(
        f"{at * 16:08x}: {row.hex(' ', 2)}  {'.' * len(row)}" for at, row in enumerate(rows(data))
    )


FORMS: dict[str, Callable[[bytes], Any]] = {
    "hex": lambda data: data.hex(),
    "hex in capitals": lambda data: data.hex().upper(),
    "hex with spaces": lambda data: data.hex(" "),
    "hex with colons": lambda data: data.hex(":"),
    "hex in lines": lambda data: wrap(data.hex(), 60),
    "hex in lines of a hash": lambda data: wrap(data.hex(), 64),
    "hex with prefixes": lambda data: ", ".join(f"0x{byte:02x}" for byte in data),
    "hex with prefixes in lines": lambda data: ",\n".join(
        ", ".join(f"0x{byte:02x}" for byte in row) for row in rows(data)
    ),
    "hex as escapes": lambda data: "".join(f"\\x{byte:02x}" for byte in data),
    "a dump": dump,
    "hex with spaces in lines": lambda data: "\n".join(row.hex(" ") for row in rows(data)),
    "base32": lambda data: base64.b32encode(data).decode(),
    "base32 in small letters": lambda data: base64.b32encode(data).decode().lower().rstrip("="),
    "base32hex": lambda data: base64.b32hexencode(data).decode(),
    "base32 in lines": lambda data: wrap(base64.b32encode(data).decode()),
    "base64": lambda data: base64.b64encode(data).decode(),
    "base64url": lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
    "base64 in lines": lambda data: wrap(base64.b64encode(data).decode()),
    "base64 in lines of 64": lambda data: wrap(base64.b64encode(data).decode(), 64, "\r\n"),
    "base64 in lines as literals": lambda data: wrap(base64.b64encode(data).decode(), 76, "\\n"),
    "base64 in quoted lines": lambda data: wrap(base64.b64encode(data).decode(), 76, '"\n"'),
    "base64 after words": lambda data: (
        f"Here it is:\n\n{wrap(base64.b64encode(data).decode())}\n\nThat is all."
    ),
    "base85": lambda data: base64.b85encode(data).decode(),
    "ascii85": lambda data: base64.a85encode(data).decode(),
    "ascii85 in lines": lambda data: base64.a85encode(data, wrapcol=80).decode(),
    "ascii85 of Adobe": lambda data: base64.a85encode(data, adobe=True).decode(),
    "a data URI": lambda data: f"data:image/png;base64,{base64.b64encode(data).decode()}",
    "a data URI of base64url": lambda data: (
        f"data:image/png;base64,{base64.urlsafe_b64encode(data).decode()}"
    ),
    "a data URI without its type": lambda data: f"data:;base64,{base64.b64encode(data).decode()}",
    "an image in HTML": lambda data: (
        f'<p>Hi</p><img src="data:image/png;base64,{base64.b64encode(data).decode()}">'
    ),
    "bytes": list,
    "signed bytes": lambda data: [byte - 256 if byte > 127 else byte for byte in data],
    "bytes by number": lambda data: {str(number): byte for number, byte in enumerate(data)},
    "bytes of Node.js": lambda data: {"type": "Buffer", "data": list(data)},
    "bytes in a text": lambda data: str(list(data)),
    "bytes in a text after words": lambda data: f"The image is {list(data)}, as you asked.",
    "bytes with spaces": lambda data: " ".join(map(str, data)),
    "rows of bytes": lambda data: [list(data[at : at + 60]) for at in range(0, len(data) - 60, 60)],
    "lines of base64": lambda data: cut(base64.b64encode(data).decode(), 76),
    "lines of base64url": lambda data: cut(base64.urlsafe_b64encode(data).decode(), 64),
    "lines of base32": lambda data: cut(base64.b32encode(data).decode(), 64),
    "lines of hex": lambda data: cut(data.hex(), 80),
    "pairs of hex": lambda data: [f"{byte:02x}" for byte in data],
    "long pieces of base64": lambda data: cut(base64.b64encode(data).decode(), 2_000),
    "Latin-1": lambda data: data.decode("latin-1"),
    "broken UTF-8": lambda data: data.decode("utf-8", "replace"),
    "escapes of Python": repr,
    "percent signs": lambda data: "".join(f"%{byte:02X}" for byte in data),
    "a text of JSON": lambda data: json.dumps({"id": 7, "data": base64.b85encode(data).decode()}),
    "a text of JSON with bytes": lambda data: json.dumps({"id": 7, "data": list(data)}, indent=2),
}


@feature(
    "Tools from API descriptions",
    "Binary content in an MCP response, in any text form, is replaced by its kind and size",
    "tools/sources/mcp/binary_texts.py",
    whole_file=True,
)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("data", [PNG, UNKNOWN, SPARSE], ids=["png", "unknown", "sparse"])
def test_binary_content_in_any_form_becomes_a_sentence(form: str, data: bytes) -> None:
    written = FORMS[form](data)
    for value in (written, {"file": written}, {"rows": [{"id": 1, "content": written}]}):
        shown = json.dumps(replace_binary(value))
        assert "bytes, not shown]" in shown
        assert len(shown) < 1_000


@pytest.mark.parametrize("form", FORMS)
def test_the_sentence_for_binary_content_states_its_approximate_size(form: str) -> None:
    written = FORMS[form](PNG)
    shown = str(replace_binary({"mimeType": "image/png", "data": written}))
    assert shown.count("not shown") >= 1
    if "words" not in form and form not in ("long pieces of base64", "broken UTF-8"):
        size = int(shown.rpartition(" bytes, not shown")[0].rpartition(": ")[2].replace(",", ""))
        assert abs(size - len(PNG)) < len(PNG) * 0.02 + 70


def test_a_known_format_is_recognized_without_a_type() -> None:
    for form in ("hex", "base32", "base64", "base85", "bytes", "lines of base64", "hex in lines"):
        assert replace_binary(FORMS[form](PNG)) == f"[image/png: {len(PNG):,} bytes, not shown]"
    assert replace_binary(UNKNOWN.hex()) == "[hex: 9,000 bytes, not shown]"


@pytest.mark.parametrize(
    "form", ["hex", "base32", "base64", "base85", "bytes", "lines of base64", "base64 in lines"]
)
def test_short_content_is_treated_as_binary_if_a_type_is_given(form: str) -> None:
    shown = replace_binary({"mimeType": "image/png", "data": FORMS[form](PNG[:300])})
    assert shown == {"mimeType": "image/png", "data": "[image/png: 300 bytes, not shown]"}


WORDS = (
    "the",
    "invoice",
    "of",
    "Region",
    "North",
    "was",
    "sent",
    "to",
    "Ada",
    "on",
    "12",
    "March",
    "for",
    "1,204.50",
)


def words(count: int, seed: int = 3) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=count))


def hashes(count: int, length: int = 64) -> list[str]:
    return [random.Random(number).randbytes(length // 2).hex() for number in range(count)]


def numbers(count: int, least: int, most: int) -> list[int]:
    return [random.Random(least + most).randint(least, most) for _ in range(1)] + [
        random.Random(number).randint(least, most) for number in range(count)
    ]


TOKEN = ".".join(
    base64.urlsafe_b64encode(part.encode()).decode().rstrip("=")
    for part in (
        '{"alg":"RS256","typ":"JWT"}',
        json.dumps({"sub": "ada", "scope": words(300)}),
        "x" * 256,
    )
)
CERTIFICATE = wrap(base64.b64encode(b"\x30\x82\x05\x10" + NOISE.randbytes(1_400)).decode(), 64)
SSH_KEY = base64.b64encode(b"\x00\x00\x00\x07ssh-rsa" + NOISE.randbytes(1_100)).decode()
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def ids(count: int, length: int, prefix: str = "") -> list[str]:
    return [
        prefix + "".join(random.Random(number).choices(ALPHABET, k=length))
        for number in range(count)
    ]


HARMLESS: dict[str, Any] = {
    "prose": words(2_000),
    "prose in lines": wrap(words(2_000)),
    "a long word": "x" * 3_000,
    "long words": "Donaudampfschifffahrtsgesellschaft" * 60,
    "words without spaces": words(600).replace(" ", ""),
    "Chinese": "\u4f60\u597d\u4e16\u754c" * 600,
    "emoji": "\U0001f600\U0001f680" * 700,
    "digits": "1234567890" * 300,
    "a number of many digits": str(3**7_000),
    "a line": "-" * 2_000,
    "a hash of 64": hashes(1)[0],
    "a hash of 128": {"mimeType": "image/png", "sha512": hashes(1, 128)[0]},
    "a hash in base64": {
        "mimeType": "image/png",
        "sha512": base64.b64encode(NOISE.randbytes(64)).decode(),
    },
    "hashes": hashes(100),
    "hashes in lines": "\n".join(hashes(100)),
    "hashes of files": "\n".join(
        f"{each}  src/file_{number}.py" for number, each in enumerate(hashes(100))
    ),
    "commits": "\n".join(
        f"{each[:7]} Mend the {number}th fault" for number, each in enumerate(hashes(200, 40))
    ),
    "short commits": "\n".join(each[:8] for each in hashes(300)),
    "UUIDs": [str(uuid.UUID(bytes=random.Random(number).randbytes(16))) for number in range(100)],
    "UUIDs in lines": "\n".join(
        str(uuid.UUID(bytes=random.Random(number).randbytes(16))) for number in range(100)
    ),
    "UUIDs in capitals": [
        str(uuid.UUID(bytes=random.Random(n).randbytes(16))).upper() for n in range(100)
    ],
    "addresses of network cards": "\n".join(
        random.Random(number).randbytes(6).hex(":") for number in range(300)
    ),
    "IPv4 addresses": "\n".join(
        ".".join(map(str, random.Random(number).randbytes(4))) for number in range(500)
    ),
    "IPv6 addresses": "\n".join(
        random.Random(number).randbytes(16).hex(":", 2) for number in range(200)
    ),
    "short ids": ids(300, 11),
    "short ids in lines": "\n".join(ids(300, 22)),
    "ids of 27": "\n".join(ids(100, 27)),
    "API keys": ids(40, 48, "sk-live-"),
    "digests of subresources": [
        f"sha384-{base64.b64encode(random.Random(n).randbytes(48)).decode()}" for n in range(40)
    ],
    "digests in base64": [
        base64.b64encode(random.Random(n).randbytes(64)).decode() for n in range(40)
    ],
    "a signed token": TOKEN,
    "a cursor": base64.urlsafe_b64encode(json.dumps({"after": words(300)}).encode()).decode(),
    "a certificate": f"-----BEGIN CERTIFICATE-----\n{CERTIFICATE}\n-----END CERTIFICATE-----\n",
    "a public key": f"ssh-rsa {SSH_KEY} ada@example.com",
    "a fingerprint": "SHA256 Fingerprint=" + NOISE.randbytes(32).hex(":").upper(),
    "a long address": "https://example.com/Reports/2024/" + "/".join(ids(40, 30)) + "?page=3",
    "a signed address": f"https://files.example.com/a.png?X-Token={''.join(ids(60, 22))}&X-Signature={hashes(1)[0]}",
    "a long path": "/".join(f"Folder{number}/Report_Final-v{number}" for number in range(80)),
    "DNA": "".join(random.Random(5).choices("ACGT", k=8_000)),
    "DNA in lines": ">chr1\n" + wrap("".join(random.Random(5).choices("ACGT", k=8_000)), 60),
    "a protein": wrap("".join(random.Random(6).choices("ACDEFGHIKLMNPQRSTVWY", k=3_000)), 60),
    "amounts": [random.Random(number).randint(0, 100_000) for number in range(2_000)],
    "percents": [random.Random(number).randint(0, 100) for number in range(2_000)],
    "temperatures": [random.Random(number).randint(-30, 45) for number in range(2_000)],
    "numbers in order": list(range(256)),
    "numbers in order, each four times": sorted([*range(256)] * 4),
    "names in a row": "".join(f"GetUserAccountById{n}ThenUpdate" for n in range(80)),
    "a key of PGP": f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{wrap(FORMS['base64'](UNKNOWN[:1_400]), 64)}\n-----END",
    "zeros and ones": [random.Random(number).randint(0, 1) for number in range(5_000)],
    "decimals": [random.Random(number).random() for number in range(2_000)],
    "a table of numbers": [
        [random.Random(number + n).randint(0, 5_000) for n in range(40)] for number in range(80)
    ],
    "a matrix": [
        [random.Random(number + n).randint(0, 9) for n in range(40)] for number in range(40)
    ],
    "CSV": "\n".join(
        ",".join(str(random.Random(number + n).randint(0, 999)) for n in range(12))
        for number in range(300)
    ),
    "years": " ".join(str(1900 + number % 124) for number in range(2_000)),
    "times": "\n".join(
        f"2026-11-{number % 28 + 1:02d} 12:{number % 60:02d}:07" for number in range(300)
    ),
    "a log": "\n".join(
        f"12:00:{n % 60:02d} GET /api/runs/{each} 200" for n, each in enumerate(hashes(200, 32))
    ),
    "code": "\n".join(
        f"    result_{n} = compute(values[{n}], limit=0x{n:02x})  # step {n}" for n in range(200)
    ),
    "minified JavaScript": "".join(
        f"function a{n}(b,c){{return b.length>{n}?c.push(document.getElementById('row{n}')):null}}"
        for n in range(80)
    ),
    "minified CSS": "".join(
        f".row-{n}{{color:#{n * 999 % 0xFFFFFF:06x};padding:{n}px 0 0}}" for n in range(200)
    ).replace(" ", ""),
    "colors": ", ".join(f"#{n * 9_999_991 % 0xFFFFFF:06X}" for n in range(400)),
    "JSON without spaces": json.dumps(
        [{"id": each, "name": "Ada"} for each in ids(200, 22)], separators=(",", ":")
    ),
    "JSON with spaces": json.dumps(
        [{"id": each, "total": n} for n, each in enumerate(ids(200, 22))], indent=2
    ),
    "HTML": "".join(
        f'<li class="row"><a href="/records/{n}">Record {n}</a></li>' for n in range(200)
    ),
    "a path of SVG": "M" + "".join(f"L{n}.{n % 10},{n * 7 % 300}" for n in range(600)) + "Z",
    "a Chinese address": "https://example.com/?q="
    + "".join(f"%{byte:02X}" for byte in ("\u4f60\u597d" * 200).encode()),
    "escapes of Chinese": repr(("\u4f60\u597d" * 200).encode()),
    "colored text": "".join(f"\x1b[3{n % 8}mline {n} is done\x1b[0m\n" for n in range(200)),
    "Markdown": "\n".join(
        f"| {n} | **Record {n}** | [open](https://example.com/r/{n}) |" for n in range(200)
    ),
    "a base64 word": {
        "mimeType": "image/png",
        "name": "Screenshot_2026-11-29_at_12-00-00_of_the_start_page_Final2",
    },
    "a type of text": {
        "contentType": "application/json",
        "etag": "".join(ids(1, 90)),
        "session": "".join(ids(1, 300)),
    },
    "lyrics": "\n".join(["La la la", "Na na na na"] * 200),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_texts_stay_unchanged(name: str) -> None:
    value = HARMLESS[name]
    assert replace_binary(value) == value
    assert replace_binary({"rows": [{"value": value}]}) == {"rows": [{"value": value}]}


@pytest.mark.parametrize(
    "part",
    take_sample(
        [
            *(
                "[",
                "a",
                "aB1",
                "0",
                "1 ",
                "1,",
                "0x",
                "ab ",
                "ab:",
                "\\x",
                "%",
                "{",
                "data:;base64,",
                "=",
            ),
            *(
                "A" * 40 + "\n",
                "abcd ",
                "\n",
                "00000000: 8950 4e47 0d0a 1a0a \n",
                "0000 00 00 00 00 " + " " * 30,
                "-",
                "1-",
            ),
            "x" * 1_023 + " ",
        ],
        4,
        "long binary texts",
    ),
    ids=lambda part: repr(part[:12]),
)
def test_checking_a_million_characters_takes_linear_time(part: str) -> None:
    began = time.process_time()
    replace_binary([part * (1_000_000 // len(part)), "x" + part * (1_000_000 // len(part)) + "y"])
    assert time.process_time() - began < 6
