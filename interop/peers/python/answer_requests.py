"""Answer a server's requests with a published Python client, as the revisions with a handshake have it.

    answer_requests.py --handshake http URL
    answer_requests.py --handshake stdio COMMAND [ARGUMENT ...]
    answer_requests.py --stateless http URL

Calls everything of our conformance server that stops and asks, answers in every way there is, and checks what was
asked and what came of it. Without a session (`--stateless`) whatever asks has to say why it cannot. One line a
check; the last line says `N passed, M failed`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from answers import model_says
from checks import HANDSHAKE, REVISION, MCPError, Mismatch, Report, Server, command_line, expect
from sdk import Connected, User, connect, nothing_newer

# What is typed into each field of a form.
FIELDS: dict[str, Any] = {"name": "Ada", "color": "teal", "ok": True, "context": "tides"}
# The tools that ask with a form among other things.
FORMS = ["elicitation", "request_state", "tampered_state", "multiple_inputs", "multi_round", "capabilities"]
# Every tool that asks: its questions, together or one after the other, and how its answer reads.
NAME, ROOTS = "What is your name?", "the roots"
STEPS = ["Step 1: what is your name?", "Step 2: what is your favourite colour?"]
PAGE = "Please give your consent at https://example.com/consent?id=7"
ASKED: dict[str, tuple[list[set[str]], str]] = {
    "elicitation": ([{NAME}], "Hello, Ada!"),
    "sampling": ([{"What is the capital of France?"}], "the model said: Paris"),
    "list_roots": ([{ROOTS}], "2 roots"),
    "url": ([{PAGE}], "thank you for the visit"),
    "request_state": ([{"Please confirm"}], "state-ok: true"),
    "tampered_state": ([{"Please confirm"}], "state-ok: true"),
    "multiple_inputs": ([{NAME, "Generate a greeting", ROOTS}], "Ada: Paris (2 roots)"),
    "multi_round": ([{STEPS[0]}, {STEPS[1]}], "Ada likes teal"),
    "capabilities": (
        [{NAME, "Say hello", ROOTS}],
        'name: Some("Ada"), model: Some("Paris"), roots: Some(2)',
    ),
    "state_only": ([], "ready after 2 rounds"),
}
NEED_NOT_ASK = {"capabilities", "state_only"}
TEMPLATE = "test://asking/7"
# A prompt or a resource has no tool errors: there, our server answers with an error of its own.
DECLINED = 403
REFUSALS = {"decline": "the user declined to answer", "cancel": "the user dismissed"}
# How often a question is put again when its answer does not fit.
AGAIN = 10
REQUESTS = ("elicitation/create", "sampling/createMessage", "roots/list")

Step = Callable[[], Awaitable[str]]


class Answering(User):
    """Fills in forms, or does to each in turn what `acts` say; and remembers what was asked."""

    def __init__(self, *acts: str | dict[str, Any]) -> None:
        self.acts = list(acts)  # an action, or what to type; from then on, what is right
        self.asked: list[str] = []
        self.gate: Callable[[], Awaitable[Any]] | None = None  # what to wait for before the first answer

    async def elicit(self, params: dict[str, Any]) -> dict[str, Any]:
        is_page = params.get("mode") == "url"
        await self.note(f"{params['message']} at {params['url']}" if is_page else params["message"])
        act = self.acts.pop(0) if self.acts else "accept"
        if isinstance(act, dict):
            return act if "code" in act else {"action": "accept", "content": act}
        if act != "accept" or is_page:
            return {"action": act}
        names = params["requestedSchema"]["properties"]
        return {"action": "accept", "content": {name: FIELDS[name] for name in names}}

    async def sample(self, params: dict[str, Any]) -> dict[str, Any]:
        expect(params["maxTokens"] == 100, f"maxTokens is {params['maxTokens']}")
        content = params["messages"][0]["content"]
        await self.note((content[0] if isinstance(content, list) else content)["text"])
        return model_says("Paris")

    async def roots(self) -> dict[str, Any]:
        await self.note(ROOTS)
        return {"roots": [{"uri": "file:///project"}, {"uri": "file:///notes"}]}

    async def note(self, question: str) -> None:
        self.asked.append(question)
        if self.gate is not None:
            await self.gate()

    def at(self, server: Server) -> AbstractAsyncContextManager[Connected]:
        return connect(server, self, HANDSHAKE)


def tool(kind: str) -> str:
    return f"test_input_required_result_{kind}"


def text(result: dict[str, Any]) -> str:
    """The text of a tool's answer, a prompt's messages or a resource's contents."""
    blocks = result.get("content") or result.get("contents") or [one["content"] for one in result["messages"]]
    return " ".join(block.get("text", f"({block.get('type')})") for block in blocks)


