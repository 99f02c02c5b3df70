"""A server's process, from start to end; no other module starts processes for tools."""

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

from tools.contract import ErrorCode, ToolError
from tools.sources.mcp.display_text import clean_line
from tools.sources.mcp.raw_responses import read_messages
from tools.sources.mcp.servers import StdioServer

logger = logging.getLogger("gadget.tools.mcp")

INHERITED = ("HOME", "PATH", "LANG", "TMPDIR")
TETHER = Path(__file__).with_name("tether.py")
READ_BYTES = 64 * 1024
HIDDEN = "[hidden]"
STOPPED = "was stopped"
"""The fault of a process that Gadget ended."""
DISCARD_S = 0.01
"""The time, in seconds, between two reads of discarded output."""

Incoming: TypeAlias = SessionMessage | Exception


@dataclass(frozen=True)
class ProcessLimits:
    """The limits of one process.

    Attributes:
        line_bytes: bytes of one message.
        invalid_lines: output lines that are not messages, e.g. greetings.
        log_lines, log_chars: logged lines of its standard error, and characters of each.
        end_s: seconds to exit after its input closes, and again after SIGTERM.
    """

    line_bytes: int = 10_000_000
    invalid_lines: int = 100
    log_lines: int = 1_000
    log_chars: int = 500
    end_s: float = 1.0


