"""Instances of a server behind a load balancer: what a script does to one of them, past the balancer."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from checks import HANDSHAKE, Report, expect

# The URLs of the instances themselves, by their names.
URLS = dict(one.split("=", 1) for one in os.environ["INSTANCES"].split())
CALLS = 8


def send(instance: str, method: str, session: str | None, message: Any = None) -> tuple[int, str | None, Any]:
    """Sends one request to one instance. Returns the status, the session and the message of the answer."""
    url = urlsplit(URLS[instance])
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    if session is not None:
        headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": HANDSHAKE}
    connection = http.client.HTTPConnection(url.netloc, timeout=10)
    try:
        connection.request(method, url.path, json.dumps(message) if message else None, headers)
        answer = connection.getresponse()
        body = answer.read()
        return answer.status, answer.getheader("Mcp-Session-Id"), json.loads(body) if body else None
    finally:
        connection.close()


def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def begin(instance: str) -> str:
    info = {"name": "plain", "version": "1"}
    params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": info}
    status, session, _ = send(instance, "POST", None, request("initialize", params))
    expect(status == 200 and session is not None, f"no session: {status}")
    return session


def crash(instance: str) -> None:
    """Ends an instance, which is then started again."""
    session = begin(instance)
    try:
        send(instance, "POST", session, request("tools/call", {"name": "crash"}))
    except (http.client.HTTPException, OSError):
        return
    expect(False, "it is still there")


async def ended_elsewhere() -> str:
    """A session is begun at one instance, called and ended at the other, and stays good at both."""
    one, two = URLS
    session = begin(one)
    for instance, method, wanted in [(two, "POST", 200), (two, "DELETE", 405), (two, "POST", 200), (one, "POST", 200)]:
        message = request("tools/call", {"name": "whereabouts"}) if method == "POST" else None
        status, _, answer = send(instance, method, session, message)
        expect(status == wanted, f"{method} at {instance}: {status} {answer}")
    return "405, and served"


async def check_fleet(report: Report, call: Callable[[str], Awaitable[str]]) -> None:
    """Calls reach every instance, also after each of them was started again. `call` gives a tool's text."""

    async def everywhere(tool: str) -> dict[str, str]:
        """Returns the process of each instance that has answered."""
        return dict([(await call(tool)).split() for _ in range(CALLS)])

    def served(tool: str) -> Callable[[], Awaitable[str]]:
        async def step() -> str:
            found = await everywhere(tool)
            expect(set(found) == set(URLS), f"served by {found}")
            return f"by {sorted(found)}"

        return step

    def restarted(instance: str) -> Callable[[], Awaitable[str]]:
        async def step() -> str:
            before = await everywhere("whereabouts")
            await asyncio.to_thread(crash, instance)
            while (now := await everywhere("whereabouts")).get(instance) in (None, before[instance]):
                await asyncio.sleep(0.05)
            others = [name for name in URLS if name != instance]
            expect(all(now[name] == before[name] for name in others), f"before {before}, now {now}")
            return "served by the new process, too"

        return step

    await report.check("calls", served("whereabouts"))
    await report.check("calls with progress", served("count"))
    await report.check("a session ended elsewhere", ended_elsewhere)
    for instance in URLS:
        await report.check(f"a restart of {instance}", restarted(instance))
        await report.check(f"calls with progress after a restart of {instance}", served("count"))
