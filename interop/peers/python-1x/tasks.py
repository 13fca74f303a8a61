"""Run tools of our conformance server as tasks of 2025-11-25, with the experimental tasks of this SDK's client.

    tasks.py --handshake http URL
    tasks.py --handshake stdio COMMAND [ARGUMENT ...]

The questions of a task come in the midst of `tasks/result`. One line a check; the last line says `N passed, M failed`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "python"))  # for what the SDKs' scripts share

from checks import (
    HANDSHAKE,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MCPError,
    Mismatch,
    Report,
    Server,
    command_line,
    expect,
)
from mcp.types import CallToolResult
from sdk import User, connect, nothing_newer, wire

INTERNAL_ERROR = -32603
RELATED = "io.modelcontextprotocol/related-task"
STATUS = "notifications/tasks/status"
TTL = 60_000
# What is typed into each field of a form.
FIELDS: dict[str, Any] = {"name": "Ada", "confirm": True}


class Answering(User):
    """Fills in forms, or does to each in turn what `acts` say; and remembers what was asked."""

    def __init__(self, *acts: str) -> None:
        self.acts = list(acts)
        self.asked: list[str] = []

    async def elicit(self, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(params["message"])
        if params.get("mode") == "url":
            return {"action": "accept"}
        action = self.acts.pop(0) if self.acts else "accept"
        if action != "accept":
            return {"action": action}
        names = params["requestedSchema"]["properties"]
        return {"action": action, "content": {name: FIELDS[name] for name in names}}


    async def sample(self, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(params["messages"][0]["content"]["text"])
        return {"role": "assistant", "model": "a model", "content": {"type": "text", "text": "hello"}}

    async def roots(self) -> dict[str, Any]:
        self.asked.append("roots")
        return {"roots": [{"uri": "file:///a"}]}


class Tasks:
    """The tasks of one connected client."""

    def __init__(self, connected: Any) -> None:
        self.connected = connected
        self.features = connected._client.experimental

    async def start(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        created = wire(await self.features.call_tool_as_task(name, arguments or {}, ttl=TTL))
        expect(created["task"]["status"] == "working", f"created as {created}")
        return created["task"]

    async def get(self, task_id: str) -> dict[str, Any]:
        return wire(await self.features.get_task(task_id))

    async def result(self, task_id: str) -> dict[str, Any]:
        return wire(await self.features.get_task_result(task_id, CallToolResult))

    async def cancel(self, task_id: str) -> dict[str, Any]:
        return wire(await self.features.cancel_task(task_id))

    async def list(self) -> list[dict[str, Any]]:
        return wire(await self.features.list_tasks())["tasks"]

    async def polled(self, task_id: str) -> list[str]:
        """Looks at a task to its end."""
        return [seen.status async for seen in self.features.poll_task(task_id)]


def text(result: dict[str, Any]) -> str:
    return " ".join(block["text"] for block in result["content"])


def tool_error(result: dict[str, Any]) -> str:
    expect(result.get("isError") is True, f"wanted a tool error, got {result}")
    return text(result)


async def refused(step: Awaitable[Any], code: int) -> str:
    """The request must end in that JSON-RPC error."""
    try:
        result = await step
    except MCPError as error:
        expect(error.error.code == code, f"wanted {code}, got {error.error.code}: {error.error.message}")
        return f"error {code}: {error.error.message}"
    raise Mismatch(f"wanted error {code}, got {result}")


async def says(tasks: Tasks, user: Answering, name: str, arguments: dict[str, Any], asked: list[str], wanted: str) -> str:
    user.asked.clear()
    task = await tasks.start(name, arguments)
    result = await tasks.result(task["taskId"])
    expect(not result.get("isError") and text(result) == wanted, f"wanted {wanted!r}, got {result}")
    expect(result["_meta"][RELATED]["taskId"] == task["taskId"], f"of another task: {result}")
    expect(sorted(user.asked) == asked, f"asked {user.asked}")
    ended = await tasks.get(task["taskId"])
    expect(ended["status"] == "completed" and ended["ttl"] == TTL, f"it is {ended}")
    return f"{wanted}, asked {asked}"


async def refusing(tasks: Tasks, user: Answering, action: str) -> str:
    user.acts.append(action)
    task = await tasks.start("confirm_delete", {"filename": "a.txt"})
    said = tool_error(await tasks.result(task["taskId"]))
    status = (await tasks.get(task["taskId"]))["status"]
    expect(status == "failed", f"it is {status}")
    return said


async def fails(tasks: Tasks) -> str:
    task = await tasks.start("failing_job")
    seen = await tasks.polled(task["taskId"])
    expect(seen[-1] == "failed", f"seen {seen}")
    return tool_error(await tasks.result(task["taskId"]))


async def breaks(tasks: Tasks) -> str:
    task = await tasks.start("protocol_error_job")
    return await refused(tasks.result(task["taskId"]), INTERNAL_ERROR)


async def cancelled(tasks: Tasks) -> str:
    task = await tasks.start("slow_compute", {"seconds": 60, "label": "long"})
    waiting = asyncio.create_task(refused(tasks.result(task["taskId"]), INVALID_PARAMS))
    ended = await tasks.cancel(task["taskId"])
    expect(ended["status"] == "cancelled", f"it is {ended}")
    await refused(tasks.cancel(task["taskId"]), INVALID_PARAMS)
    return await waiting


async def listed(tasks: Tasks, over_http: bool) -> str:
    task = await tasks.start("slow_compute", {"seconds": 0, "label": "seven"})
    if over_http:  # nobody says who a caller is, so there is no list of the caller's tasks
        return await refused(tasks.list(), METHOD_NOT_FOUND)
    found = [one["taskId"] for one in await tasks.list()]
    expect(task["taskId"] in found, f"listed {found}")
    return f"{len(found)} tasks"


async def told(tasks: Tasks) -> str:
    received = tasks.connected.received
    task = await tasks.start("slow_compute", {"seconds": 0.3, "label": "seven"})
    seen: list[str] = []
    number = 0
    while "completed" not in seen:
        number += 1
        params = (await received.until(number, STATUS))[number - 1]["params"]
        if params["taskId"] == task["taskId"]:
            seen.append(params["status"])
    return ", ".join(seen)


async def unknown(tasks: Tasks) -> str:
    for step in (tasks.get, tasks.result, tasks.cancel):
        said = await refused(step("no-such-task"), INVALID_PARAMS)
    return said


async def run(report: Report, server: Server) -> None:
    user = Answering()
    over_http = isinstance(server, str)
    async with connect(server, user, HANDSHAKE) as connected:
        tasks = Tasks(connected)
        steps = {
            "slow_compute": lambda: says(
                tasks, user, "slow_compute", {"seconds": 0.3, "label": "seven"}, [], "seven: computed for 0.3 s"
            ),
            "confirm_delete": lambda: says(
                tasks, user, "confirm_delete", {"filename": "a.txt"}, ["Delete a.txt?"], "a.txt is deleted"
            ),
            "multi_input": lambda: says(
                tasks, user, "multi_input", {}, ["Are you sure?", "What is your name?"], "Ada: true"
            ),
            "test_tool_with_task": lambda: says(
                tasks, user, "test_tool_with_task", {}, ["What is your name?"], "Hello, Ada!"
            ),
            "ask_everything": lambda: says(
                tasks,
                user,
                "ask_everything",
                {"name": "Ada"},
                ["Are you Ada?", "Please sign in", "Say hello", "roots"],
                "true, hello, 1 roots",
            ),
            "confirm_delete, decline": lambda: refusing(tasks, user, "decline"),
            "confirm_delete, cancel": lambda: refusing(tasks, user, "cancel"),
            "failing_job": lambda: fails(tasks),
            "protocol_error_job": lambda: breaks(tasks),
            "tasks/result waits, tasks/cancel ends it": lambda: cancelled(tasks),
            "tasks/list": lambda: listed(tasks, over_http),
            STATUS: lambda: told(tasks),
            "failing_job without `task`": lambda: refused(connected.call_tool("failing_job"), METHOD_NOT_FOUND),
            "greet with `task`": lambda: refused(tasks.start("greet", {"name": "Ada"}), METHOD_NOT_FOUND),
            "an unknown task": lambda: unknown(tasks),
        }
        for name, step in steps.items():
            await report.check(name, step)


async def main() -> int:
    _, server = command_line(__doc__)
    report = Report()
    try:
        await run(report, server)
    except Exception as error:
        report.fail("the connection", error)

    async def nothing() -> str:
        return nothing_newer()

    await report.check("nothing of 2026-07-28 on the wire", nothing)
    return report.conclude()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
