"""A server on the published Python SDK whose tools, prompt and resource stop and ask.

    asking_server.py            listens on http://127.0.0.1:$PORT/mcp, and says so
    asking_server.py --stdio    serves standard input and output

`asking-client` drives it. The TypeScript server beside it offers the same, under the same names and with
the same answers. Here the first tools let the SDK ask (`Resolve`), and the others build their rounds by hand:
that is the only way to ask for a visit to a URL, to send state without a question, and to ask from a prompt
or a resource. A resource can ask only where it is a template.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from typing import Annotated, Any

import uvicorn
from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import (
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel
from questions import CAPITAL, CONSENT, MAX_TOKENS, NAME, PAGE, SURVEY, compact, schema

server = MCPServer("asking-python", version="1.0.0")


class Name(BaseModel):
    name: str


class Colour(BaseModel):
    colour: str


# Questions that the SDK asks.


def ask_name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


def ask_colour(name: Annotated[Name, Resolve(ask_name)]) -> Elicit[Colour]:
    return Elicit(f"{name.name}, what is your favourite colour?", Colour)


def ask_model() -> Sample:
    question = TextContent(type="text", text=CAPITAL)
    return Sample([SamplingMessage(role="user", content=question)], max_tokens=MAX_TOKENS)


def ask_roots() -> ListRoots:
    return ListRoots()


AskedName = Annotated[Name, Resolve(ask_name)]
AskedModel = Annotated[CreateMessageResult, Resolve(ask_model)]
AskedRoots = Annotated[ListRootsResult, Resolve(ask_roots)]


@server.tool()
def greet(name: AskedName, greeting: str = "Hello") -> str:
    """Asks for a name."""
    return f"{greeting}, {name.name}!"


@server.tool()
def sample(said: AskedModel) -> str:
    """Asks the model."""
    return f"the model said: {said.content.text}"


@server.tool()
def roots(found: AskedRoots) -> str:
    """Asks for the roots."""
    uris = ", ".join(str(root.uri) for root in found.roots)
    return f"{len(found.roots)} roots: {uris}"


@server.tool()
def together(name: AskedName, said: AskedModel, found: AskedRoots) -> str:
    """Asks three things at once."""
    return f"{name.name}: {said.content.text} ({len(found.roots)} roots)"


@server.tool()
def rounds(name: AskedName, colour: Annotated[Colour, Resolve(ask_colour)]) -> str:
    """Asks twice, the second time with the first answer in the question."""
    return f"{name.name} likes {colour.colour}"


# Rounds built by hand.


def form(message: str, **properties: dict[str, Any]) -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema(properties)))


def ask(state: str | None = None, **questions: ElicitRequest) -> InputRequiredResult:
    return InputRequiredResult(input_requests=questions or None, request_state=state)


def answer(ctx: Context, key: str, refusal: Callable[[str], Exception] = ToolError) -> dict[str, Any] | None:
    """What the form was filled in with, if it has been asked and answered."""
    said = (ctx.input_responses or {}).get(key)
    if said is None:
        return None
    if not isinstance(said, ElicitResult):
        raise refusal(f"{key} is not answered with a form")
    if said.action != "accept":
        raise refusal(f"{key}: {said.action}")
    return said.content or {}


def refuse(why: str) -> MCPError:
    """Prompts and resources have no tool errors, and anything else but this would be an internal error."""
    return MCPError(code=-32000, message=why)


@server.tool()
def survey(ctx: Context) -> str | InputRequiredResult:
    """Asks for one of every kind of field, and says what it was given."""
    filled = answer(ctx, "survey")
    if filled is None:
        return ask(survey=form("Please fill this in", **SURVEY))
    return compact(filled)


@server.tool()
def no_state(ctx: Context) -> str | InputRequiredResult:
    """Asks without any state, and wants none back."""
    filled = answer(ctx, "name")
    if filled is None:
        return ask(name=form("What is your name?", **NAME))
    return f"{filled['name']}, {'with' if ctx.request_state else 'without'} state"


@server.tool()
def visit(ctx: Context) -> str | InputRequiredResult:
    """Asks to visit a page."""
    if answer(ctx, "consent") is None:
        page = ElicitRequestURLParams(message=CONSENT, url=PAGE)
        return ask(consent=ElicitRequest(params=page))
    return "thank you for the visit"


@server.tool()
def wait(ctx: Context) -> str | InputRequiredResult:
    """Asks nothing, and wants to be called again three times."""
    waited = int(ctx.request_state or 0)
    return ask(state=str(waited + 1)) if waited < 3 else f"ready after {waited} rounds"


@server.tool()
def wait_and_ask(ctx: Context) -> str | InputRequiredResult:
    """Wants to be called again before its question and after it."""
    match ctx.request_state:
        case None:
            return ask(state="asking")
        case "asking":
            question = form("What is your name?", **NAME)
            return ask(state="asked", name=question)
        case "asked":
            filled = answer(ctx, "name")
            return ask(state=f"named {filled['name']}" if filled else "asking")
        case state:
            return f"{state}, after all"


@server.tool()
def endless(ctx: Context) -> InputRequiredResult:
    """Never has enough."""
    asked = int(ctx.request_state or 0) + 1
    return ask(state=str(asked), more=form(f"Question {asked}", ok={"type": "boolean"}))


@server.prompt()
def topic(ctx: Context, kind: str) -> str | InputRequiredResult:
    """Asks what to write about."""
    filled = answer(ctx, "topic", refuse)
    if filled is None:
        return ask(topic=form(f"What is the {kind} about?", topic={"type": "string"}))
    return f"Write a {kind} about {filled['topic']}"


@server.resource("note://{id}", mime_type="text/plain")
def note(ctx: Context, id: str) -> str | InputRequiredResult:
    """Asks what the note is about."""
    filled = answer(ctx, "topic", refuse)
    if filled is None:
        return ask(state=id, topic=form(f"What is note {id} about?", topic={"type": "string"}))
    return f"Note {ctx.request_state} about {filled['topic']}"


def main() -> None:
    if "--stdio" in sys.argv[1:]:
        return server.run("stdio")
    # It listens before it says so.
    listener = socket.create_server(("127.0.0.1", int(os.environ.get("PORT", "3002"))))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
