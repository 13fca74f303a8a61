"""What the client answers when a server asks it something."""

from __future__ import annotations

from typing import Any

import mcp_types as types


def value_for(schema: dict[str, Any]) -> Any:
    """A value that fits one property of a form."""
    if "default" in schema:
        return schema["default"]
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for choices in ("oneOf", "anyOf"):
        if choices in schema:
            return value_for(schema[choices][0])
    kind = schema.get("type")
    if kind == "boolean":
        return True
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    if kind == "array":
        return [value_for(schema.get("items", {}))]
    samples = {"email": "ada@example.com", "uri": "https://example.com/", "date": "2026-07-28"}
    samples["date-time"] = "2026-07-28T12:00:00Z"
    return samples.get(schema.get("format", ""), "Ada").ljust(schema.get("minLength", 0), "a")


async def answer_form(_context: Any, params: Any) -> types.ElicitResult:
    if getattr(params, "mode", "form") == "url":
        return types.ElicitResult(action="accept")
    schema = params.requested_schema
    schema = schema if isinstance(schema, dict) else schema.model_dump(by_alias=True, exclude_none=True)
    content = {name: value_for(one) for name, one in schema.get("properties", {}).items()}
    return types.ElicitResult(action="accept", content=content)


async def answer_sampling(_context: Any, _params: Any) -> types.CreateMessageResult:
    text = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", content=text, model="none", stop_reason="endTurn")


async def answer_roots(_context: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///project", name="project")])
