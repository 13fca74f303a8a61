"""A server on the Python SDK of the handshake era whose tools, prompt and resource stop and ask.

    asking_server.py            listens on http://127.0.0.1:$PORT/mcp, with sessions, and says so
    asking_server.py --stdio    serves standard input and output

`asking-client` drives it. It offers what the servers on the newer SDKs offer, under the same names and with the
same answers, as requests to the client while the call is under way. What is different in this era:

- There are no rounds and no state. `no_state` has none to send; `wait` and `wait_and_ask` ping the client where
  the others send a round without a question.
- A call cannot be taken by hand, one request at a time: the server waits for its answers.
- This SDK asks whatever the client declared. A question that the client refuses ends the call in a tool error.
- `endless` has enough after a hundred questions: nobody but the client can stop it before.
- A tool says what is wrong in a sentence of the SDK's around ours.

Two tools are here only: `visit_first` refuses with -32042 until somebody was sent to its page, and `roots_apart`
asks on the stream of the session, not on that of the call, as this SDK does unless it is told.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "python"))  # for what the SDKs' scripts share

import uvicorn
from mcp import McpError
from mcp.server.fastmcp import Context, FastMCP
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CreateMessageResult,
    ElicitRequestURLParams,
    ElicitResult,
    EmptyResult,
    ErrorData,
    ListRootsRequest,
    ListRootsResult,
    PingRequest,
    SamplingMessage,
    ServerRequest,
    TextContent,
)
from pydantic import BaseModel
from questions import CAPITAL, CONSENT, MAX_TOKENS, NAME, PAGE, SURVEY, compact, schema

PATIENCE_SECONDS = 10.0
ENOUGH = 100


class Refused(Exception):
    """The user did not answer."""


class Asking(FastMCP):
    """Prompts and resources have no tool errors, and the SDK would put its own words around ours."""

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        try:
            return await super().get_prompt(name, arguments)
        except Exception as error:
            raise refusal(error) from None

    async def read_resource(self, uri: Any) -> Any:
        try:
            return await super().read_resource(uri)
        except Exception as error:
            raise refusal(error) from None


def refusal(error: BaseException) -> BaseException:
    """What the user refused, if that is at the bottom of it."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, Refused):
        cause = cause.__cause__ or cause.__context__
    return error if cause is None else McpError(ErrorData(code=-32000, message=str(cause)))


server = Asking("asking-python-1x", log_level="CRITICAL")


class Name(BaseModel):
    name: str


# Asking, on the stream of the call.


def answered(key: str, said: ElicitResult) -> dict[str, Any]:
    if said.action != "accept":
        raise Refused(f"{key}: {said.action}")
    return said.content or {}


async def ask_form(ctx: Context, key: str, message: str, properties: dict[str, Any]) -> dict[str, Any]:
    said = await ctx.session.elicit_form(message, schema(properties), related_request_id=ctx.request_id)
    return answered(key, said)


async def ask_name(ctx: Context) -> str:
    """With the SDK's own check of the answer."""
    said = await ctx.elicit("What is your name?", Name)
    if said.action != "accept":
        raise Refused(f"name: {said.action}")
    return said.data.name


async def ask_model(ctx: Context) -> CreateMessageResult:
    question = SamplingMessage(role="user", content=TextContent(type="text", text=CAPITAL))
    return await ctx.session.create_message([question], max_tokens=MAX_TOKENS, related_request_id=ctx.request_id)


async def ask_roots(ctx: Context) -> ListRootsResult:
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await ctx.session.send_request(ServerRequest(ListRootsRequest()), ListRootsResult, metadata=related)


async def ping(ctx: Context) -> None:
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    await ctx.session.send_request(ServerRequest(PingRequest()), EmptyResult, metadata=related)


def counted(found: ListRootsResult) -> str:
    return f"{len(found.roots)} roots: {', '.join(str(root.uri) for root in found.roots)}"


# Tools.


@server.tool()
async def greet(ctx: Context, greeting: str = "Hello") -> str:
    """Asks for a name."""
    return f"{greeting}, {await ask_name(ctx)}!"


@server.tool()
async def sample(ctx: Context) -> str:
    """Asks the model."""
    return f"the model said: {(await ask_model(ctx)).content.text}"


@server.tool()
async def roots(ctx: Context) -> str:
    """Asks for the roots."""
    return counted(await ask_roots(ctx))


