"""The Django app of this folder's models, which reads the events of runs and organizations."""

from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "agents.notices"
    verbose_name = "Notices"

    def ready(self) -> None:
        from agents.approvals import break_glass
        from agents.notices import outbox
        from agents.notices.channels import can_reach_admins
        from agents.readers import reading

        reading.READERS.extend(outbox.READERS)
        break_glass.REACHES.append(can_reach_admins)
