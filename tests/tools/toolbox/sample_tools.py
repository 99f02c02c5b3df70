"""Small sample tools, one for each behavior that tests need."""

import threading
from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, Field

from tools.contract import Level, NoParams, Tool, ToolContext, ToolResult


class Echo(Tool):
    """Returns its params; level, modes and demands can be set for each instance."""

    name = "sample.echo"
    description = "Says the same again."
    level = Level.READ

    class Params(BaseModel):
        text: str = Field(description="What to say", min_length=1, examples=["hello"])
        times: int = Field(1, ge=1, le=5, description="How often")
        style: Literal["plain", "loud"] = "plain"

    def __init__(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok(params.model_dump(mode="json"), f"said {params.text}")


class Does(Tool):
    """Executes a given function, so that a test can block it, make it fail or inspect its
    context."""

    name = "sample.does"
    description = "Does what the test says."
    level = Level.READ
    Params = NoParams

    def __init__(self, work: Callable[[ToolContext], Any], **attributes: Any) -> None:
        self.work = work
        for name, value in attributes.items():
            setattr(self, name, value)

    def execute(self, params: Any, context: ToolContext) -> Any:
        return self.work(context)


class Holding:
    """A function that waits until it is released, for 10 s at most."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.released = threading.Event()

    def __call__(self, context: ToolContext) -> ToolResult:
        self.started.set()
        assert self.released.wait(10)
        return ToolResult.ok("released")
