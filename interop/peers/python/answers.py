"""What the client answers when a server asks it something."""

from __future__ import annotations

from typing import Any

from sdk import User


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


class Obliging(User):
    """Answers everything with something that fits."""

    async def elicit(self, params: dict[str, Any]) -> dict[str, Any]:
        if params.get("mode") == "url":
            return {"action": "accept"}
        properties = params["requestedSchema"].get("properties", {})
        return {"action": "accept", "content": {name: value_for(one) for name, one in properties.items()}}

    async def sample(self, _params: dict[str, Any]) -> dict[str, Any]:
        return model_says("Paris")

    async def roots(self) -> dict[str, Any]:
        return {"roots": [{"uri": "file:///project", "name": "project"}]}


def model_says(text: str) -> dict[str, Any]:
    content = {"type": "text", "text": text}
    return {"role": "assistant", "content": content, "model": "none", "stopReason": "endTurn"}
