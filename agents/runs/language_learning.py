"""Learn which languages each organization writes in, from its members' preferences and from tasks
that people typed, but never from texts of models, tools, triggers, other programs or outside
agents."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from django.db.models import Count
from django.db.models.functions import Left

from agents.accounts.models import Organization, Preferences
from agents.accounts.models.organization_languages import LearnedLanguages
from agents.runs.models import Event, EventType, Origin, Run
from tools.contract.languages import SCRIPTS, count_scripts

NEWEST_TASKS = 200
"""The number of newest tasks that are read to learn an organization's scripts."""
MIN_TASKS = 3
"""The minimum number of tasks in a script before the script is learned."""
MAX_READ = 2_000
"""The maximum number of characters that are read from a task."""
_KNOWN_SCRIPTS = frozenset(SCRIPTS.values())


class LanguageLearner:
    """A repeated learner: after the first time, it only reads tasks of organizations with new
    tasks.

    Several sweepers may learn at the same time, because all find the same languages.
    """

    def __init__(self) -> None:
        self._newest: int | None = None

    def learn(self) -> int:
        """Learn the languages of every organization; return how many of them changed."""
        chosen = _count_chosen()
        rows = Organization.objects.order_by("pk")
        with_new_tasks = self._find_new_tasks()
        changed = 0
        for pk, stored in rows.values_list("pk", "learned_languages"):
            before = LearnedLanguages.from_json(stored)
            has_new = with_new_tasks is None or pk in with_new_tasks
            after = LearnedLanguages(
                chosen.get(pk, {}), count_task_scripts(pk) if has_new else before.tasks
            )
            if after != before:
                Organization.objects.filter(pk=pk).update(learned_languages=after.to_json())
                changed += 1
        return changed

    def _find_new_tasks(self) -> set[int] | None:
        """Find the organizations with new tasks since the last call; None if it is the first
        call."""
        before = self._newest
        self._newest = Run.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        if before is None:
            return None
        new = Run.objects.filter(pk__gt=before, pk__lte=self._newest, origin=Origin.TASK)
        return set(new.order_by().values_list("organization_id", flat=True).distinct())


def count_task_scripts(organization_id: int) -> dict[str, int]:
    """Count the tasks that people typed in each script, among the newest 200; drop rare scripts."""
    tasks = dict(
        Run.objects.filter(
            organization_id=organization_id,
            origin=Origin.TASK,
            created_by__memberships__organization_id=organization_id,
        )
        .order_by("-pk")
        .values_list("pk", Left("task", MAX_READ))[:NEWEST_TASKS]
    )
    typed = Event.objects.filter(
        run_id__in=tasks, type=EventType.RUN_STARTED, payload__is_typed=True
    )
    counts = Counter(_list_main_scripts(tasks[pk] for pk in typed.values_list("run_id", flat=True)))
    return {script: count for script, count in sorted(counts.items()) if count >= MIN_TASKS}


def _list_main_scripts(texts: Iterable[str]) -> Iterable[str]:
    """Yield the script that most letters of a text belong to, for each text; skip Latin."""
    for text in texts:
        counts = count_scripts(text)
        for script, count in counts.items():
            if script in _KNOWN_SCRIPTS and count * 2 > sum(counts.values()):
                yield script


def _count_chosen() -> dict[int, dict[str, int]]:
    """Count the members who chose each language, by organization."""
    chosen: dict[int, dict[str, int]] = defaultdict(dict)
    rows = (
        Preferences.objects.filter(membership__user__is_active=True)
        .exclude(language="")
        .order_by("language")
        .values_list("membership__organization_id", "language")
        .annotate(count=Count("pk"))
    )
    for organization_id, language, count in rows:
        chosen[organization_id][language] = count
    return dict(chosen)