class ServerProcess:
    """One process of a server; start it once.

    Attributes:
        fault: why the process can no longer be used, as part of a sentence; empty while it can.
        invalid_lines: output lines that were not messages.
        stderr_tail: the end of its standard error, with secrets hidden.
        last_message_at: the event loop's time of its last message.
        ended: set when no more output can come.
    """

    def __init__(self, server: StdioServer, limits: ProcessLimits) -> None:
        self._server = server
        self._limits = limits
        self._process: asyncio.subprocess.Process | None = None
        self._tether: BinaryIO | None = None
        self.fault = ""
        self.invalid_lines = 0
        self.stderr_tail: deque[str] = deque(maxlen=10)
        self.last_message_at = 0.0
        self.ended = asyncio.Event()

    @property
    def pid(self) -> int:
        """The process id of the tether, which leads the process group; 0 before the start."""
        return self._process.pid if self._process else 0

    def release_tether(self) -> None:
        """Close our end of the tether, because a forked child that kept it open would keep the
        servers alive."""
        if self._tether is not None:
            self._tether.close()

    @asynccontextmanager
    async def open_streams(
        self,
    ) -> AsyncGenerator[
        tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]], None
    ]:
        """Start the process, yield its (read, write) streams for the protocol's client, and end it.

        Raises:
            ToolError: OPERATION_FAILED, the process cannot be started.
        """
        self._process = await self._start()
        incoming, to_read = anyio.create_memory_object_stream[Incoming](0)
        to_write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read, self._process, incoming)
            tasks.start_soon(self._write, self._process, outgoing)
            tasks.start_soon(self._log_stderr, self._process)
            try:
                yield to_read, to_write
            finally:
                with anyio.CancelScope(shield=True):
                    await self._end(self._process)
                tasks.cancel_scope.cancel()
                for stream in (incoming, to_read, to_write, outgoing):
                    stream.close()

    async def _start(self) -> asyncio.subprocess.Process:
        environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
        environment.update(self._server.environment)
        command = _resolve_command(self._server, environment.get("PATH", os.defpath))
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
            self.release_tether()
            raise _build_start_error(
                f"{self._server.title} cannot be started: {_describe_failure(error)}."
            ) from error
        finally:
            os.close(theirs)

    async def _read(
        self, process: asyncio.subprocess.Process, incoming: MemoryObjectSendStream[Incoming]
    ) -> None:
        assert process.stdout is not None
        buffer = bytearray()
        with incoming, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while not self.fault and (part := await process.stdout.read(READ_BYTES)):
                buffer += part
                if b"\n" in part:
                    *lines, rest = bytes(buffer).split(b"\n")
                    buffer = bytearray(rest)
                    for line in lines:
                        await self._handle_line(line, incoming)
                if len(buffer) > self._limits.line_bytes:
                    self.fault = f"sent more than {self._limits.line_bytes:,} bytes at once"
            # Record the end before waiting callers learn that the connection is closed.
            await self._record_end(process)
        self.ended.set()

    async def _handle_line(self, line: bytes, incoming: MemoryObjectSendStream[Incoming]) -> None:
        if not line.strip() or self.fault:
            return
        if len(line) > self._limits.line_bytes:
            self.fault = f"sent more than {self._limits.line_bytes:,} bytes at once"
            return
        messages = read_messages(line)
        if not messages:
            self.invalid_lines += 1
            if self.invalid_lines > self._limits.invalid_lines:
                self.fault = "sends output that does not follow the protocol"
            return
        self.last_message_at = asyncio.get_running_loop().time()
        for message in messages:
            await incoming.send(SessionMessage(message))

    async def _record_end(self, process: asyncio.subprocess.Process) -> None:
        if self.fault:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), self._limits.end_s)
        code = process.returncode
        how = (
            "closed its output"
            if code is None
            else f"ended with code {code}"
            if code >= 0
            else "was killed"
        )
        self.fault = self.fault or how

    async def _write(
        self,
        process: asyncio.subprocess.Process,
        outgoing: MemoryObjectReceiveStream[SessionMessage],
    ) -> None:
        assert process.stdin is not None
        with suppress(OSError):
            async for message in outgoing:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(f"{text}\n".encode())
                await process.stdin.drain()

    async def _log_stderr(self, process: asyncio.subprocess.Process) -> None:
        """Log standard error. Long lines are logged in pieces, so that logging never waits for the
        end of a line.

        After the limit, discard everything except the last lines, and do so slowly, because all
        servers share the event loop.
        """
        assert process.stderr is not None
        left = self._limits.log_lines
        rest = b""
        while left > 0 and (part := await process.stderr.read(READ_BYTES)):
            *lines, rest = (rest + part).split(b"\n")
            if len(rest) > self._limits.log_chars * 4:
                lines, rest = [*lines, rest], b""
            lines, rest = lines[:left], b"\n".join([*lines[left:], rest])
            for line in lines:
                left = self._log_line(line, left)
        while part := await process.stderr.read(READ_BYTES):
            rest = (rest + part)[-READ_BYTES:]
            await asyncio.sleep(DISCARD_S)
        lines = rest.split(b"\n")
        if len(rest) >= READ_BYTES:
            del lines[0]  # the line may begin with part of a secret
        for line in lines[-(self.stderr_tail.maxlen or 1) :]:
            left = self._log_line(line, left)

    def _log_line(self, line: bytes, left: int) -> int:
        text = line.decode("utf-8", "replace")
        for secret in self._server.secrets:
            text = text.replace(secret, HIDDEN)
        words = clean_line(text, self._limits.log_chars)
        if words:
            self.stderr_tail.append(words)
        if words and left > 0:
            logger.info("%s says: %s", self._server.title, words)
        if left == 1:
            logger.warning(
                "%s writes too much to standard error: the rest is not logged", self._server.title
            )
        return left - 1

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Close the process's input, then send SIGTERM, and finally SIGKILL to its whole group."""
        self.fault = self.fault or STOPPED
        if process.stdin is not None:
            process.stdin.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                _signal_group(process, number)
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), self._limits.end_s)
                break
        _signal_group(process, signal.SIGKILL)
        self.release_tether()
        self.ended.set()


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Signal the process group, which outlives the process if it left children behind."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _resolve_command(server: StdioServer, path: str) -> list[str]:
    if not server.command or not server.command[0]:
        raise _build_start_error("The source has no command.")
    program = server.command[0]
    found = (
        shutil.which(Path(program).absolute())
        if os.sep in program
        else shutil.which(program, path=path)
    )
    if found is None:
        raise _build_start_error(f"The program {program!r:.200} is not installed on this machine.")
    return [found, *server.command[1:]]


def _build_start_error(message: str) -> ToolError:
    return ToolError(
        ErrorCode.OPERATION_FAILED,
        message,
        recovery_hint="An admin must check this source.",
        attempted=False,
    )


def _describe_failure(error: OSError | ValueError) -> str:
    return (
        (error.strerror or type(error).__name__).lower()
        if isinstance(error, OSError)
        else "its command is not valid"
    )
