"""Run tools of our conformance server as tasks (`io.modelcontextprotocol/tasks`), with FastMCP's client.

    tasks.py http URL
    tasks.py stdio COMMAND [ARGUMENT ...]

`call_tool` waits for a task by itself and answers its questions; `call_tool_task` hands it over. One line a check; the
last line says `N passed, M failed`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "python"))  # for what the SDKs' scripts share

from checks import INVALID_PARAMS, REVISION, MCPError, Mismatch, Report, expect, target
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from fastmcp_tasks.client import _send_cancel, _send_get, _send_update, call_tool_task

# What is typed into each field of a form.
FIELDS: dict[str, Any] = {"name": "Ada", "confirm": True}


class User:
    """Fills in forms, or does to each in turn what `acts` say; and remembers what was asked."""

    def __init__(self) -> None:
        self.acts: list[str] = []
        self.asked: list[str] = []

    async def elicit(self, message: str, _type: Any, params: Any, _context: Any) -> ElicitResult:
        self.asked.append(message)
        action = self.acts.pop(0) if self.acts else "accept"
        names = params.requested_schema["properties"]
        content = {name: FIELDS[name] for name in names} if action == "accept" else None
        return ElicitResult(action=action, content=content)


def text(result: Any) -> str:
    return " ".join(block.text for block in result.content)


async def says(client: Client, user: User, name: str, arguments: dict[str, Any], asked: list[str], wanted: str) -> str:
    user.asked.clear()
    said = text(await client.call_tool(name, arguments))
    expect(said == wanted, f"wanted {wanted!r}, got {said!r}")
    expect(sorted(user.asked) == asked, f"asked {user.asked}")
    return f"{wanted}, asked {asked}"


async def tool_error(step: Awaitable[Any], wanted: str) -> str:
    try:
        result = await step
    except ToolError as error:
        expect(wanted in str(error), f"wanted {wanted!r}, got {error}")
        return str(error)
    raise Mismatch(f"wanted a tool error, got {result}")


async def declined(client: Client, user: User) -> str:
    user.acts.append("decline")
    return await tool_error(client.call_tool("confirm_delete", {"filename": "a.txt"}), "declined")


async def failed(client: Client) -> str:
    task = await call_tool_task(client, "failing_job")
    ended = await task.wait(timeout=10)
    expect(ended.status == "completed", f"a tool error is a result: {ended}")
    return await tool_error(task.result(), "always fails")


async def broken(client: Client) -> str:
    task = await call_tool_task(client, "protocol_error_job")
    ended = await task.wait(timeout=10)
    expect(ended.status == "failed" and ended.error["code"] == -32603, f"it is {ended}")
    return await tool_error(task.result(), "always ends with an error")


async def handed_over(client: Client) -> str:
    task = await call_tool_task(client, "slow_compute", {"seconds": 0.3, "label": "seven"})
    expect((await task.status()).status == "working", "it does not work")
    return text(await task.result())


async def one_at_a_time(client: Client) -> str:
    task = await call_tool_task(client, "multi_input")
    asks = await task.wait(state="input_required", timeout=10)
    expect(set(asks.input_requests) == {"name", "confirm"}, f"asked {asks}")
    for key, value in FIELDS.items():
        await _send_update(client.session, task.task_id, {key: {"action": "accept", "content": {key: value}}})
    said = text(await task.result())
    expect(said == "Ada: true", f"got {said}")
    return said


async def cancelled(client: Client) -> str:
    task = await call_tool_task(client, "slow_compute", {"seconds": 60, "label": "long"})
    await task.cancel()
    ended = await task.wait(timeout=10)
    expect(ended.status == "cancelled", f"it is {ended}")
    return await tool_error(task.result(), "cancelled")


async def unknown(client: Client) -> str:
    for send in (_send_get, _send_cancel):
        try:
            found = await send(client.session, "no-such-task")
        except MCPError as error:
            expect(error.code == INVALID_PARAMS, f"wanted {INVALID_PARAMS}, got {error}")
            said = str(error)
        else:
            raise Mismatch(f"wanted an error, got {found}")
    return said


async def at_once(client: Client) -> str:
    calls = [client.call_tool("slow_compute", {"seconds": 0.1, "label": f"{number}"}) for number in range(20)]
    said = [text(result) for result in await asyncio.gather(*calls)]
    expect(said == [f"{number}: computed for 0.1 s" for number in range(20)], f"got {said}")
    return f"{len(said)} results, each of its task"


async def main() -> int:
    server = target(sys.argv[1:], __doc__)
    report, user = Report(), User()
    transport = server if isinstance(server, str) else StdioTransport(server.command, server.args)
    async with Client(transport, mode=REVISION, elicitation_handler=user.elicit) as client:
        steps = {
            "slow_compute": lambda: says(
                client, user, "slow_compute", {"seconds": 0.3, "label": "seven"}, [], "seven: computed for 0.3 s"
            ),
            "confirm_delete": lambda: says(
                client, user, "confirm_delete", {"filename": "a.txt"}, ["Delete a.txt?"], "a.txt is deleted"
            ),
            "multi_input": lambda: says(
                client, user, "multi_input", {}, ["Are you sure?", "What is your name?"], "Ada: true"
            ),
            "test_tool_with_task": lambda: says(
                client, user, "test_tool_with_task", {}, ["What is your name?"], "Hello, Ada!"
            ),
            "confirm_delete, decline": lambda: declined(client, user),
            "slow_compute, handed over": lambda: handed_over(client),
            "multi_input, one answer at a time": lambda: one_at_a_time(client),
            "failing_job": lambda: failed(client),
            "protocol_error_job": lambda: broken(client),
            "tasks/cancel": lambda: cancelled(client),
            "an unknown task": lambda: unknown(client),
            "twenty tasks at the same time": lambda: at_once(client),
        }
        for name, step in steps.items():
            await report.check(name, step)
    return report.conclude()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
