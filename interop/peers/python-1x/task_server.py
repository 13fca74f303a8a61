"""A server on the Python SDK of the handshake era whose tools run as tasks of 2025-11-25.

    task_server.py            listens on http://127.0.0.1:$PORT/mcp, with sessions, and says so
    task_server.py --stdio    serves standard input and output

`task-client` drives it. Its tools have the names and answers that the task servers on all SDKs have; `broken` is not
among them, because this SDK has no error of the protocol as the end of a task.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator
from typing import Any

import anyio
import uvicorn
from mcp.server.experimental.task_context import ServerTaskContext
from mcp.server.fastmcp.server import StreamableHTTPASGIApp
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import TASK_REQUIRED, CallToolResult, CreateTaskResult, TextContent, Tool, ToolExecution
from starlette.applications import Starlette
from starlette.routing import Route

NAME = "What is your name?"

server: Server[Any] = Server("tasks-python-1x")
support = server.experimental.enable_tasks()


class Refused(Exception):
    """The user did not answer: the tool's error."""


async def ask(task: ServerTaskContext, field: str, message: str) -> str:
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    said = await task.elicit(message, schema)
    if said.action != "accept":
        raise Refused(f"{field}: {said.action}")
    return str((said.content or {})[field])


async def compute(task: ServerTaskContext, arguments: dict[str, Any]) -> str:
    await task.update_status("computing")
    await asyncio.sleep(0.1)
    return f"{arguments.get('label')}: computed"


async def greet(task: ServerTaskContext, _: dict[str, Any]) -> str:
    return f"Hello, {await ask(task, 'name', NAME)}!"


async def rounds(task: ServerTaskContext, _: dict[str, Any]) -> str:
    name = await ask(task, "name", NAME)
    return f"{name} likes {await ask(task, 'colour', f'{name}, what is your favourite colour?')}"


async def together(task: ServerTaskContext, _: dict[str, Any]) -> str:
    """One after the other: with two questions open, this SDK says `working` after the first answer."""
    name = await ask(task, "name", NAME)
    return f"{name} likes {await ask(task, 'colour', 'What is your favourite colour?')}"


async def fail(_task: ServerTaskContext, _: dict[str, Any]) -> str:
    raise Refused("this job always fails")


async def endless(_task: ServerTaskContext, _: dict[str, Any]) -> str:
    await anyio.sleep_forever()
    return ""


TOOLS = {"compute": compute, "greet": greet, "rounds": rounds, "together": together, "fail": fail, "endless": endless}


@server.list_tools()
async def list_tools() -> list[Tool]:
    schema = {"type": "object", "properties": {"label": {"type": "string"}}}
    execution = ToolExecution(taskSupport=TASK_REQUIRED)
    return [Tool(name=name, inputSchema=schema, execution=execution) for name in TOOLS]


@server.call_tool()
async def call_tool(name: str, arguments: dict[str, Any]) -> CreateTaskResult:
    context = server.request_context
    context.experimental.validate_task_mode(TASK_REQUIRED)

    async def work(task: ServerTaskContext) -> CallToolResult:
        try:
            return result(await TOOLS[name](task, arguments), False)
        except Refused as refused:
            return result(str(refused), True)

    return await context.experimental.run_task(work)


def result(said: str, is_error: bool) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=said)], isError=is_error)


async def serve_stdio() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def main() -> None:
    if "--stdio" in sys.argv[1:]:
        return asyncio.run(serve_stdio())
    manager = StreamableHTTPSessionManager(app=server)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        # This SDK has one group for the work on tasks, and ends it with whichever session ends first. Here it is the
        # process's.
        async with support.run(), manager.run():
            support.run = contextlib.nullcontext
            yield

    app = Starlette(routes=[Route("/mcp", endpoint=StreamableHTTPASGIApp(manager))], lifespan=lifespan)
    # It listens before it says so.
    listener = socket.create_server(("127.0.0.1", int(os.environ.get("PORT", "3006"))))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
