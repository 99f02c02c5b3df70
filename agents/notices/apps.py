"""The Django app of this folder's models, which listens to the facts that other subjects tell."""

from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "agents.notices"
    verbose_name = "Notices"

    def ready(self) -> None:
        from agents.accounts import notice_facts, preferences
        from agents.approvals import break_glass
        from agents.notices.channels import can_reach_admins
        from agents.notices.choices import find_time_zone
        from agents.notices.outbox import write_facts

        notice_facts.LISTENERS.append(write_facts)
        preferences.TIME_ZONES.append(find_time_zone)
        break_glass.REACHES.append(can_reach_admins)