def right(result: dict[str, Any], wanted: str) -> str:
    expect(not result.get("isError") and text(result) == wanted, f"wanted {wanted!r}, got {result}")
    return wanted


def tool_error(result: dict[str, Any], said: str = "") -> str:
    expect(result.get("isError") is True and said in text(result), f"wanted a tool error {said!r}, got {result}")
    return text(result)


async def error(step: Awaitable[dict[str, Any]], code: int | None = None) -> str:
    """The request must end in a JSON-RPC error."""
    try:
        result = await step
    except MCPError as refusal:
        found = refusal.error.code
        expect(code in (None, found), f"wanted error {code}, got {found}: {refusal}")
        return f"error {found}: {refusal}"
    raise Mismatch(f"wanted an error, got {result}")


async def either_error(step: Awaitable[dict[str, Any]]) -> str:
    """The call must fail, as a tool does or as a request does."""
    try:
        return tool_error(await step)
    except MCPError as refusal:
        return f"error {refusal.error.code}: {refusal}"


def in_turn(asked: list[str], wanted: list[set[str]]) -> None:
    """What is asked together comes in any order."""
    left = iter(asked)
    found = [{next(left, None) for _ in together} for together in wanted]
    expect(found == wanted and next(left, None) is None, f"asked {asked}, wanted {wanted}")


async def check_answers(report: Report, server: Server) -> None:
    """Each tool, the prompt and the template, with a user who answers everything."""
    user = Answering()
    async with user.at(server) as client:

        async def listed() -> str:
            names = {one["name"] for one in await client.all("tools", "tools")}
            asking = {name for name in names if name.startswith(tool(""))}
            expect(asking == {tool(kind) for kind in ASKED}, f"listed {sorted(asking)}")
            return f"{len(asking)} of {len(names)} tools ask"

        await report.check("every tool that asks", listed)
        for kind, (wanted, answer) in ASKED.items():

            async def answered(kind: str = kind, wanted: Any = wanted, answer: str = answer) -> str:
                user.asked.clear()
                right(await client.call_tool(tool(kind)), answer)
                in_turn(user.asked, wanted)
                return f"{', '.join(user.asked) or 'nothing'}: {answer}"

            await report.check(f"{kind}, accepted", answered)

        async def prompt() -> str:
            user.asked.clear()
            right(await client.get_prompt(tool("prompt")), "Consider this context: tides")
            in_turn(user.asked, [{"What is the context?"}])
            return "Consider this context: tides"

        async def template() -> str:
            user.asked.clear()
            right(await client.read_resource(TEMPLATE), "7 is about tides")
            in_turn(user.asked, [{"What is 7 about?"}])
            return "7 is about tides"

        async def at_once() -> str:
            kinds = list(ASKED) * 3
            found = await asyncio.gather(*(client.call_tool(tool(kind)) for kind in kinds))
            for kind, result in zip(kinds, found):
                right(result, ASKED[kind][1])
            return f"{len(found)} answers, each to its call"

        await report.check("prompt, accepted", prompt)
        await report.check("template, accepted", template)
        await report.check("many calls at the same time", at_once)


async def check_together(report: Report, server: Server) -> None:
    """Questions that belong together go out together: here none is answered before all have come."""
    for kind in ("multiple_inputs", "capabilities"):

        async def waited(kind: str = kind) -> str:
            user = Answering()
            async with user.at(server) as client:
                user.gate = lambda: client.received.until(3, *REQUESTS)
                return right(await client.call_tool(tool(kind)), ASKED[kind][1])

        await report.check(f"{kind}, answered once all is asked", waited)


async def check_refusals(report: Report, server: Server) -> None:
    """A user who declines or cancels: a tool ends in a tool error, a prompt or a resource in an error."""
    for action, said in REFUSALS.items():
        for kind in [*FORMS, "url"]:

            async def no(kind: str = kind, action: str = action, said: str = said) -> str:
                async with Answering(action).at(server) as client:
                    return tool_error(await client.call_tool(tool(kind)), said)

            await report.check(f"{kind}, {action}", no)

        async def second(action: str = action, said: str = said) -> str:
            user = Answering("accept", action)
            async with user.at(server) as client:
                result = await client.call_tool(tool("multi_round"))
            expect(user.asked == STEPS, f"asked {user.asked}")
            return tool_error(result, said)

        async def prompt(action: str = action, said: str = said) -> str:
            async with Answering(action).at(server) as client:
                why = await error(client.get_prompt(tool("prompt")), DECLINED)
            expect(said in why, why)
            return why

        async def template(action: str = action, said: str = said) -> str:
            async with Answering(action).at(server) as client:
                why = await error(client.read_resource(TEMPLATE), DECLINED)
            expect(said in why, why)
            return why

        await report.check(f"multi_round, {action} the second question", second)
        await report.check(f"prompt, {action}", prompt)
        await report.check(f"template, {action}", template)


