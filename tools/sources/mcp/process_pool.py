"""The pool of server processes: one for each server, started on demand and ended when idle."""

import asyncio
import atexit
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from mcp import MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

from tools.contract import ErrorCode, RateLimit, ToolError
from tools.sources.mcp.connection import ClientCallbacks, McpConnection
from tools.sources.mcp.errors import (
    CLIENT_ERRORS,
    Evidence,
    find_cause,
    source_error,
    translate_connect_error,
)
from tools.sources.mcp.loop import LOOP
from tools.sources.mcp.server_process import STOPPED, ProcessLimits, ServerProcess
from tools.sources.mcp.servers import StdioServer
from tools.toolbox import ProcessRateLimiter

logger = logging.getLogger("gadget.tools.mcp")


@dataclass(frozen=True)
class PoolLimits:
    """The limits of the pool's processes.

    Attributes:
        idle_s: seconds without a call after which a process is ended.
        start_s: seconds from the start until the protocol is ready.
        starts, starts_s: the maximum number of starts of one server, and the seconds in which they
            are counted.
        liveness_s: seconds for the response to a ping, after a call timed out without any message
            from the server.
    """

    idle_s: float = 600.0
    start_s: float = 60.0
    starts: int = 10
    starts_s: float = 60.0
    liveness_s: float = 2.0
    process: ProcessLimits = field(default_factory=ProcessLimits)


