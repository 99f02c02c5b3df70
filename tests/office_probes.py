"""Test tools like those of a mail server and a calendar; they send nothing."""

from typing import Any

from pydantic import BaseModel, Field

from tools.contract import Level, Preview, Target, Tool, ToolContext, ToolResult


class SendMail(Tool):
    """A write that would send an email."""

    name = "mail.send"
    display_name = "Send an email"
    description = "Sends an email."
    level = Level.WRITE

    class Params(BaseModel):
        recipient: str
        subject: str
        body: str

    def preview(self, params: Any, context: ToolContext) -> Preview:
        after = {"subject": params.subject, "body": params.body}
        return Preview("send", (Target("", params.recipient, after=after),), reversible=False)

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok({"recipient": params.recipient}, f"Sent to {params.recipient}")


class CreateEvent(Tool):
    """A write that would create an event in a calendar."""

    name = "calendar.createEvent"
    display_name = "Create an event"
    description = "Creates an event."
    level = Level.WRITE

    class Params(BaseModel):
        title: str
        attendee: str
        start: str
        minutes: int = Field(ge=1)

    def preview(self, params: Any, context: ToolContext) -> Preview:
        after = {"attendee": params.attendee, "start": params.start, "minutes": params.minutes}
        return Preview("create", (Target("", params.title, after=after),))

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok({"title": params.title}, f"Created {params.title}")


PROBES = (SendMail, CreateEvent)
