"""What the scripts here share: counting checks, and saying which server to talk to and how."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Awaitable, Callable

import mcp
from mcp import StdioServerParameters

# The SDK of the handshake era spells it in its own way.
MCPError = getattr(mcp, "MCPError", None) or mcp.McpError

REVISION = "2026-07-28"
# The newest revision that begins with a handshake.
HANDSHAKE = "2025-11-25"
INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
MISSING_CAPABILITY = -32021
STEP_SECONDS = 20.0

Server = str | StdioServerParameters


class Mismatch(Exception):
    """The server answered, but not as expected."""


def expect(condition: bool, what: str) -> None:
    if not condition:
        raise Mismatch(what)


def one_line(said: object) -> str:
    return " ".join(str(said).split())


class Report:
    """Counts checks and prints a line for each."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    async def check(self, name: str, step: Callable[[], Awaitable[str]]) -> None:
        try:
            said = await asyncio.wait_for(step(), STEP_SECONDS)
        except Exception as error:  # whatever went wrong, the other checks still run
            self.fail(name, error)
        else:
            self.passed += 1
            print(f"ok    {name}: {one_line(said)}", flush=True)

    def fail(self, name: str, error: Exception) -> None:
        self.failed += 1
        while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:  # how a client lets go
            error = error.exceptions[0]
        print(f"FAIL  {name}: {type(error).__name__}: {one_line(error)}", flush=True)
        if not isinstance(error, (Mismatch, MCPError, TimeoutError)):
            traceback.print_exception(error)

    def conclude(self) -> int:
        """Prints the last line; the exit status is 0 only when something passed and nothing failed."""
        print(f"{self.passed} passed, {self.failed} failed")
        return 0 if self.passed and not self.failed else 1


FLAGS = ("--handshake", "--stateless")


def command_line(usage: str | None) -> tuple[str | None, Server]:
    """How to speak, and to whom. Without a session (`--stateless`) nobody can be asked."""
    arguments = sys.argv[1:]
    flag = arguments.pop(0) if arguments and arguments[0] in FLAGS else None
    return flag, target(arguments, usage)


def target(arguments: list[str], usage: str | None) -> Server:
    match arguments:
        case ["http", url]:
            return url
        case ["stdio", command, *rest]:
            return StdioServerParameters(command=command, args=rest)
        case _:
            sys.exit(usage)
