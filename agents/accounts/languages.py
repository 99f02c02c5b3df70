"""The languages that an organization writes in; cards do not warn about letters of these
languages."""

from __future__ import annotations

import re

from django.conf.locale import LANG_INFO

from agents.accounts.models import Organization
from agents.accounts.models.organization_languages import LearnedLanguages, get_read_languages
from agents.platform.log_context import get_logged_organization
from tools.contract.languages import CJK, get_main_code

SCRIPT_NAMES = {CJK: "Chinese, Japanese or Korean"}
LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


def get_languages(organization_id: int) -> frozenset[str]:
    """Return the codes of the languages that the organization writes in.

    They are as this process last read them from the organization's row; only the first read needs a
    query.
    """
    read = get_read_languages(organization_id)
    if read is not None:
        return read
    row = Organization.objects.filter(pk=organization_id).order_by().first()
    return row.written_languages if row else frozenset()


def get_current_languages() -> frozenset[str]:
    """Return the languages of the current request's or job's organization, without a query; return
    none if the organization is unknown."""
    organization_id = get_logged_organization()
    read = None if organization_id is None else get_read_languages(organization_id)
    return read or frozenset()


def name_language(code: str) -> str:
    """Return the name and code of a language, such as `Persian (fa)`; only the code if its name is
    unknown."""
    name = LANG_INFO.get(get_main_code(code), {}).get("name")
    return f"{name} ({code})" if name else code


def describe_learned(organization: Organization) -> list[str]:
    """Describe each language that the organization learned, and why."""
    learned = LearnedLanguages.from_json(organization.learned_languages)
    members = [
        f"{name_language(code)}: chosen by {count:,} member{'' if count == 1 else 's'}"
        for code, count in sorted(learned.members.items())
    ]
    tasks = [
        f"{SCRIPT_NAMES.get(script, script.capitalize())} letters: {count:,} of the newest tasks that people typed"
        for script, count in sorted(learned.tasks.items())
    ]
    return [*members, *tasks]
