"""Suspensions: return values of tools whose result waits for a person or another employee."""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from pydantic import ConfigDict

from tools.contract.values import CHECKED_AGAIN, Text, WrittenText


@dataclass(frozen=True)
class Question:
    """A question for a person, whose answer becomes the call's result.

    Attributes:
        choices: suggested answers; a person may also give any other answer.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CHECKED_AGAIN

    text: WrittenText
    choices: tuple[WrittenText, ...] = ()


@dataclass(frozen=True)
class Delegation:
    """A task for another employee, given by name, in a separate run; its answer becomes the
    result."""

    __pydantic_config__: ClassVar[ConfigDict] = CHECKED_AGAIN

    employee: Text
    task: WrittenText


@dataclass(frozen=True)
class Steps:
    """A request to run the steps of a recipe one after the other, as calls of their own."""


Suspend: TypeAlias = Question | Delegation | Steps
"""A call's request to wait without occupying a thread or a worker. Only tools with `suspends` may
return it, and only in runs."""
