"""Drive a server with the published Python client, at protocol revision 2026-07-28.

    list_and_call.py http URL
    list_and_call.py stdio COMMAND [ARGUMENT ...]

Lists everything the server offers, calls every tool, and checks that each answer is of the
expected kind. One line a check; the last line says `N passed, M failed`. Exit status 0 only
when something passed and nothing failed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from answers import answer_form, answer_roots, answer_sampling
from checks import MISSING_CAPABILITY, REVISION, Mismatch, Report, expect, target
from mcp import Client, MCPError

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


def kinds(result: types.CallToolResult) -> list[str]:
    return [block.type for block in result.content]


def describe(result: types.CallToolResult) -> str:
    return ("tool error, " if result.is_error else "") + ("+".join(kinds(result)) or "no content")


async def all_pages(fetch: Callable[..., Awaitable[Any]], field: str) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = await fetch(cursor=cursor)
        found += getattr(page, field)
        cursor = page.next_cursor
        if cursor is None:
            return found


async def check_tools(report: Report, client: Client) -> None:
    tools: dict[str, types.Tool] = {}

    async def listed() -> str:
        for tool in await all_pages(client.list_tools, "tools"):
            expect(tool.name not in tools, f"{tool.name} is listed twice")
            expect(tool.input_schema.get("type") == "object", f"{tool.name}: inputSchema is not an object")
            tools[tool.name] = tool
        return f"{len(tools)} tools"

    await report.check("tools/list", listed)
    known = set(TASK_ONLY) | {"test_error_handling", "test_tool_with_progress", "test_missing_capability"}

    for name, arguments, expected in PLAIN_TOOLS:
        known.add(name)

        async def plain(name: str = name, arguments: Any = arguments, expected: Any = expected) -> str:
            result = await client.call_tool(name, arguments)
            expect(not result.is_error and kinds(result) == expected, f"wanted {expected}, got {describe(result)}")
            return describe(result)

        await report.check(name, plain)

    async def error() -> str:
        result = await client.call_tool("test_error_handling", {})
        expect(result.is_error is True, f"wanted isError, got {describe(result)}")
        expect("text" in kinds(result), "a tool error says what went wrong in text")
        return describe(result)

    await report.check("test_error_handling", error)

    async def progress() -> str:
        seen: list[float] = []

        async def on_progress(value: float, _total: float | None, _message: str | None) -> None:
            seen.append(value)

        result = await client.call_tool("test_tool_with_progress", {}, progress_callback=on_progress)
        expect(not result.is_error, describe(result))
        for _ in range(20):  # the callback may run just after the result
            if len(seen) >= 3:
                break
            await asyncio.sleep(0.05)
        expect(len(seen) >= 3 and all(a < b for a, b in zip(seen, seen[1:])), f"progress was {seen}")
        return f"{describe(result)}, progress {seen}"

    await report.check("test_tool_with_progress", progress)

    async def with_sampling() -> str:
        return await open_call(client, "test_missing_capability", {})

    await report.check("test_missing_capability (sampling declared)", with_sampling)

    extra = [
        (tool.name, {})
        for tool in tools.values()
        if tool.name not in known
        and tool.name not in dict(OPEN_TOOLS)
        and not tool.input_schema.get("required")
    ]
    for name, arguments in OPEN_TOOLS + extra:

        async def opened(name: str = name, arguments: Any = arguments) -> str:
            return await open_call(client, name, arguments)

        await report.check(name, opened)

    for name in sorted(TASK_ONLY & tools.keys()):

        async def refused(name: str = name) -> str:
            return await refusal(client, name, MISSING_CAPABILITY if name == "failing_job" else None)

        await report.check(f"{name} (tasks not declared)", refused)

    async def unknown() -> str:
        return await refusal(client, "no_such_tool", -32602)

    await report.check("an unknown tool", unknown)


async def open_call(client: Client, name: str, arguments: dict[str, Any]) -> str:
    result = await client.call_tool(name, arguments)
    expect(not result.is_error, f"{describe(result)}: {result.content}")
    return describe(result)


async def refusal(client: Client, name: str, code: int | None) -> str:
    try:
        result = await client.call_tool(name, {})
    except MCPError as error:
        expect(code in (None, error.code), f"wanted error {code}, got {error.code}: {error}")
        return f"error {error.code}"
    raise Mismatch(f"wanted a JSON-RPC error, got {describe(result)}")


async def check_resources(report: Report, client: Client) -> None:
    async def listed() -> str:
        uris = {str(one.uri) for one in await all_pages(client.list_resources, "resources")}
        expect({"test://static-text", "test://static-binary"} <= uris, f"listed {sorted(uris)}")
        return f"{len(uris)} resources"

    async def templates() -> str:
        found = await all_pages(client.list_resource_templates, "resource_templates")
        names = [one.uri_template for one in found]
        expect("test://template/{id}/data" in names, f"listed {names}")
        return f"{len(names)} templates"

    def read(uri: str, field: str, contains: str = "") -> Callable[[], Awaitable[str]]:
        async def step() -> str:
            contents = (await client.read_resource(uri)).contents
            expect(len(contents) == 1 and str(contents[0].uri) == uri, f"contents {contents}")
            expect(contains in getattr(contents[0], field), f"no {contains!r} in {contents[0]}")
            return f"{field}, {contents[0].mime_type}"

        return step

    async def missing() -> str:
        try:
            await client.read_resource("test://no-such-resource")
        except MCPError as error:
            expect(error.code == -32602, f"wanted -32602, got {error.code}")
            return f"error {error.code}"
        raise Mismatch("an unknown resource was read")

    await report.check("resources/list", listed)
    await report.check("resources/templates/list", templates)
    await report.check("resources/read text", read("test://static-text", "text"))
    await report.check("resources/read binary", read("test://static-binary", "blob"))
    await report.check("resources/read template", read("test://template/42/data", "text", "42"))
    await report.check("an unknown resource", missing)


async def check_prompts(report: Report, client: Client) -> None:
    names: set[str] = set()

    async def listed() -> str:
        names.update(one.name for one in await all_pages(client.list_prompts, "prompts"))
        return f"{len(names)} prompts"

    def get(name: str, arguments: dict[str, str], kind: str) -> Callable[[], Awaitable[str]]:
        async def step() -> str:
            messages = (await client.get_prompt(name, arguments or None)).messages
            found = [message.content.type for message in messages]
            expect(kind in found, f"wanted {kind}, got {found}")
            text = " ".join(getattr(message.content, "text", "") for message in messages)
            if name == "test_prompt_with_arguments":
                expect(all(one in text for one in arguments.values()), f"arguments not echoed in {text!r}")
            return "+".join(found)

        return step

    async def complete() -> str:
        ref = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        values = (await client.complete(ref, {"name": "arg1", "value": "t"})).completion.values
        return f"{len(values)} values"

    wanted: list[tuple[str, dict[str, str], str]] = [
        ("test_simple_prompt", {}, "text"),
        ("test_prompt_with_arguments", {"arg1": "hello", "arg2": "world"}, "text"),
        ("test_prompt_with_embedded_resource", {"resourceUri": "test://example-resource"}, "resource"),
        ("test_prompt_with_image", {}, "image"),
    ]
    await report.check("prompts/list", listed)
    if "test_input_required_result_prompt" in names:
        wanted.append(("test_input_required_result_prompt", {}, "text"))
    for name, arguments, kind in wanted:
        await report.check(name, get(name, arguments, kind))
    await report.check("completion/complete", complete)


async def main() -> int:
    server = target(sys.argv[1:], __doc__)
    report = Report()

    async def negotiates() -> str:
        # `auto` asks server/discover and falls back to the handshake: it must not have to.
        async with Client(server, mode="auto") as client:
            expect(client.protocol_version == REVISION, f"negotiated {client.protocol_version}")
            expect(client.server_capabilities.tools is not None, "tools are not advertised")
            return f"{client.protocol_version}, {client.server_info and client.server_info.name}"

    async def undeclared() -> str:
        async with Client(server, mode=REVISION) as client:
            return await refusal(client, "test_missing_capability", MISSING_CAPABILITY)

    await report.check("server/discover", negotiates)
    await report.check("test_missing_capability", undeclared)

    client = Client(
        server,
        mode=REVISION,
        sampling_callback=answer_sampling,
        elicitation_callback=answer_form,
        list_roots_callback=answer_roots,
    )
    try:
        async with client:
            await check_tools(report, client)
            await check_resources(report, client)
            await check_prompts(report, client)
    except Exception as error:  # the connection itself
        report.failed += 1
        print(f"FAIL  connection: {type(error).__name__}: {error}")
    return report.conclude()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
