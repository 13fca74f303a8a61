"""Drive a server with a published Python client.

    list_and_call.py [--handshake | --stateless] http URL
    list_and_call.py [--handshake] stdio COMMAND [ARGUMENT ...]

Lists everything the server offers, calls every tool, and checks that each answer is of the
expected kind. One line a check; the last line says `N passed, M failed`. Exit status 0 only
when something passed and nothing failed.

At protocol revision 2026-07-28, or with a handshake at the newest revision that has one; without a
session (`--stateless`), nothing that asks is called. Then no message may hold what only 2026-07-28 has.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from answers import Obliging
from checks import (
    HANDSHAKE,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    REVISION,
    MCPError,
    Mismatch,
    Report,
    command_line,
    expect,
)
from sdk import Connected, connect, nothing_newer

# Tools every conformance server must offer: name, arguments, kinds of content in order.
PLAIN_TOOLS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("test_simple_text", {}, ["text"]),
    ("test_image_content", {}, ["image"]),
    ("test_audio_content", {}, ["audio"]),
    ("test_embedded_resource", {}, ["resource"]),
    ("test_multiple_content_types", {}, ["text", "image", "resource"]),
]
# Tools whose answer only has to be an answer: any content, no error.
OPEN_TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("json_schema_2020_12_tool", {"name": "Ada", "contactMethod": "email", "email": "ada@example.com"}),
    ("test_custom_header", {"value": "Grüße, 世界"}),
    ("test_streaming_elicitation", {}),
    ("test_logging_tool", {}),
    ("test_trigger_tool_change", {}),
    ("test_trigger_prompt_change", {}),
]
# Optional tools that refuse a client which does not declare the tasks extension.
TASK_ONLY = {"failing_job", "protocol_error_job"}
# What asks is named like this; without a session nobody can be asked.
ASKING = (
    "test_input_required_result_",
    "test_elicitation",
    "test_sampling",
    "test_tool_with_task",
    "multi_input",
)
# What the older revisions said of a resource that is not there.
RESOURCE_NOT_FOUND = -32002

Result = dict[str, Any]


def kinds(result: Result) -> list[str]:
    return [block["type"] for block in result["content"]]


def describe(result: Result) -> str:
    return ("tool error, " if result.get("isError") else "") + ("+".join(kinds(result)) or "no content")


async def check_tools(report: Report, client: Connected, can_ask: bool) -> None:
    tools: dict[str, Result] = {}

    async def listed() -> str:
        for tool in await client.all("tools", "tools"):
            name = tool["name"]
            expect(name not in tools, f"{name} is listed twice")
            expect(tool["inputSchema"].get("type") == "object", f"{name}: inputSchema is not an object")
            tools[name] = tool
        return f"{len(tools)} tools"

    await report.check("tools/list", listed)
    known = set(TASK_ONLY) | {"test_error_handling", "test_tool_with_progress", "test_missing_capability"}

    for name, arguments, expected in PLAIN_TOOLS:
        known.add(name)

        async def plain(name: str = name, arguments: Any = arguments, expected: Any = expected) -> str:
            result = await client.call_tool(name, arguments)
            right = not result.get("isError") and kinds(result) == expected
            expect(right, f"wanted {expected}, got {describe(result)}")
            return describe(result)

        await report.check(name, plain)

    async def error() -> str:
        result = await client.call_tool("test_error_handling")
        expect(result.get("isError") is True, f"wanted isError, got {describe(result)}")
        expect("text" in kinds(result), "a tool error says what went wrong in text")
        return describe(result)

    await report.check("test_error_handling", error)

    async def progress() -> str:
        seen: list[float] = []
        enough = asyncio.Event()

        async def on_progress(value: float, _total: float | None, _message: str | None) -> None:
            seen.append(value)
            if len(seen) >= 3:
                enough.set()

        result = await client.call_tool("test_tool_with_progress", on_progress=on_progress)
        expect(not result.get("isError"), describe(result))
        await enough.wait()  # the callback may run just after the result
        expect(all(a < b for a, b in zip(seen, seen[1:])), f"progress was {seen}")
        return f"{describe(result)}, progress {seen}"

    await report.check("test_tool_with_progress", progress)

    async def with_sampling() -> str:
        return await open_call(client, "test_missing_capability", {})

    if can_ask:
        await report.check("test_missing_capability (sampling declared)", with_sampling)

    extra = [
        (name, {})
        for name, tool in tools.items()
        if name not in known
        and name not in dict(OPEN_TOOLS)
        and not tool["inputSchema"].get("required")
        and (can_ask or not name.startswith(ASKING))
    ]
    for name, arguments in OPEN_TOOLS + extra:

        async def opened(name: str = name, arguments: Any = arguments) -> str:
            return await open_call(client, name, arguments)

        await report.check(name, opened)

    for name in sorted(TASK_ONLY & tools.keys()):

        async def refused(name: str = name) -> str:
            missing = MISSING_CAPABILITY if client.version == REVISION else METHOD_NOT_FOUND
            return await refusal(client.call_tool(name), missing)

        await report.check(f"{name} (tasks not declared)", refused)

    async def unknown() -> str:
        return await refusal(client.call_tool("no_such_tool"), INVALID_PARAMS)

    await report.check("an unknown tool", unknown)


async def open_call(client: Connected, name: str, arguments: dict[str, Any]) -> str:
    result = await client.call_tool(name, arguments)
    expect(not result.get("isError"), f"{describe(result)}: {result['content']}")
    return describe(result)


async def refusal(step: Awaitable[Result], code: int | None) -> str:
    """The request must end in a JSON-RPC error, of that code if one is given."""
    try:
        result = await step
    except MCPError as error:
        found = error.error.code
        expect(code in (None, found), f"wanted error {code}, got {found}: {error}")
        return f"error {found}: {error}"
    raise Mismatch(f"wanted a JSON-RPC error, got {result}")


async def check_resources(report: Report, client: Connected) -> None:
    async def listed() -> str:
        uris = {one["uri"] for one in await client.all("resources", "resources")}
        expect({"test://static-text", "test://static-binary"} <= uris, f"listed {sorted(uris)}")
        return f"{len(uris)} resources"

    async def templates() -> str:
        found = await client.all("resource_templates", "resourceTemplates")
        names = [one["uriTemplate"] for one in found]
        expect("test://template/{id}/data" in names, f"listed {names}")
        return f"{len(names)} templates"

    def read(uri: str, field: str, contains: str = "") -> Callable[[], Awaitable[str]]:
        async def step() -> str:
            contents = (await client.read_resource(uri))["contents"]
            expect(len(contents) == 1 and contents[0]["uri"] == uri, f"contents {contents}")
            expect(contains in contents[0][field], f"no {contains!r} in {contents[0]}")
            return f"{field}, {contents[0].get('mimeType')}"

        return step

    async def missing() -> str:
        code = RESOURCE_NOT_FOUND if client.version == HANDSHAKE else INVALID_PARAMS
        return await refusal(client.read_resource("test://no-such-resource"), code)

    await report.check("resources/list", listed)
    await report.check("resources/templates/list", templates)
    await report.check("resources/read text", read("test://static-text", "text"))
    await report.check("resources/read binary", read("test://static-binary", "blob"))
    await report.check("resources/read template", read("test://template/42/data", "text", "42"))
    await report.check("an unknown resource", missing)


async def check_prompts(report: Report, client: Connected, can_ask: bool) -> None:
    names: set[str] = set()

    async def listed() -> str:
        names.update(one["name"] for one in await client.all("prompts", "prompts"))
        return f"{len(names)} prompts"

    def get(name: str, arguments: dict[str, str], kind: str) -> Callable[[], Awaitable[str]]:
        async def step() -> str:
            contents = [one["content"] for one in (await client.get_prompt(name, arguments or None))["messages"]]
            found = [content["type"] for content in contents]
            expect(kind in found, f"wanted {kind}, got {found}")
            text = " ".join(content.get("text", "") for content in contents)
            if name == "test_prompt_with_arguments":
                expect(all(one in text for one in arguments.values()), f"arguments not echoed in {text!r}")
            return "+".join(found)

        return step

    async def complete() -> str:
        said = await client.complete("test_prompt_with_arguments", {"name": "arg1", "value": "t"})
        return f"{len(said['completion']['values'])} values"

    wanted: list[tuple[str, dict[str, str], str]] = [
        ("test_simple_prompt", {}, "text"),
        ("test_prompt_with_arguments", {"arg1": "hello", "arg2": "world"}, "text"),
        ("test_prompt_with_embedded_resource", {"resourceUri": "test://example-resource"}, "resource"),
        ("test_prompt_with_image", {}, "image"),
    ]
    await report.check("prompts/list", listed)
    if can_ask and "test_input_required_result_prompt" in names:
        wanted.append(("test_input_required_result_prompt", {}, "text"))
    for name, arguments, kind in wanted:
        await report.check(name, get(name, arguments, kind))
    await report.check("completion/complete", complete)


async def check_older(report: Report, client: Connected, over_http: bool, can_ask: bool) -> None:
    """What only a handshake brings: pings, and whatever its capabilities promise to a session."""
    can = client.capabilities

    async def ping() -> str:
        await client.ping()
        return "it is there"

    async def session() -> str:
        expect(client.has_session() == can_ask, f"a session: {client.has_session()}")
        return "yes" if can_ask else "no"

    async def told(number: int, method: str, tool: str) -> str:
        before = len(client.received.of(method))
        await client.call_tool(tool)
        await client.received.until(before + number, method)
        return f"the client is told, {number} times"

    async def logging() -> str:
        await client.set_level("info")
        return await told(3, "notifications/message", "test_logging_tool")

    def changed(what: str) -> Callable[[], Awaitable[str]]:
        async def step() -> str:
            return await told(1, f"notifications/{what}s/list_changed", f"test_trigger_{what}_change")

        return step

    async def subscribed() -> str:
        await client.subscribe("test://watched-resource")
        await client.unsubscribe("test://watched-resource")
        return "and back"

    await report.check("ping", ping)
    if over_http and client.has_session() is not None:
        await report.check("a session", session)
    if not can_ask:
        return  # nothing can be sent apart from an answer
    if "logging" in can:
        await report.check("logging/setLevel", logging)
    for what in ("tool", "prompt"):
        if can.get(f"{what}s", {}).get("listChanged"):
            await report.check(f"{what}s/list_changed", changed(what))
    if can.get("resources", {}).get("subscribe"):
        await report.check("resources/subscribe", subscribed)


async def main() -> int:
    flag, server = command_line(__doc__)
    version, can_ask = HANDSHAKE if flag else REVISION, flag != "--stateless"
    report = Report()

    async def negotiates() -> str:
        # `auto` asks server/discover and falls back to the handshake: it must not have to.
        async with connect(server, version=version if flag else "auto") as client:
            expect(client.version == version, f"negotiated {client.version}")
            expect("tools" in client.capabilities, "tools are not advertised")
            return f"{client.version}, {client.name}"

    async def undeclared() -> str:
        async with connect(server, version=version) as client:
            code = None if flag else MISSING_CAPABILITY
            return await refusal(client.call_tool("test_missing_capability"), code)

    await report.check("initialize" if flag else "server/discover", negotiates)
    await report.check("test_missing_capability", undeclared)
    try:
        async with connect(server, Obliging(), version) as client:
            await check_tools(report, client, can_ask)
            await check_resources(report, client)
            await check_prompts(report, client, can_ask)
            if flag:
                await check_older(report, client, isinstance(server, str), can_ask)
    except Exception as error:  # the connection itself
        report.fail("connection", error)

    async def older() -> str:
        return nothing_newer()

    if flag:
        await report.check("nothing of 2026-07-28 on the wire", older)
    return report.conclude()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
