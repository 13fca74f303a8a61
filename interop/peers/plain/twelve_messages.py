"""Play the twelve messages that SEP-2322 prints for its persistent workflow, over HTTP.

    twelve_messages.py http URL

Knows the proposal, the published table of headers, and nothing of the server: it declares no extension, and sends no header that is
not in that table (`Mcp-Name` on `tools/call`, not on `tasks/*`). Prints each pair of messages. One line a check; the last line says
`N passed, M failed`.
"""

import json
import sys
import time
import urllib.error
import urllib.request

REVISION = "2026-07-28"
PATIENCE = 20.0
RELATED = "io.modelcontextprotocol/related-task"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "twelve-messages", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}
# Named in the print by values of its own.
VARIES = {"taskId", "createdAt", "lastUpdatedAt"}


class Mismatch(Exception):
    """The server has answered, and not as printed."""


def send(url, number, method, params, shown=True):
    """Sends a printed request with the `_meta` that the print leaves out. Returns its response."""
    params = {**params, "_meta": {**META, **params.get("_meta", {})}}
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": method,
    }
    if method == "tools/call":
        headers["Mcp-Name"] = params["name"]
    posted = urllib.request.Request(url, json.dumps(request).encode(), headers, method="POST")
    try:
        with urllib.request.urlopen(posted, timeout=PATIENCE) as answer:
            kind, body = answer.headers.get_content_type(), answer.read().decode()
    except urllib.error.HTTPError as error:
        raise Mismatch(f"{method}: HTTP {error.code}: {error.read().decode()}") from None
    if kind == "text/event-stream":
        body = [line[5:] for line in body.splitlines() if line.startswith("data:")][-1]
    response = json.loads(body)
    if shown:
        print(f"--> {json.dumps(request)}")
        print(f"<-- {json.dumps(response)}", flush=True)
    return response


def compare(printed, came, where="response"):
    """Everything printed is there, with its value unless that is an id or a time."""
    if not isinstance(printed, dict):
        if printed != came:
            raise Mismatch(f"{where}: wanted {printed!r}, got {came!r}")
        return
    for name, value in printed.items():
        if not isinstance(came, dict) or name not in came:
            raise Mismatch(f"{where}: no {name} in {came!r}")
        if name in VARIES:
            if not isinstance(came[name], str):
                raise Mismatch(f"{where}.{name}: {came[name]!r}")
        elif name == "pollInterval":  # it grows with the time for which nothing has changed
            if came[name] < value:
                raise Mismatch(f"{where}.{name}: {came[name]!r}")
        else:
            compare(value, came[name], f"{where}.{name}")


def task(status, message):
    return {
        "taskId": "", "status": status, "statusMessage": message, "createdAt": "", "lastUpdatedAt": "",
        "ttl": 60000, "pollInterval": 100,
    }


def until(url, number, about, status):
    """Polls, and shows the pair of messages that has the status."""
    end = time.monotonic() + PATIENCE
    while send(url, number, "tasks/get", about, shown=False).get("result", {}).get("status") != status:
        if time.monotonic() > end:
            raise Mismatch(f"the task is not {status} after {PATIENCE} s")
        time.sleep(0.02)
    return send(url, number, "tasks/get", about)


QUESTION = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Please provide the input string to echo back",
        "requestedSchema": {
            "type": "object",
            "properties": {"input": {"type": "string"}},
            "required": ["input"],
        },
    },
}


def pairs(url):
    """Yields the name of each pair of messages, its response as printed, and the one that came."""
    call = {"name": "echo", "task": {"ttl": 60000}}
    created = send(url, 1, "tools/call", call)
    working = task("working", "Task has been created for echo tool invocation.")
    yield "1, 2: tools/call", {"id": 1, "jsonrpc": "2.0", "result": {"task": working}}, created
    name = created["result"]["task"]["taskId"]
    about, related = {"taskId": name}, {RELATED: {"taskId": name}}

    asks = task("input_required", "Input Required to Proceed call tasks/result")
    yield "3, 4: tasks/get", {"id": 2, "jsonrpc": "2.0", "result": asks}, until(url, 2, about, "input_required")

    asked = {"resultType": "input_required", "inputRequests": {"echo_input": QUESTION}}
    yield "5, 6: tasks/result", {"id": 3, "jsonrpc": "2.0", "result": asked}, send(url, 3, "tasks/result", about)

    answers = {"echo_input": {"action": "accept", "content": {"input": "Hello World!"}}}
    answered = send(url, 4, "tasks/input_response", {"inputResponses": answers, "_meta": related})
    yield "7, 8: tasks/input_response", {"id": 4, "jsonrpc": "2.0", "result": {"_meta": related}}, answered

    ended = task("completed", "Task has been completed successfully, call tasks/result")
    yield "9, 10: tasks/get", {"id": 5, "jsonrpc": "2.0", "result": ended}, until(url, 5, about, "completed")

    content = [{"type": "text", "text": "Echo: Hello World!"}]
    result = {"resultType": "complete", "isError": False, "content": content, "_meta": related}
    yield "11, 12: tasks/result", {"id": 6, "jsonrpc": "2.0", "result": result}, send(url, 6, "tasks/result", about)


def main():
    url, passed, failed = sys.argv[-1], 0, 0
    try:
        for name, printed, came in pairs(url):
            compare(printed, came)
            passed += 1
            print(f"ok    messages {name}", flush=True)
        if passed != 6:
            raise Mismatch(f"{passed} pairs, and six are printed")
    except (Mismatch, OSError, KeyError, ValueError) as error:  # the next message depends on the last
        failed += 1
        print(f"FAIL  after {passed} pairs: {type(error).__name__}: {error}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