@server.tool()
async def roots_apart(ctx: Context) -> str:
    """Asks for the roots on the stream of the session."""
    await listens(ctx)
    return counted(await ctx.session.list_roots())


@server.tool()
async def together(ctx: Context) -> str:
    """Asks three things at once."""
    name, said, found = await asyncio.gather(ask_name(ctx), ask_model(ctx), ask_roots(ctx))
    return f"{name}: {said.content.text} ({len(found.roots)} roots)"


@server.tool()
async def rounds(ctx: Context) -> str:
    """Asks twice, the second time with the first answer in the question."""
    name = await ask_name(ctx)
    colour = {"colour": {"type": "string"}}
    filled = await ask_form(ctx, "colour", f"{name}, what is your favourite colour?", colour)
    return f"{name} likes {filled['colour']}"


@server.tool()
async def survey(ctx: Context) -> str:
    """Asks for one of every kind of field, and says what it was given."""
    return compact(await ask_form(ctx, "survey", "Please fill this in", SURVEY))


@server.tool()
async def no_state(ctx: Context) -> str:
    """Asks; there is no state."""
    filled = await ask_form(ctx, "name", "What is your name?", NAME)
    return f"{filled['name']}, without state"


@server.tool()
async def visit(ctx: Context) -> str:
    """Asks to visit a page, and says when it was visited."""
    said = await ctx.elicit_url(CONSENT, PAGE, elicitation_id="visit-7")
    if said.action != "accept":
        raise Refused(f"consent: {said.action}")
    await ctx.session.send_elicit_complete("visit-7", related_request_id=ctx.request_id)
    return "thank you for the visit"


sent: set[str] = set()


@server.tool()
async def visit_first(id: str) -> str:
    """Answers only those who were sent to its page before; `id` says who that is."""
    if id in sent:
        return "thank you for the visit"
    sent.add(id)
    page = ElicitRequestURLParams(message=CONSENT, url=PAGE, elicitationId=f"visit-first-{id}")
    raise UrlElicitationRequiredError([page])


@server.tool()
async def wait(ctx: Context) -> str:
    """Asks nothing, but wants to hear of the client three times."""
    for _ in range(3):
        await ping(ctx)
    return "ready after 3 rounds"


@server.tool()
async def wait_and_ask(ctx: Context) -> str:
    """Wants to hear of the client before its question and after it."""
    await ping(ctx)
    name = await ask_name(ctx)
    await ping(ctx)
    return f"named {name}, after all"


@server.tool()
async def endless(ctx: Context) -> str:
    """Does not have enough for a long time."""
    for number in range(1, ENOUGH + 1):
        await ask_form(ctx, "more", f"Question {number}", {"ok": {"type": "boolean"}})
    return "enough"


@server.prompt()
async def topic(ctx: Context, kind: str) -> str:
    """Asks what to write about."""
    filled = await ask_form(ctx, "topic", f"What is the {kind} about?", {"topic": {"type": "string"}})
    return f"Write a {kind} about {filled['topic']}"


@server.resource("note://{id}", mime_type="text/plain")
async def note(ctx: Context, id: str) -> str:
    """Asks what the note is about."""
    filled = await ask_form(ctx, "topic", f"What is note {id} about?", {"topic": {"type": "string"}})
    return f"Note {id} about {filled['topic']}"


# The stream of a session: whatever is sent before it is open gets lost.

listening: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)


def watched(app: Any) -> Any:
    """Notes which sessions have opened their stream."""

    async def watch(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", []))
        session = headers.get(b"mcp-session-id", b"").decode()

        async def noting(message: Any) -> None:
            await send(message)
            if message["type"] == "http.response.start" and message["status"] == 200:
                listening[session].set()

        await app(scope, receive, noting if scope.get("method") == "GET" else send)

    return watch


async def listens(ctx: Context) -> None:
    request = ctx.request_context.request
    if request is None:
        return  # stdio has but one stream
    try:
        await asyncio.wait_for(listening[request.headers["mcp-session-id"]].wait(), PATIENCE_SECONDS)
    except TimeoutError:
        raise Refused("the client has opened no stream for the session") from None


def main() -> None:
    if "--stdio" in sys.argv[1:]:
        return server.run("stdio")
    # It listens before it says so.
    listener = socket.create_server(("127.0.0.1", int(os.environ.get("PORT", "3004"))))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(watched(server.streamable_http_app()), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