class PooledProcess:
    """One running process, and the task that owns it; for use on the event loop only."""

    def __init__(self, server: StdioServer, limits: PoolLimits) -> None:
        self._limits = limits
        self._server = server
        self.process = ServerProcess(server, limits.process)
        self._calls = 0
        self._is_retired = False
        self._activity = asyncio.Event()
        self._liveness_check: asyncio.Task[None] | None = None
        self.open: asyncio.Future[McpConnection] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._run())
        self.task.add_done_callback(self._end)

    @property
    def is_usable(self) -> bool:
        """True if the process can take another call."""
        return not (self._is_retired or self.process.fault or self.task.done())

    async def check_usable(self) -> bool:
        """Return True if the process can take another call, after any pending liveness check."""
        if self._liveness_check is not None:
            await asyncio.shield(self._liveness_check)
        return self.is_usable

    @asynccontextmanager
    async def use(self, seconds: float) -> AsyncIterator[McpConnection]:
        """Yield the connection, once it is open.

        Raises:
            ToolError: the connection could not be opened in time; no tool was called.
        """
        loop = asyncio.get_running_loop()
        self._calls += 1
        began = loop.time()
        try:
            async with asyncio.timeout(seconds):
                connection = await asyncio.shield(self.open)
            began = loop.time()
            yield connection
        except TimeoutError as error:
            if self.open.done():
                raise
            raise translate_connect_error(self._server.title, error, Evidence()) from error
        except asyncio.CancelledError:
            if (
                self.open.done()
                and self.process.last_message_at < began
                and (self._liveness_check is None or self._liveness_check.done())
            ):
                self._liveness_check = asyncio.create_task(self._check_liveness(self.open.result()))
            raise
        finally:
            self._calls -= 1
            self._activity.set()

    async def _check_liveness(self, connection: McpConnection) -> None:
        """Ping the server; if it does not respond, accept no further calls, and end after the
        current ones."""
        asked = asyncio.get_running_loop().time()
        with suppress(*CLIENT_ERRORS):
            await asyncio.wait_for(connection.client.session.send_ping(), self._limits.liveness_s)
        if self.process.last_message_at < asked:
            self._is_retired = True
            self._activity.set()

    async def _run(self) -> None:
        async with asyncio.timeout(self._limits.start_s) as start:
            client = ClientCallbacks(self._server, logger).build_client(
                self.process.open_streams(), "auto"
            )
            async with client:
                start.reschedule(None)
                connection = McpConnection(client)
                self.open.set_result(connection)
                subscription = asyncio.create_task(_subscribe(connection))
                try:
                    await self._wait_until_unneeded()
                finally:
                    subscription.cancel()

    async def _wait_until_unneeded(self) -> None:
        ended = asyncio.create_task(self.process.ended.wait())
        try:
            while not ended.done() and not (self._is_retired and not self._calls):
                self._activity.clear()
                if not await self._wait_for_activity(ended) and not self._calls:
                    break
        finally:
            ended.cancel()
            self._is_retired = True

    async def _wait_for_activity(self, ended: "asyncio.Task[bool]") -> bool:
        """Return True if the process or a call ended before the idle limit."""
        activity = asyncio.create_task(self._activity.wait())
        try:
            done, _ = await asyncio.wait(
                {ended, activity}, timeout=self._limits.idle_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            activity.cancel()
        return bool(done)

    def _end(self, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if self.open.done():
            if error is not None:
                logger.info("%s ended: %r", self._server.title, find_cause(error))
            return
        fault = "" if self.process.fault == STOPPED else self.process.fault
        failure = (
            translate_connect_error(self._server.title, error, Evidence(fault=fault))
            if error
            else source_error(f"{self._server.title} was stopped.")
        )
        for note in self.process.stderr_tail:
            failure.add_note(note)
        self.open.set_exception(failure)
        self.open.exception()  # mark it as retrieved: there may be no waiting caller left


class ProcessPool:
    """All server processes of this process, by the keys of their servers."""

    def __init__(self, limits: PoolLimits = PoolLimits()) -> None:
        self._limits = limits
        self._by_key: dict[str, PooledProcess] = {}
        self._starts = ProcessRateLimiter()
        self._closes_at_exit = False

    @asynccontextmanager
    async def connect(self, server: StdioServer, seconds: float) -> AsyncIterator[McpConnection]:
        """Connect to the server's process, started if necessary, for one call on the event loop.

        Raises:
            ToolError: the connection cannot be opened; no tool was called.
        """
        pooled = self._by_key.get(server.key)
        if pooled is None or not await pooled.check_usable():
            pooled = self._by_key.get(server.key)
            if pooled is None or not pooled.is_usable:
                pooled = self._by_key[server.key] = self._start(server)
        async with pooled.use(seconds) as connection:
            try:
                yield connection
            finally:
                connection.fault = pooled.process.fault

    def pid(self, server: StdioServer) -> int:
        """Return the process id of the server's tether, the leader of its group; 0 if none runs."""
        pooled = self._by_key.get(server.key)
        return pooled.process.pid if pooled and pooled.is_usable else 0

    async def close(self) -> None:
        """End all processes."""
        pool, self._by_key = list(self._by_key.values()), {}
        for pooled in pool:
            pooled.task.cancel()
        await asyncio.gather(*(pooled.task for pooled in pool), return_exceptions=True)

    def close_all(self, seconds: float = 5.0) -> None:
        """End all processes; wait at most `seconds`. Call this from a thread other than the event
        loop's."""
        if self._by_key:
            with suppress(TimeoutError):
                LOOP.submit(self.close()).result(seconds)

    def forget(self) -> None:
        """Release all processes in a forked child, because they belong to its parent."""
        for pooled in self._by_key.values():
            pooled.process.release_tether()
        self._by_key = {}

    def _start(self, server: StdioServer) -> PooledProcess:
        limit = RateLimit(self._limits.starts, self._limits.starts_s)
        if wait_s := self._starts.seconds_to_wait(server.key, limit):
            raise ToolError(
                ErrorCode.OPERATION_FAILED,
                f"{server.title} was started {limit.calls} times within {limit.seconds:g} s. "
                f"It can start again in {wait_s:.0f} s.",
                recovery_hint="Try again later, or ask an admin to check this source.",
                attempted=False,
            )
        if not self._closes_at_exit:
            self._closes_at_exit = True
            atexit.register(self.close_all)
        pooled = PooledProcess(server, self._limits)
        pooled.task.add_done_callback(lambda _: self._remove(server.key, pooled))
        return pooled

    def _remove(self, key: str, pooled: PooledProcess) -> None:
        if self._by_key.get(key) is pooled:
            del self._by_key[key]


async def _subscribe(connection: McpConnection) -> None:
    """Subscribe to tool list changes if the protocol needs it; `ClientCallbacks` receives them."""
    with suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
        async with connection.client.listen(tools_list_changed=True) as subscription:
            async for _ in subscription:
                pass


PROCESS_POOL = ProcessPool()
os.register_at_fork(after_in_child=PROCESS_POOL.forget)