async def check_misfits(report: Report, server: Server) -> None:
    """Answers that do not fit their form, and a client that fails to answer."""

    async def once() -> str:
        user = Answering({"name": 7})
        async with user.at(server) as client:
            right(await client.call_tool(tool("multi_round")), ASKED["multi_round"][1])
        first, again, *rest = user.asked
        expect(first == STEPS[0] and again != first and rest == STEPS[1:], f"asked {user.asked}")
        return again

    async def forever() -> str:
        user = Answering(*([{"name": 7}] * 50))
        async with user.at(server) as client:
            why = await either_error(client.call_tool(tool("multi_round")))
        expect(1 < len(user.asked) <= 1 + AGAIN, f"asked {len(user.asked)} times")
        return f"after {len(user.asked)} times: {why}"

    async def failing() -> str:
        user = Answering({"code": -32603, "message": "the terminal is gone"})
        async with user.at(server) as client:
            why = await either_error(client.call_tool(tool("multi_round")))
            right(await client.call_tool(tool("elicitation")), ASKED["elicitation"][1])
        return why

    await report.check("an answer that does not fit is asked for again", once)
    await report.check("answers that never fit come to an end", forever)
    await report.check("a client that fails to answer", failing)


async def check_capabilities(report: Report, server: Server) -> None:
    """Clients that can be asked some things only. These clients cannot declare forms without URLs."""

    def some(*can: str) -> User:
        user, partial = Answering(), User()
        for one in can:
            setattr(partial, one, getattr(user, one))
        return partial

    def call(wanted: str, *can: str) -> Step:
        async def step() -> str:
            async with connect(server, some(*can), HANDSHAKE) as client:
                return right(await client.call_tool(tool("capabilities")), wanted)

        return step

    nothing = "name: None, model: None, roots: None"
    forms = 'name: Some("Ada"), model: None, roots: None'
    model = 'name: None, model: Some("Paris"), roots: None'
    roots = "name: None, model: None, roots: Some(2)"
    await report.check("capabilities, none declared", call(nothing))
    await report.check("capabilities, forms", call(forms, "elicit"))
    await report.check("capabilities, sampling", call(model, "sample"))
    await report.check("capabilities, roots", call(roots, "roots"))

    for kind in ["elicitation", "sampling", "list_roots", "url", "multi_round"]:

        async def cannot(kind: str = kind) -> str:
            async with connect(server, None, HANDSHAKE) as client:
                why = await either_error(client.call_tool(tool(kind)))
                asked = client.received.of(*REQUESTS)
            expect(not asked, f"asked all the same: {asked}")
            return why

        await report.check(f"{kind}, nothing declared", cannot)


async def check_stateless(report: Report, server: Server) -> None:
    """Without a session nobody can be asked: an error has to name the ways out."""
    user = Answering()
    async with user.at(server) as client:

        def helpful(why: str) -> str:
            expect(REVISION in why and "session" in why, f"neither {REVISION} nor a session: {why}")
            expect(not user.asked, f"asked {user.asked}")
            return why

        for kind in ASKED:

            async def refused(kind: str = kind) -> str:
                try:
                    return helpful(await either_error(client.call_tool(tool(kind))))
                except Mismatch:
                    # These need not ask: what they answer is theirs to say.
                    if kind not in NEED_NOT_ASK:
                        raise
                    return text(await client.call_tool(tool(kind)))

            await report.check(f"{kind}, without a session", refused)

        async def prompt() -> str:
            return helpful(await error(client.get_prompt(tool("prompt"))))

        async def template() -> str:
            return helpful(await error(client.read_resource(TEMPLATE)))

        await report.check("prompt, without a session", prompt)
        await report.check("template, without a session", template)


async def main() -> int:
    flag, server = command_line(__doc__)
    report = Report()
    with_session = (check_answers, check_together, check_refusals, check_misfits, check_capabilities)
    for checks in (check_stateless,) if flag == "--stateless" else with_session:
        try:
            await checks(report, server)
        except Exception as error:  # the connection itself
            report.fail("connection", error)

    async def older() -> str:
        return nothing_newer()

    await report.check("nothing of 2026-07-28 on the wire", older)
    return report.conclude()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
