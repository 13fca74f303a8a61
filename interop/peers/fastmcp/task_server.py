"""A server on FastMCP whose tools run as tasks (`io.modelcontextprotocol/tasks`).

    task_server.py            listens on http://127.0.0.1:$PORT/mcp, and says so
    task_server.py --stdio    serves standard input and output

`task-client` drives it. Its tools have the names and answers that the task servers on all SDKs have. A tool asks by
returning its questions; it is entered again with the answers, and with whatever it has put into the state.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from datetime import timedelta
from typing import Any

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

server: FastMCP = FastMCP("tasks-fastmcp")
server.add_extension(TasksExtension())
tool = server.tool(task=TaskConfig(mode="required", poll_interval=timedelta(milliseconds=50)))

NAME = "What is your name?"


def ask(state: str | None = None, **questions: str) -> InputRequiredResult:
    """Asks for fields of text."""

    def form(field: str, message: str) -> ElicitRequest:
        schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
        return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))

    requests: Any = {field: form(field, message) for field, message in questions.items()}
    return InputRequiredResult(input_requests=requests, request_state=state)


def answer(ctx: Context, field: str) -> str | None:
    """What was filled in, if it has been asked. A user who refuses is the tool's error."""
    said: Any = (ctx.input_responses or {}).get(field)
    if said is None:
        return None
    if said.action != "accept":
        raise ToolError(f"{field}: {said.action}")
    return str(said.content[field])


@tool
async def compute(label: str = "") -> str:
    await asyncio.sleep(0.1)
    return f"{label}: computed"


@tool
async def greet(ctx: Context) -> str | InputRequiredResult:
    name = answer(ctx, "name")
    return ask(name=NAME) if name is None else f"Hello, {name}!"


@tool
async def rounds(ctx: Context) -> str | InputRequiredResult:
    name, colour = answer(ctx, "name") or ctx.request_state, answer(ctx, "colour")
    if name is None:
        return ask(name=NAME)
    if colour is None:
        return ask(name, colour=f"{name}, what is your favourite colour?")
    return f"{name} likes {colour}"


@tool
async def together(ctx: Context) -> str | InputRequiredResult:
    name, colour = answer(ctx, "name"), answer(ctx, "colour")
    if name is None or colour is None:
        return ask(name=NAME, colour="What is your favourite colour?")
    return f"{name} likes {colour}"


@tool
async def fail() -> str:
    raise ToolError("this job always fails")


@tool
async def broken() -> str:
    raise MCPError(code=mcp_types.INTERNAL_ERROR, message="this job always ends with an error")


@tool
async def endless() -> str:
    await asyncio.Event().wait()
    return ""


def main() -> None:
    if "--stdio" in sys.argv[1:]:
        return server.run("stdio", show_banner=False)
    # It listens before it says so.
    listener = socket.create_server(("127.0.0.1", int(os.environ.get("PORT", "3007"))))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    server.run("http", show_banner=False, path="/mcp", sockets=[listener], log_level="warning")


if __name__ == "__main__":
    main()
