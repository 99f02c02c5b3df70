"""Tools of the category employee: ask a person, hand a task to a colleague. Their calls wait without a worker."""

from typing import Annotated

from pydantic import BaseModel, Field

from tools.contract import Delegation, Level, Question, Tool, ToolContext

from .outputs import HumanAnswer

LONGEST_QUESTION = 2_000
LONGEST_CHOICE = 200
MOST_CHOICES = 8
LONGEST_TASK = 20_000


class AskHuman(Tool):
    name = "employee.askHuman"
    display_name = "Ask a person"
    description = (
        "Ask a person a question and wait for the answer. Use it when only a person can know or decide something that "
        "you need to go on; not to get permission for a call, which is asked for by itself."
    )
    level = Level.READ
    Output = HumanAnswer
    suspends = True

    class Params(BaseModel):
        question: str = Field(
            min_length=1,
            max_length=LONGEST_QUESTION,
            description="One clear question, with all that a person needs to answer it",
            examples=["Which of the two addresses is the right one?"],
        )
        choices: list[Annotated[str, Field(min_length=1, max_length=LONGEST_CHOICE)]] = Field(
            default_factory=list,
            max_length=MOST_CHOICES,
            description="Answers to choose from, if there are only few; the person may still answer otherwise",
        )

    def execute(self, params: Params, context: ToolContext) -> Question:
        return Question(params.question, tuple(params.choices))

    def running_summary(self, params: Params) -> str:
        return "Asking a person…"


class Delegate(Tool):
    name = "employee.delegate"
    display_name = "Hand over a task"
    description = (
        "Hand a task to a colleague, who works on it with tools of their own, and wait for their answer. Your "
        "instructions name the colleagues. They see nothing of your work: the task says all that they need."
    )
    level = Level.DRAFT
    suspends = True

    class Params(BaseModel):
        employee: str = Field(min_length=1, max_length=80, description="The colleague's name, as it was told to you")
        task: str = Field(
            min_length=1,
            max_length=LONGEST_TASK,
            description="What the colleague shall do, and what the answer has to say",
        )

    def execute(self, params: Params, context: ToolContext) -> Delegation:
        return Delegation(params.employee, params.task)

    def sentence(self, params: Params, preview: object) -> str:
        return f"Hand a task to **{params.employee}**: {params.task}"

    def running_summary(self, params: Params) -> str:
        return f"Handing a task to {params.employee}…"
