"""A server's process: started, read line by line, listened to, and ended whole. The one place where tools start one."""

import asyncio
import logging
import os
import shutil
import signal
import sys
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from tools.contract import ErrorCode, ToolError

from .servers import StdioServer
from .words import one_line

logger = logging.getLogger("gadget.tools.mcp")

INHERITED = ("HOME", "PATH", "LANG", "TMPDIR")
TETHER = Path(__file__).with_name("tether.py")
READ_BYTES = 64 * 1024
HIDDEN = "[hidden]"
DISCARD_S = 0.01
"""Between two reads of what is thrown away."""

Heard: TypeAlias = SessionMessage | Exception


@dataclass(frozen=True)
class ChildLimits:
    """What one process may do.

    Attributes:
        line_bytes: of one message.
        nonsense: lines that are no messages, e.g. greetings.
        said_lines, said_chars: of its standard error that are logged.
        end_s: seconds that it may take to end by itself, and again after SIGTERM.
    """

    line_bytes: int = 10_000_000
    nonsense: int = 100
    said_lines: int = 1_000
    said_chars: int = 500
    end_s: float = 1.0


class Child:
    """One process of a server, to be used once.

    Attributes:
        fault: why it cannot be spoken to any more, as part of a sentence; empty while it can.
        nonsense: lines that were no messages.
        last_words: the end of its standard error, secrets hidden.
        heard_at: the loop's time of its last message.
        ended: set when nothing more can come from it.
    """

    def __init__(self, server: StdioServer, limits: ChildLimits) -> None:
        self._server = server
        self._limits = limits
        self._process: asyncio.subprocess.Process | None = None
        self._tether: BinaryIO | None = None
        self.fault = ""
        self.nonsense = 0
        self.last_words: deque[str] = deque(maxlen=10)
        self.heard_at = 0.0
        self.ended = asyncio.Event()

    @property
    def pid(self) -> int:
        """Of its tether, which leads the process group; 0 before it is started."""
        return self._process.pid if self._process else 0

    def let_go(self) -> None:
        """Hold it no longer: in a forked copy of this process, which must not keep alive what is not its own."""
        if self._tether is not None:
            self._tether.close()

    @asynccontextmanager
    async def spoken_with(
        self,
    ) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[Heard], MemoryObjectSendStream[SessionMessage]], None]:
        """Start it; what it says and what it is told, as the protocol's client wants them; at the end it is gone.

        Raises:
            ToolError: OPERATION_FAILED, it cannot be started.
        """
        self._process = await self._started()
        heard, to_read = anyio.create_memory_object_stream[Heard](0)
        to_write, told = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read, self._process, heard)
            tasks.start_soon(self._write, self._process, told)
            tasks.start_soon(self._listen, self._process)
            try:
                yield to_read, to_write
            finally:
                with anyio.CancelScope(shield=True):
                    await self._end(self._process)
                tasks.cancel_scope.cancel()
                for stream in (heard, to_read, to_write, told):
                    stream.close()

    async def _started(self) -> asyncio.subprocess.Process:
        environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
        environment.update(self._server.environment)
        command = _found(self._server, environment.get("PATH", os.defpath))
        theirs, ours = os.pipe()
        self._tether = os.fdopen(ours, "wb", buffering=0)
        try:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(TETHER), str(theirs)),
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
                pass_fds=(theirs,),
                start_new_session=True,
                limit=READ_BYTES,
            )
        except (OSError, ValueError) as error:
            self.let_go()
            raise _not_started(f"{self._server.title} cannot be started: {_reason(error)}.") from error
        finally:
            os.close(theirs)

    async def _read(self, process: asyncio.subprocess.Process, heard: MemoryObjectSendStream[Heard]) -> None:
        assert process.stdout is not None
        buffer = bytearray()
        with heard, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while not self.fault and (part := await process.stdout.read(READ_BYTES)):
                buffer += part
                if b"\n" in part:
                    *lines, rest = bytes(buffer).split(b"\n")
                    buffer = bytearray(rest)
                    for line in lines:
                        await self._take(line, heard)
                if len(buffer) > self._limits.line_bytes:
                    self.fault = f"said more than {self._limits.line_bytes:,} bytes at once"
            await self._note_end(process)  # before those who wait hear that the connection is closed
        self.ended.set()

    async def _take(self, line: bytes, heard: MemoryObjectSendStream[Heard]) -> None:
        if not line.strip() or self.fault:
            return
        if len(line) > self._limits.line_bytes:
            self.fault = f"said more than {self._limits.line_bytes:,} bytes at once"
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            self.nonsense += 1
            if self.nonsense > self._limits.nonsense:
                self.fault = "says things that are not of the protocol"
            return
        self.heard_at = asyncio.get_running_loop().time()
        await heard.send(SessionMessage(message))

    async def _note_end(self, process: asyncio.subprocess.Process) -> None:
        if self.fault:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), self._limits.end_s)
        code = process.returncode
        how = "closed its output" if code is None else f"ended with code {code}" if code >= 0 else "was killed"
        self.fault = self.fault or how

    async def _write(
        self, process: asyncio.subprocess.Process, told: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        assert process.stdin is not None
        with suppress(OSError):
            async for message in told:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(f"{text}\n".encode())
                await process.stdin.drain()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        """Whole lines where they are short; a long one in pieces, so that nothing is ever waited for.

        After the limit it is thrown away unread, and slowly, because the loop is everybody's; but for its end.
        """
        assert process.stderr is not None
        left = self._limits.said_lines
        rest = b""
        while left > 0 and (part := await process.stderr.read(READ_BYTES)):
            *lines, rest = (rest + part).split(b"\n")
            if len(rest) > self._limits.said_chars * 4:
                lines, rest = [*lines, rest], b""
            lines, rest = lines[:left], b"\n".join([*lines[left:], rest])
            for line in lines:
                left = self._note_words(line, left)
        while part := await process.stderr.read(READ_BYTES):
            rest = (rest + part)[-READ_BYTES:]
            await asyncio.sleep(DISCARD_S)
        lines = rest.split(b"\n")
        if len(rest) >= READ_BYTES:
            del lines[0]  # it may begin with half a secret
        for line in lines[-(self.last_words.maxlen or 1) :]:
            left = self._note_words(line, left)

    def _note_words(self, line: bytes, left: int) -> int:
        text = line.decode("utf-8", "replace")
        for secret in self._server.secrets:
            text = text.replace(secret, HIDDEN)
        words = one_line(text, self._limits.said_chars)
        if words:
            self.last_words.append(words)
        if words and left > 0:
            logger.info("%s says: %s", self._server.title, words)
        if left == 1:
            logger.warning("%s says so much that the rest is not logged", self._server.title)
        return left - 1

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Close its input; then SIGTERM, and in any case SIGKILL, for it and for all that it started."""
        self.fault = self.fault or "was ended"
        if process.stdin is not None:
            process.stdin.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                _signal_group(process, number)
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), self._limits.end_s)
                break
        _signal_group(process, signal.SIGKILL)
        self.let_go()
        self.ended.set()


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """The group lives on with what the process left behind."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _found(server: StdioServer, path: str) -> list[str]:
    if not server.command or not server.command[0]:
        raise _not_started("The source names no program.")
    program = server.command[0]
    found = shutil.which(Path(program).absolute()) if os.sep in program else shutil.which(program, path=path)
    if found is None:
        raise _not_started(f"There is no program {program!r:.200} that can be run on this machine.")
    return [found, *server.command[1:]]


def _not_started(message: str) -> ToolError:
    return ToolError(
        ErrorCode.OPERATION_FAILED,
        message,
        recovery_hint="An admin has to look at this source.",
        attempted=False,
    )


def _reason(error: OSError | ValueError) -> str:
    return (
        (error.strerror or type(error).__name__).lower() if isinstance(error, OSError) else "its command is not legal"
    )
