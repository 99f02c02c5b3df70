"""The engine's own tools in one explicit list: they ask questions, delegate tasks, read large
results and give runs titles."""

from tools.builtin.employee import AskHuman, Delegate
from tools.builtin.results import ReadResult
from tools.builtin.system import TitleRun
from tools.contract import Tool

BUILTIN_TOOLS: tuple[type[Tool], ...] = (AskHuman, Delegate, ReadResult, TitleRun)
