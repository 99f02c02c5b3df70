"""The Django app of notices, which reads events and sends by mail, push and chat."""

from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "agents.notices"
    verbose_name = "Notices"

    def ready(self) -> None:
        from agents.accounts import preferences
        from agents.approvals import break_glass
        from agents.deliveries.outboxes import register
        from agents.notices import outbox
        from agents.notices.channels import can_reach_admins
        from agents.notices.choices import find_time_zone
        from agents.notices.sending import OUTBOXES_OF_NOTICES
        from agents.readers import reading

        reading.READERS.extend(outbox.READERS)
        preferences.TIME_ZONES.append(find_time_zone)
        break_glass.REACHES.append(can_reach_admins)
        register(*OUTBOXES_OF_NOTICES)
