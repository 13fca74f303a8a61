"""What the asking servers ask, whichever SDK they are written on."""

from __future__ import annotations

import json
from typing import Any

CAPITAL = "What is the capital of France?"
MAX_TOKENS = 100
NAME: dict[str, Any] = {"name": {"type": "string"}}
CONSENT = "Please give your consent"
PAGE = "https://example.com/consent?id=7"
SURVEY: dict[str, dict[str, Any]] = {
    "name": {"type": "string", "minLength": 1, "maxLength": 40},
    "email": {"type": "string", "format": "email"},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "score": {"type": "number"},
    "member": {"type": "boolean", "default": True},
    "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
    "colour": {"type": "string", "oneOf": [{"const": "teal", "title": "Teal"}, {"const": "red", "title": "Red"}]},
    "toppings": {"type": "array", "items": {"type": "string", "enum": ["cheese", "olives", "ham"]}, "minItems": 1},
}


def schema(properties: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The schema of a form: whatever has no default has to be filled in."""
    required = [name for name, one in properties.items() if "default" not in one]
    return {"type": "object", "properties": properties, "required": required}


def compact(filled: dict[str, Any]) -> str:
    """JSON with its keys in order, however they came."""
    return json.dumps(filled, sort_keys=True, separators=(",", ":"))
