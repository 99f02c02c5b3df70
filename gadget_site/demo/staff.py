"""The demo's people, and its employees with their scripts and allowed tools."""

from dataclasses import dataclass

from agents.accounts.models import Role

PEOPLE: dict[str, Role] = {
    "viewer": Role.VIEWER,
    "operator": Role.OPERATOR,
    "approver": Role.APPROVER,
    "admin": Role.ADMIN,
}
OUTSIDER = "outsider"

READ = (
    "analysis.batchScore",
    "analysis.crossReference",
    "analysis.scoreRecord",
    "data.getRecordDetail",
    "data.getStats",
    "data.searchRecords",
    "demo.checkRegister",
    "files.grep",
    "files.list",
    "files.read",
    "results.read",
    "schedule.list",
    "utility.calculate",
    "utility.now",
)
DRAFT = ("content.buildReport", "content.generateSummary", "report.buildPreview")
WRITE = (
    "data.addToList",
    "data.bulkUpdate",
    "data.createRecord",
    "data.qualifyRecord",
    "data.updateRecord",
    "files.write",
    "schedule.cancel",
    "schedule.create",
)
COLLABORATION = ("employee.askHuman", "employee.delegate")
DESTRUCTIVE = ("data.archiveAll", "data.bulkDelete", "files.delete")


@dataclass(frozen=True)
class Worker:
    """One employee of the demo.

    Attributes:
        model: the name of a script in `scripts/`, without `.yaml`, or of a real model.
        delegates: names of the employees it may delegate to.
    """

    name: str
    job_title: str
    instructions: str
    allowed_tools: tuple[str, ...]
    example_tasks: tuple[str, ...]
    model: str = ""
    delegates: tuple[str, ...] = ()


RESEARCHER = Worker(
    name="Robin",
    job_title="Researcher",
    instructions="You look things up and write drafts. You never change a record.",
    allowed_tools=(*READ, *DRAFT),
    example_tasks=(
        "Give me an overview of our UK companies",
        "Which of these do we know: Acme Corp, Globex, Borealis Freight",
    ),
    model="researcher",
)
DATA_STEWARD = Worker(
    name="Dana",
    job_title="Data steward",
    instructions="You keep the records in order. Look before you change anything, and say what was actually changed.",
    allowed_tools=(*READ, *DRAFT, *COLLABORATION, *WRITE),
    example_tasks=(
        "Find EU companies that look inactive and set the two weakest to inactive",
        "Qualify Ember & Oak Hospitality",
        "Have Robin look at our UK companies, and ask me which one comes first",
    ),
    model="data_steward",
    delegates=("Robin",),
)
OFFICE_MANAGER = Worker(
    name="Morgan",
    job_title="Office manager",
    instructions="You tidy up. Before you delete or archive anything, show what it affects.",
    allowed_tools=(*READ, *DRAFT, *WRITE, *DESTRUCTIVE),
    example_tasks=(
        "Delete the leads of the 2019 spring fair",
        "Archive the inactive APAC companies with a low score",
    ),
    model="office_manager",
)
SECURITY_TESTER = Worker(
    name="Sam",
    job_title="Security tester",
    instructions="You test whether approvers notice deceptions. Afterwards you explain each of them.",
    allowed_tools=("data.searchRecords", "data.createRecord", "data.updateRecord"),
    example_tasks=("Try to fool me with six tricks among seven changes",),
    model="security_tester",
)
ON_A_REAL_MODEL = Worker(
    name="Alex",
    job_title="Assistant on a real model",
    instructions=(
        "You work on the organization's business records. Search before you change anything, use the ids that the "
        "tools give you, ask for several independent calls at once, and finish with a short answer that says what was "
        "actually done."
    ),
    allowed_tools=(*READ, *DRAFT, *WRITE, *DESTRUCTIVE),
    example_tasks=(
        "Which three EU companies have the lowest scores? Suggest what to do with each.",
        "Set the phone number of Acme Corp to +49 40 66969 777",
    ),
)
SCHEDULED = (RESEARCHER.name, RESEARCHER.example_tasks[0], "0 9 * * MON-FRI", "Europe/London")
"""Employee, task, times and time zone of the example schedule, which is created paused."""
SCRIPTED_WORKERS = (RESEARCHER, DATA_STEWARD, OFFICE_MANAGER, SECURITY_TESTER)
OUTSIDERS_WORKER = Worker(
    name="Kim",
    job_title="Researcher",
    instructions=RESEARCHER.instructions,
    allowed_tools=RESEARCHER.allowed_tools,
    example_tasks=RESEARCHER.example_tasks,
    model=RESEARCHER.model,
)
OUTSIDERS_RECORDS = (
    {
        "name": "Private Ledger Partners",
        "region": "UK",
        "category": "Finance",
        "status": "active",
        "score": 71,
    },
    {
        "name": "Quiet Harbor Storage",
        "region": "EU",
        "category": "Logistics",
        "status": "pending",
        "score": 38,
    },
    {
        "name": "Sealed Orchard Foods",
        "region": "US",
        "category": "Food & Beverage",
        "status": "inactive",
        "score": 12,
    },
)
