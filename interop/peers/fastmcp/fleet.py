"""Call tools of two instances of a server behind a load balancer that knows nothing of sessions, with FastMCP's client.

    fleet.py [--handshake] http URL

`INSTANCES` has the names and URLs of the instances. One line a check; the last line says `N passed, M failed`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "python"))  # for what the SDKs' scripts share

from checks import HANDSHAKE, REVISION, Report, command_line, expect
from fastmcp import Client
from instances import check_fleet


async def main() -> int:
    flag, server = command_line(__doc__)
    report = Report()
    try:
        async with Client(server, mode="legacy" if flag else "auto") as client:
            version = HANDSHAKE if flag else REVISION
            expect(client.protocol_version == version, f"negotiated {client.protocol_version}")
            await check_fleet(report, lambda tool: call(client, tool))
    except Exception as error:  # the connection itself
        report.fail("connection", error)
    return report.conclude()


async def call(client: Client, tool: str) -> str:
    steps: list[float] = []

    async def note(progress: float, _total: float | None, _message: str | None) -> None:
        steps.append(progress)

    result = await client.call_tool(tool, progress_handler=note if tool == "count" else None)
    expect(tool != "count" or steps == [1, 2, 3], f"progress {steps}")
    return result.content[0].text


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
