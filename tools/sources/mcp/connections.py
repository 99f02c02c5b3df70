"""The processes of servers that are open in this process: one for each, opened when needed, closed when not."""

import asyncio
import atexit
import logging
import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from mcp import MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

from tools.contract import ErrorCode, ToolError

from .child import Child, ChildLimits
from .failures import EXPECTED, cause_of, failed, not_connected
from .lines import Ears, Line
from .loop import LOOP
from .servers import StdioServer

logger = logging.getLogger("gadget.tools.mcp")


@dataclass(frozen=True)
class StdioLimits:
    """What processes may do.

    Attributes:
        idle_s: seconds without a call after which a process is ended.
        start_s: seconds that one may take until it can be spoken to.
        starts: of one server in any `starts_s` seconds.
        doubt_s: seconds for a sign of life, after a call ended by its timeout and nothing at all was heard meanwhile.
    """

    idle_s: float = 600.0
    start_s: float = 60.0
    starts: int = 10
    starts_s: float = 60.0
    doubt_s: float = 2.0
    child: ChildLimits = field(default_factory=ChildLimits)


class Connection:
    """One process that is spoken to, and the task that owns it. Used on the loop alone."""

    def __init__(self, server: StdioServer, limits: StdioLimits) -> None:
        self._limits = limits
        self._server = server
        self.child = Child(server, limits.child)
        self._calls = 0
        self._is_retired = False
        self._moved = asyncio.Event()
        self._doubt: asyncio.Task[None] | None = None
        self.open: asyncio.Future[Line] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._live())
        self.task.add_done_callback(self._end)

    @property
    def is_usable(self) -> bool:
        """Whether another call may be made on it."""
        return not (self._is_retired or self.child.fault or self.task.done())

    async def without_doubt(self) -> bool:
        """Whether another call may be made on it, once it is known whether it hangs."""
        if self._doubt is not None:
            await asyncio.shield(self._doubt)
        return self.is_usable

    @asynccontextmanager
    async def used(self, seconds: float) -> AsyncIterator[Line]:
        """The line, once it is open.

        Raises:
            ToolError: it cannot be opened, or not in so many seconds; nothing was asked of any tool.
        """
        loop = asyncio.get_running_loop()
        self._calls += 1
        began = loop.time()
        try:
            async with asyncio.timeout(seconds):
                line = await asyncio.shield(self.open)
            began = loop.time()
            yield line
        except TimeoutError as error:
            if self.open.done():
                raise
            raise not_connected(self._server.title, error, 0, "") from error
        except asyncio.CancelledError:
            if self.open.done() and self.child.heard_at < began and (self._doubt is None or self._doubt.done()):
                self._doubt = asyncio.create_task(self._look_for_life(self.open.result()))
            raise
        finally:
            self._calls -= 1
            self._moved.set()

    async def _look_for_life(self, line: Line) -> None:
        """Any message is one. A process that hangs gets no further call, and ends with the last that is under way."""
        asked = asyncio.get_running_loop().time()
        with suppress(*EXPECTED):
            await asyncio.wait_for(line.client.session.send_ping(), self._limits.doubt_s)
        if self.child.heard_at < asked:
            self._is_retired = True
            self._moved.set()

    async def _live(self) -> None:
        async with asyncio.timeout(self._limits.start_s) as start:
            client = Ears(self._server, logger).client(self.child.spoken_with(), "auto")
            async with client:
                start.reschedule(None)
                line = Line(client)
                self.open.set_result(line)
                listening = asyncio.create_task(_listening(line))
                try:
                    await self._until_unneeded()
                finally:
                    listening.cancel()

    async def _until_unneeded(self) -> None:
        ended = asyncio.create_task(self.child.ended.wait())
        try:
            while not ended.done() and not (self._is_retired and not self._calls):
                self._moved.clear()
                if not await self._something_happened(ended) and not self._calls:
                    break
        finally:
            ended.cancel()
            self._is_retired = True

    async def _something_happened(self, ended: "asyncio.Task[bool]") -> bool:
        """Whether the process ended, or a call did, before it was idle for too long."""
        moved = asyncio.create_task(self._moved.wait())
        try:
            done, _ = await asyncio.wait(
                {ended, moved}, timeout=self._limits.idle_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            moved.cancel()
        return bool(done)

    def _end(self, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if self.open.done():
            if error is not None:
                logger.info("%s ended: %r", self._server.title, cause_of(error))
            return
        fault = self.child.fault
        words = (
            not_connected(self._server.title, error, 0, fault) if error else failed(f"{self._server.title} was ended.")
        )
        for said in self.child.last_words:
            words.add_note(said)
        self.open.set_exception(words)
        self.open.exception()  # nobody may be waiting any more


class Connections:
    """All processes, by their servers' keys."""

    def __init__(self, limits: StdioLimits = StdioLimits()) -> None:
        self._limits = limits
        self._by_key: dict[str, Connection] = {}
        self._starts: dict[str, deque[float]] = {}
        self._closes_at_exit = False

    @asynccontextmanager
    async def line(self, server: StdioServer, seconds: float) -> AsyncIterator[Line]:
        """A line to the server's process, started if there is none; for one call, on the loop.

        Raises:
            ToolError: it cannot be opened; nothing was asked of any tool.
        """
        connection = self._by_key.get(server.key)
        if connection is None or not await connection.without_doubt():
            connection = self._by_key.get(server.key)
            if connection is None or not connection.is_usable:
                connection = self._by_key[server.key] = self._started(server)
        async with connection.used(seconds) as line:
            try:
                yield line
            finally:
                line.fault = connection.child.fault

    def pid(self, server: StdioServer) -> int:
        """Of the server's tether, which leads its process group; 0 if none runs."""
        connection = self._by_key.get(server.key)
        return connection.child.pid if connection and connection.is_usable else 0

    async def close(self) -> None:
        """End all processes."""
        connections, self._by_key = list(self._by_key.values()), {}
        for connection in connections:
            connection.task.cancel()
        await asyncio.gather(*(connection.task for connection in connections), return_exceptions=True)

    def close_all(self, seconds: float = 5.0) -> None:
        """The same from any other thread, waiting at most so long."""
        if self._by_key:
            with suppress(TimeoutError):
                LOOP.submit(self.close()).result(seconds)

    def forget(self) -> None:
        """For a forked child, whose processes these are not."""
        for connection in self._by_key.values():
            connection.child.let_go()
        self._by_key = {}

    def _started(self, server: StdioServer) -> Connection:
        now = asyncio.get_running_loop().time()
        starts = self._starts.setdefault(server.key, deque(maxlen=self._limits.starts))
        if len(starts) == self._limits.starts and now - starts[0] < self._limits.starts_s:
            wait = self._limits.starts_s - (now - starts[0])
            raise ToolError(
                ErrorCode.OPERATION_FAILED,
                f"{server.title} was started {self._limits.starts} times within {self._limits.starts_s:g} s and is not "
                f"started again for {wait:.0f} s.",
                recovery_hint="Try again later, or tell an admin to look at this source.",
                attempted=False,
            )
        starts.append(now)
        if not self._closes_at_exit:
            self._closes_at_exit = True
            atexit.register(self.close_all)
        connection = Connection(server, self._limits)
        connection.task.add_done_callback(lambda _: self._forget(server.key, connection))
        return connection

    def _forget(self, key: str, connection: Connection) -> None:
        if self._by_key.get(key) is connection:
            del self._by_key[key]


async def _listening(line: Line) -> None:
    """Where the revision wants it so, be told of changes; `Ears` hears them."""
    with suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
        async with line.client.listen(tools_list_changed=True) as subscription:
            async for _ in subscription:
                pass


CONNECTIONS = Connections()
os.register_at_fork(after_in_child=CONNECTIONS.forget)
