"""Find text that imitates Gadget: other people's words that read like the product's own decision,
check or label."""

from __future__ import annotations

import re

MAX_TEXT = 200_000
_PHRASES = (
    r"(?:pre-?|already |automatically |auto-?)approved\b",
    r"\bapproved by\b",
    r"\b(?:has|have|was|were|is|are) (?:been )?(?:approved|authori[sz]ed|verified|whitelisted)\b",
    r"\bapproval (?:is |was )?(?:not (?:needed|required|necessary)|granted|given|confirmed|unnecessary)",
    r"\bno (?:further )?(?:approval|review|confirmation|check)s? (?:is |are )?(?:needed|required|necessary)",
    r"\b(?:verified|checked|confirmed|reviewed|cleared|guaranteed) by (?:gadget|the (?:system|server|platform|admin))",
    r"\bgadget(?:.s)? (?:has |have )?(?:verified|checked|confirm|recommend|approve|guarantee|says|note)",
    r"\b(?:security|safety|policy|compliance|fraud) (?:check|scan|review)s? (?:w\w+ )?(?:pass|ok\b|complete|clear)",
    r"\bpassed (?:all |the )?(?:security|safety|policy|compliance|automatic) (?:check|scan|review)",
    r"\bsafe to approve\b",
    r"\b(?:please |just |simply )?(?:click|press|hit|tap) (?:on )?[“\"']?(?:approve|confirm|allow)\b",
    r"\btwo-person rule\b",
    r"\bfour[- ]eyes\b",
    r"\bread-only (?:action|call|change|operation)\b",
    r"(?:^|[\n.!?|·\]\[(] ?)(?:gadget|system(?: message| notice| note)?|server|admin|security)\s?:",
    r"(?:^|[\n.!?|·\]\[(] ?)(?:level|reversible|affected|risk)\s?:\s?(?:read|draft|low|none|safe|yes|0|1)\b",
    r"[✓✔✅☑] ?(?:verified|approved|safe|checked|trusted)",
    r"\b(?:verified|trusted|official) (?:by|✓|✔|✅|☑)",
    r"\[(?:verified|approved|safe|trusted)\]|\((?:verified|approved|trusted)\)",
)
_IMITATION = re.compile("|".join(_PHRASES), re.IGNORECASE)


def find_imitation(text: str) -> str:
    """Return the first words of the text that imitate Gadget; empty if there are none."""
    found = _IMITATION.search(text[:MAX_TEXT])
    return " ".join(found.group().split()).strip(" .!?|·[](") if found else ""
