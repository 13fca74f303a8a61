"""A connected client of the Python SDK, of either era: what it is asked, answers and is answered is as on the wire.

The same scripts run on the newer SDK, which speaks 2026-07-28 or is told to begin with the handshake, and on the
SDK of the handshake era, which can do nothing else.
"""

from __future__ import annotations

import asyncio
import math
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import mcp
from checks import HANDSHAKE, REVISION, Server, expect
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

try:
    import mcp_types as types
except ModuleNotFoundError:  # the SDK of the handshake era
    from mcp import types

warnings.simplefilter("ignore")  # what the newer revision leaves out is what is to be tried

IS_NEW = hasattr(mcp, "Client")
# What only 2026-07-28 has on the wire.
NEWER = {"resultType", "ttlMs", "cacheScope", "requestState", "inputRequests", "io.modelcontextprotocol/serverInfo"}


def wire(model: Any) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def newer_fields(message: Any) -> set[str]:
    """What an older client must not be sent, however deep it is."""
    if isinstance(message, list):
        return set().union(*map(newer_fields, message))
    if not isinstance(message, dict):
        return set()
    return (NEWER & message.keys()).union(*map(newer_fields, message.values()))


class Wire:
    """Every message that a server has sent, as it came and as soon as it came."""

    all: list[Wire] = []

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._more = asyncio.Event()
        Wire.all.append(self)

    def add(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        self._more.set()

    def of(self, *methods: str) -> list[dict[str, Any]]:
        return [one for one in self.messages if one.get("method") in methods]

    async def until(self, number: int, *methods: str) -> list[dict[str, Any]]:
        """Waits for that many messages of these methods; whoever calls says for how long."""
        while len(found := self.of(*methods)) < number:
            self._more.clear()
            await self._more.wait()
        return found

    @asynccontextmanager
    async def record(self, transport: AbstractAsyncContextManager[Any]) -> AsyncIterator[tuple[Any, Any]]:
        send, receive = anyio.create_memory_object_stream[Any](math.inf)

        async def copy(read: Any) -> None:
            async with send:
                async for one in read:
                    if not isinstance(one, Exception):
                        self.add(wire(one.message))
                    await send.send(one)

        async with transport as (read, write, *more), anyio.create_task_group() as tasks:
            self.session_id = more[0] if more else None
            tasks.start_soon(copy, read)
            yield receive, write
            tasks.cancel_scope.cancel()


class User:
    """Whoever answers. What is left `None` is not declared; the rest takes parameters and gives a result."""

    elicit: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]] | None = None
    sample: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]] | None = None
    roots: Callable[[], Awaitable[dict[str, Any]]] | None = None


def callbacks(user: User) -> dict[str, Any]:
    """An answer with a `code` is an error."""

    def answer(kind: Any, said: dict[str, Any]) -> Any:
        return (types.ErrorData if "code" in said else kind).model_validate(said)

    async def elicit(_context: Any, params: Any) -> Any:
        return answer(types.ElicitResult, await user.elicit(wire(params)))

    async def sample(_context: Any, params: Any) -> Any:
        return answer(types.CreateMessageResult, await user.sample(wire(params)))

    async def roots(_context: Any) -> Any:
        return answer(types.ListRootsResult, await user.roots())

    return {
        "elicitation_callback": elicit if user.elicit else None,
        "sampling_callback": sample if user.sample else None,
        "list_roots_callback": roots if user.roots else None,
    }


class Connected:
    """A client, with the server's messages."""

    def __init__(self, client: Any, received: Wire, greeting: dict[str, Any]) -> None:
        self._client = client
        self.received = received
        self.version: str = greeting["protocolVersion"]
        self.name: str = greeting.get("serverInfo", {}).get("name", "nameless")
        self.capabilities: dict[str, Any] = greeting["capabilities"]

    def has_session(self) -> bool | None:
        """Whether the server gave a session over HTTP; `None` where the SDK does not tell."""
        session_id = self.received.session_id
        return session_id and session_id() is not None

    async def _send(self, name: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        return wire(await getattr(self._client, name)(*arguments, **options))

    async def all(self, kind: str, field: str) -> list[dict[str, Any]]:
        """Every page of `list_{kind}`."""
        found: list[Any] = []
        cursor: str | None = None
        while True:
            page = await self._send(f"list_{kind}", cursor=cursor)
            found += page[field]
            cursor = page.get("nextCursor")
            if cursor is None:
                return found

    async def call_tool(self, name: str, arguments: Any = None, on_progress: Any = None) -> dict[str, Any]:
        return await self._send("call_tool", name, arguments or {}, progress_callback=on_progress)

    async def get_prompt(self, name: str, arguments: Any = None) -> dict[str, Any]:
        return await self._send("get_prompt", name, arguments)

    async def read_resource(self, uri: str) -> dict[str, Any]:
        return await self._send("read_resource", uri)

    async def complete(self, prompt: str, argument: dict[str, str]) -> dict[str, Any]:
        return await self._send("complete", types.PromptReference(type="ref/prompt", name=prompt), argument)

    async def ping(self) -> None:
        await self._send("send_ping")

    async def set_level(self, level: str) -> None:
        await self._send("set_logging_level", level)

    async def subscribe(self, uri: str) -> None:
        await self._send("subscribe_resource", uri)

    async def unsubscribe(self, uri: str) -> None:
        await self._send("unsubscribe_resource", uri)


@asynccontextmanager
async def connect(server: Server, user: User | None = None, version: str = REVISION) -> AsyncIterator[Connected]:
    """Connects at a revision: with a handshake, unless it is the newest; `auto` leaves that to the client."""
    received = Wire()
    transport = streamable_http_client(server) if isinstance(server, str) else stdio_client(server)
    open_client = _newer if IS_NEW else _older
    async with open_client(received.record(transport), version, callbacks(user or User())) as (client, greeting):
        connected = Connected(client, received, greeting)
        if version != "auto":
            expect(connected.version == version, f"negotiated {connected.version}, not {version}")
        yield connected


@asynccontextmanager
async def _newer(transport: Any, version: str, answers: dict[str, Any]) -> AsyncIterator[tuple[Any, dict[str, Any]]]:
    mode = "legacy" if version == HANDSHAKE else version
    async with mcp.Client(transport, mode=mode, **answers) as client:
        greeting = {"protocolVersion": client.protocol_version, "capabilities": wire(client.server_capabilities)}
        if client.server_info is not None:
            greeting["serverInfo"] = wire(client.server_info)
        yield client, greeting


@asynccontextmanager
async def _older(transport: Any, version: str, answers: dict[str, Any]) -> AsyncIterator[tuple[Any, dict[str, Any]]]:
    expect(version == HANDSHAKE, f"this SDK cannot speak {version}")
    async with transport as (read, write), mcp.ClientSession(read, write, **answers) as session:
        yield session, wire(await session.initialize())


def nothing_newer() -> str:
    """No message of any connection so far may hold what the older revisions do not have."""
    messages = [message for received in Wire.all for message in received.messages]
    for message in messages:
        found = newer_fields(message)
        expect(not found, f"{sorted(found)} in {message}")
    expect(bool(messages), "no messages")
    return f"{len(messages)} messages on {len(Wire.all)} connections"
