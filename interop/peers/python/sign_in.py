"""A published Python client that signs in to our server: `sign_in.py http URL`. `BROWSER` is the command that signs the
person in. One line a check; the last line says `N passed, M failed`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import mcp
import mcp_types as types
from checks import HANDSHAKE, REVISION, Report, command_line, expect
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

CALLBACK = "http://127.0.0.1/callback"


class Memory:
    """Keeps what the SDK gives it."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.tokens: OAuthToken | None = None
        self.client = client

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Person:
    """Signs in with the browser, and copies the URL that it ends at."""

    visits = 0
    came_back = ""

    async def redirect(self, page: str) -> None:
        self.visits += 1
        pipe = asyncio.subprocess.PIPE
        browser = await asyncio.create_subprocess_exec(*os.environ["BROWSER"].split(" "), page, stdout=pipe)
        said, _ = await browser.communicate()
        expect(browser.returncode == 0, "the browser did not get through")
        self.came_back = said.decode().strip()

    async def callback(self) -> AuthorizationCodeResult:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.came_back).query).items()}
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))

    def provider(self, url: str, client_id: str | None) -> OAuthClientProvider:
        about = {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none", "application_type": "native"}
        known = OAuthClientInformationFull(client_id=client_id, **about) if client_id else None
        metadata = OAuthClientMetadata(client_name="Python", **about)
        return OAuthClientProvider(url, metadata, Memory(known), self.redirect, self.callback)


def text(result: Any) -> str:
    return "".join(block.text for block in result.content)


@asynccontextmanager
async def signed_in(
    person: Person, url: str, version: str, client_id: str | None = None, **answers: Any
) -> AsyncIterator[mcp.Client]:
    mode = "legacy" if version == HANDSHAKE else version
    async with httpx2.AsyncClient(auth=person.provider(url, client_id), timeout=20) as http:
        async with mcp.Client(streamable_http_client(url, http_client=http), mode=mode, **answers) as client:
            expect(client.protocol_version == version, f"negotiated {client.protocol_version}")
            yield client


async def signs_in(url: str, version: str) -> str:
    person = Person()
    async with signed_in(person, url, version) as client:
        said = text(await client.call_tool("whoami", {}))
    expect(said == "alice", f"the server says that {said} is calling")
    expect(person.visits == 1, f"{person.visits} visits of the browser")
    return "as alice"


async def steps_up(url: str, version: str) -> str:
    person = Person()
    # A client of this SDK that registers itself asks for the scopes of its first request alone, and gets no others later.
    async with signed_in(person, url, version, "registered") as client:
        await client.call_tool("whoami", {})  # a request is answered by one sign-in: for 401 or for 403
        said = text(await client.call_tool("write", {}))
    expect(said == "written by alice", said)
    expect(person.visits == 2, f"{person.visits} visits of the browser")
    return said


async def steps_up_in_a_flow(url: str) -> str:
    """The last of three rounds is refused for lack of scopes: no question is asked twice."""
    person, asked = Person(), []

    async def elicit(_context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"ok": True})

    async with signed_in(person, url, REVISION, "registered", elicitation_callback=elicit) as client:
        said = text(await client.call_tool("publish", {}))
    expect(said.startswith("true true by alice"), said)
    expect(asked == ["Begin?", "Publish?"], f"asked {asked}")
    expect(person.visits == 2, f"{person.visits} visits of the browser")
    return said


async def main() -> int:
    _, url = command_line(__doc__)
    report = Report()
    for version in [REVISION, HANDSHAKE]:
        await report.check(f"signs in, {version}", partial(signs_in, str(url), version))
        await report.check(f"steps up, {version}", partial(steps_up, str(url), version))
    await report.check("steps up in the middle of a flow", partial(steps_up_in_a_flow, str(url)))
    return report.conclude()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
