"""Answer a server's questions with the published Python client, at protocol revision 2026-07-28.

    answer.py http URL
    answer.py stdio COMMAND [ARGUMENT ...]

Calls everything of our conformance server that stops and asks, answers in every way there is, and
checks what was asked and what came of it. One line a check; the last line says `N passed, M failed`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from checks import INVALID_PARAMS, MISSING_CAPABILITY, REVISION, Mismatch, Report, expect, target
from mcp import Client, MCPError, StdioServerParameters

# What is typed into each field of a form.
FIELDS: dict[str, Any] = {"name": "Ada", "color": "teal", "ok": True, "context": "tides"}
# The tools that ask with a form among other things.
FORMS = ["elicitation", "request_state", "tampered_state", "multiple_inputs", "multi_round", "capabilities"]
# Every tool that asks: the keys of each of its rounds, and how its answer reads.
ROUNDS: dict[str, tuple[list[set[str]], str]] = {
    "elicitation": ([{"user_name"}], "Hello, Ada!"),
    "sampling": ([{"capital_question"}], "the model said: Paris"),
    "list_roots": ([{"client_roots"}], "2 roots"),
    "request_state": ([{"confirm"}], "state-ok: true"),
    "tampered_state": ([{"confirm"}], "state-ok: true"),
    "multiple_inputs": ([{"user_name", "greeting", "client_roots"}], "Ada: Paris (2 roots)"),
    "multi_round": ([{"step1"}, {"step2"}], "Ada likes teal"),
    "capabilities": (
        [{"user_name", "greeting", "client_roots"}],
        'name: Some("Ada"), model: Some("Paris"), roots: Some(2)',
    ),
}
# A prompt has no tool errors: there, our server answers with an error of its own.
DECLINED = 403
REFUSALS = {"decline": "the user declined to answer", "cancel": "the user dismissed"}

Server = str | StdioServerParameters


class User:
    """Whoever answers: fills in forms, or refuses them; and remembers what was asked."""

    def __init__(self, *actions: str) -> None:
        self.actions = list(actions)  # what to do with each form in turn; from then on, accept
        self.asked: list[str] = []

    async def elicit(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(context.request_id)  # in a round this is the question's key
        action = self.actions.pop(0) if self.actions else "accept"
        if action != "accept":
            return types.ElicitResult(action=action)
        schema = params.requested_schema
        schema = schema if isinstance(schema, dict) else schema.model_dump(by_alias=True)
        return types.ElicitResult(action="accept", content={name: FIELDS[name] for name in schema["properties"]})

    async def sample(self, context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        self.asked.append(context.request_id)
        expect(params.max_tokens == 100, f"maxTokens is {params.max_tokens}")
        text = types.TextContent(type="text", text="Paris")
        return types.CreateMessageResult(role="assistant", content=text, model="none", stop_reason="endTurn")

    async def roots(self, context: Any) -> types.ListRootsResult:
        self.asked.append(context.request_id)
        uris = ("file:///project", "file:///notes")
        return types.ListRootsResult(roots=[types.Root(uri=uri) for uri in uris])

    def client(self, server: Server) -> Client:
        return Client(
            server,
            mode=REVISION,
            elicitation_callback=self.elicit,
            sampling_callback=self.sample,
            list_roots_callback=self.roots,
        )


def tool(kind: str) -> str:
    return f"test_input_required_result_{kind}"


def text(result: Any) -> str:
    """The text of a tool's answer or a prompt's messages."""
    blocks = result.content if hasattr(result, "content") else [one.content for one in result.messages]
    return " ".join(getattr(block, "text", f"({block.type})") for block in blocks)


async def refused(step: Awaitable[Any], code: int) -> str:
    """The request must end in that JSON-RPC error."""
    try:
        result = await step
    except MCPError as error:
        expect(error.code == code, f"wanted error {code}, got {error.code}: {error}")
        return f"error {error.code}: {error}"
    raise Mismatch(f"wanted error {code}, got {result}")


async def check_answers(report: Report, server: Server) -> None:
    """Each tool, and the prompt, with a user who answers everything."""
    user = User()
    async with user.client(server) as client:
        for kind, (rounds, wanted) in ROUNDS.items():

            async def answered(kind: str = kind, rounds: Any = rounds, wanted: str = wanted) -> str:
                user.asked.clear()
                result = await client.call_tool(tool(kind), {})
                expect(not result.is_error and text(result) == wanted, f"wanted {wanted!r}, got {result}")
                asked = iter(user.asked)
                for keys in rounds:  # within a round, in any order
                    found = {next(asked, None) for _ in keys}
                    expect(found == keys, f"asked {user.asked}, wanted {rounds}")
                expect(next(asked, None) is None, f"asked {user.asked}, wanted {rounds}")
                return f"{len(rounds)} round(s) of {', '.join(user.asked)}: {wanted}"

            await report.check(f"{kind}, accepted", answered)

        async def prompt() -> str:
            user.asked.clear()
            result = await client.get_prompt(tool("prompt"))
            expect(text(result) == "Consider this context: tides", f"got {result}")
            expect(user.asked == ["user_context"], f"asked {user.asked}")
            return text(result)

        await report.check("prompt, accepted", prompt)

        async def together() -> str:
            kinds = list(ROUNDS) * 3
            calls = [client.call_tool(tool(kind), {}) for kind in kinds]
            found = [text(result) for result in await asyncio.gather(*calls)]
            wanted = [ROUNDS[kind][1] for kind in kinds]
            expect(found == wanted, f"wanted {wanted}, got {found}")
            return f"{len(found)} answers, each to its call"

        await report.check("many calls at the same time", together)


async def check_refusals(report: Report, server: Server) -> None:
    """A user who declines or cancels: a tool ends in a tool error, a prompt in an error."""
    for action, said in REFUSALS.items():
        for kind in FORMS:

            async def no(kind: str = kind, action: str = action, said: str = said) -> str:
                user = User(action)
                async with user.client(server) as client:
                    result = await client.call_tool(tool(kind), {})
                expect(result.is_error is True and said in text(result), f"got {result}")
                return text(result)

            await report.check(f"{kind}, {action}", no)

        async def second(action: str = action, said: str = said) -> str:
            user = User("accept", action)
            async with user.client(server) as client:
                result = await client.call_tool(tool("multi_round"), {})
            expect(user.asked == ["step1", "step2"], f"asked {user.asked}")
            expect(result.is_error is True and said in text(result), f"got {result}")
            return text(result)

        await report.check(f"multi_round, {action} in the second round", second)

        async def prompt(action: str = action, said: str = said) -> str:
            async with User(action).client(server) as client:
                error = await refused(client.get_prompt(tool("prompt")), DECLINED)
            expect(said in error, error)
            return error

        await report.check(f"prompt, {action}", prompt)


async def check_capabilities(report: Report, server: Server) -> None:
    """Clients that can be asked some things only. This client cannot declare forms without URLs."""

    def call(kind: str, wanted: str, **callbacks: Any) -> Callable[[], Awaitable[str]]:
        async def step() -> str:
            async with Client(server, mode=REVISION, **callbacks) as client:
                result = await client.call_tool(tool(kind), {})
            expect(not result.is_error and text(result) == wanted, f"wanted {wanted!r}, got {result}")
            return wanted

        return step

    user = User()
    nothing = "name: None, model: None, roots: None"
    forms = 'name: Some("Ada"), model: None, roots: None'
    model = 'name: None, model: Some("Paris"), roots: None'
    roots = "name: None, model: None, roots: Some(2)"
    await report.check("capabilities, none declared", call("capabilities", nothing))
    await report.check("capabilities, forms", call("capabilities", forms, elicitation_callback=user.elicit))
    await report.check("capabilities, sampling", call("capabilities", model, sampling_callback=user.sample))
    await report.check("capabilities, roots", call("capabilities", roots, list_roots_callback=user.roots))

    for kind in ["elicitation", "sampling", "list_roots", "multi_round"]:

        async def cannot(kind: str = kind) -> str:
            async with Client(server, mode=REVISION) as client:
                return await refused(client.call_tool(tool(kind), {}), MISSING_CAPABILITY)

        await report.check(f"{kind}, nothing declared", cannot)


async def check_by_hand(report: Report, server: Server) -> None:
    """Rounds one at a time, so that they can be done wrong."""
    async with User().client(server) as client:

        async def turn(kind: str, answers: Any = None, state: str | None = None) -> Any:
            return await client.session.call_tool(
                tool(kind), {}, input_responses=answers, request_state=state, allow_input_required=True
            )

        def form(**content: Any) -> types.ElicitResult:
            return types.ElicitResult(action="accept", content=content)

        def keys(result: Any) -> set[str]:
            expect(isinstance(result, types.InputRequiredResult), f"wanted questions, got {result}")
            return set(result.input_requests or {})

        async def in_parts() -> str:
            first = await turn("multiple_inputs")
            expect(len(keys(first)) == 3, f"asked {keys(first)}")
            second = await turn("multiple_inputs", {"user_name": form(name="Ada")}, first.request_state)
            left = {"greeting", "client_roots"}
            expect(keys(second) == left, f"asked {keys(second)}, wanted {left}")
            user = User()
            greeting = await user.sample(_Key("greeting"), second.input_requests["greeting"].params)
            roots = await user.roots(_Key("client_roots"))
            rest = {"greeting": greeting, "client_roots": roots}
            last = await turn("multiple_inputs", rest, second.request_state)
            expect(text(last) == ROUNDS["multiple_inputs"][1], f"got {last}")
            return "what was missing is asked for again, alone"

        async def invalid() -> str:
            first = await turn("multi_round")
            second = await turn("multi_round", {"step1": form(name=7)}, first.request_state)
            expect(keys(second) == {"step1"}, f"asked {keys(second)}")
            message = second.input_requests["step1"].params.message
            expect(message != first.input_requests["step1"].params.message, f"again only {message!r}")
            return message

        async def tampered() -> str:
            first = await turn("tampered_state")
            bad = first.request_state + "x"
            return await refused(turn("tampered_state", {"confirm": form(ok=True)}, bad), INVALID_PARAMS)

        async def moved() -> str:
            first = await turn("request_state")
            answers = {"confirm": form(ok=True)}
            return await refused(turn("tampered_state", answers, first.request_state), INVALID_PARAMS)

        await report.check("by hand, one answer at a time", in_parts)
        await report.check("by hand, an answer that does not fit", invalid)
        await report.check("by hand, a state that was changed", tampered)
        await report.check("by hand, the state of another tool", moved)


class _Key:
    """Stands for the context that a callback is given."""

    def __init__(self, key: str) -> None:
        self.request_id = key


async def main() -> int:
    server = target(sys.argv[1:], __doc__)
    report = Report()
    for checks in (check_answers, check_refusals, check_capabilities, check_by_hand):
        try:
            await checks(report, server)
        except Exception as error:  # the connection itself
            report.fail("connection", error)
    return report.conclude()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
