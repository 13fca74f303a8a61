"""Call tools of two instances of a server behind a load balancer that knows nothing of sessions.

    fleet.py [--handshake] http URL

`INSTANCES` has the names and URLs of the instances. One line a check; the last line says `N passed, M failed`.
"""

from __future__ import annotations

import asyncio
import sys

from checks import HANDSHAKE, REVISION, Report, command_line, expect
from instances import check_fleet
from sdk import Connected, connect

CHANGED = "notifications/tools/list_changed"


async def main() -> int:
    flag, server = command_line(__doc__)
    report = Report()

    async def closes() -> str:
        async with connect(server, version=HANDSHAKE if flag else REVISION) as client:
            return f"{client.version}, {client.name}"

    try:
        async with connect(server, version=HANDSHAKE if flag else REVISION) as client:
            await check(report, client, flag is not None)
    except Exception as error:  # the connection itself
        report.fail("connection", error)
    await report.check("a client that comes and goes", closes)
    return report.conclude()


async def check(report: Report, client: Connected, has_stream: bool) -> None:
    async def call(tool: str) -> str:
        steps: list[float] = []

        async def note(progress: float, _total: float | None, _message: str | None) -> None:
            steps.append(progress)

        result = await client.call_tool(tool, on_progress=note if tool == "count" else None)
        expect(tool != "count" or steps == [1, 2, 3], f"progress {steps}")
        return result["content"][0]["text"]

    async def changed() -> str:
        # The stream is at one of the instances: a change there is told, at whichever call it is.
        told = asyncio.create_task(client.received.until(1, CHANGED))
        while not told.done():
            await call("change")
            await asyncio.wait([told], timeout=0.05)
        return "told on the stream"

    async def listed() -> str:
        return f"{len(await client.all('tools', 'tools'))} tools"

    for _ in range(2):
        await report.check("tools/list", listed)
    if has_stream:
        await report.check("a change", changed)
    await check_fleet(report, call)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
