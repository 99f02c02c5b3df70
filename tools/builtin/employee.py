"""The tools that ask a person and that delegate a task. Their calls wait without occupying a
worker."""

from typing import Annotated

from pydantic import BaseModel, Field

from tools.contract import Delegation, Level, Question, Tool, ToolContext
from tools.contract.sentences import format_name, quote_whole

LONGEST_QUESTION = 2_000
LONGEST_CHOICE = 200
MAX_CHOICES = 8
LONGEST_TASK = 20_000


class HumanAnswer(BaseModel):
    answer: str
    answered_by: str


class ColleagueAnswer(BaseModel):
    run_id: str
    employee: str
    answer: str
    exit_reason: str


class AskHuman(Tool):
    name = "employee.askHuman"
    display_name = "Ask a person"
    description = (
        "Ask a person a question and wait for the answer. Use it only for a fact or a decision that you need and that "
        "only a person can give. Do not use it to get permission for a call: approval is requested automatically."
    )
    level = Level.READ
    Output = HumanAnswer
    suspends = True

    class Params(BaseModel):
        question: str = Field(
            min_length=1,
            max_length=LONGEST_QUESTION,
            description="One clear question, with everything that a person needs to answer it",
            examples=["Which of the two addresses is the right one?"],
        )
        choices: list[Annotated[str, Field(min_length=1, max_length=LONGEST_CHOICE)]] = Field(
            default_factory=list,
            max_length=MAX_CHOICES,
            description="Answers to choose from, if there are only a few; the person may still give another answer",
        )

    def execute(self, params: Params, context: ToolContext) -> Question:
        return Question(params.question, tuple(params.choices))

    def running_summary(self, params: Params) -> str:
        return "Asking a person…"


class Delegate(Tool):
    name = "employee.delegate"
    display_name = "Delegate a task"
    description = (
        "Delegate a task to a colleague, who works on it with their own tools, and wait for the answer. Your "
        "instructions name the colleagues. They see nothing of your work: put everything they need into the task."
    )
    level = Level.DRAFT
    suspends = True
    Output = ColleagueAnswer

    class Params(BaseModel):
        employee: str = Field(
            min_length=1, max_length=80, description="The colleague's name, as in your instructions"
        )
        task: str = Field(
            min_length=1,
            max_length=LONGEST_TASK,
            description="The work to do, and what the answer must contain",
        )

    def execute(self, params: Params, context: ToolContext) -> Delegation:
        return Delegation(params.employee, params.task)

    def sentence(self, params: Params, preview: object) -> str:
        return f"Delegate to {format_name(params.employee)}: {quote_whole(params.task)}"

    def running_summary(self, params: Params) -> str:
        return f"Delegating to {params.employee}…"
