"""An authorization server on Canaille, in memory. `PORT` is its port; the user `alice` has the password `password`.

Its tokens are opaque, and for clients in place of resources: a server is the client `guarded`, which may introspect. The
administrator adds it to the audience of every client that registers itself. For the checks, `/-/exchanges` counts what was
exchanged, and `/-/seconds/N` sets the life of the tokens that are issued from then on.
"""

import io
import json
import logging
import os
import re
from collections import Counter
from urllib.parse import parse_qs

import canaille
from canaille.app import models
from canaille.backends import Backend
from canaille.oidc.provider import authorization
from werkzeug.serving import run_simple
from werkzeug.wrappers import Request, Response

PORT = int(os.environ["PORT"])
ISSUER = f"http://127.0.0.1:{PORT}"
CALLBACK = "http://127.0.0.1/callback"
SCOPES = ["mcp:read", "mcp:write"]

app = canaille.create_app(
    {
        "SECRET_KEY": "of no use to anybody else",
        "SERVER_NAME": f"127.0.0.1:{PORT}",
        "PREFERRED_URL_SCHEME": "http",
        "SESSION_COOKIE_SECURE": False,
        "CANAILLE": {"DATABASE": "memory", "JAVASCRIPT": False, "HTMX": False},
        "CANAILLE_OIDC": {"DYNAMIC_CLIENT_REGISTRATION_OPEN": True, "REQUIRE_NONCE": False},
    }
)
exchanges = Counter()
seconds = 300


def client(**settings):
    made = models.Client(client_name=settings["client_id"], response_types=["code"], **settings)
    Backend.instance.save(made)
    made.audience = [made]
    Backend.instance.save(made)
    return made


with app.app_context(), Backend.instance.session():
    alice = models.User(user_name="alice", formatted_name="Alice", family_name="A", emails=["alice@example.com"])
    alice.password = "password"
    Backend.instance.save(alice)
    basic = "client_secret_basic"
    guarded = client(client_id="guarded", client_secret="guarded-secret", token_endpoint_auth_method=basic)
    registered = client(
        client_id="registered",
        redirect_uris=[CALLBACK],
        grant_types=["authorization_code", "refresh_token"],
        scope=SCOPES,
        token_endpoint_auth_method="none",
    )
    registered.audience = [registered, guarded]
    Backend.instance.save(registered)

authorization._token_generators["default"].expires_generator = lambda client, grant_type: seconds


def admit(client_id):
    """Lets a client that has registered itself get tokens for the server."""
    with app.app_context(), Backend.instance.session():
        made = Backend.instance.get(models.Client, client_id=client_id)
        made.audience = [made, Backend.instance.get(models.Client, client_id="guarded")]
        Backend.instance.save(made)


def control(path):
    """Answers the checks."""
    global seconds
    if found := re.fullmatch(r"/-/seconds/(\d+)", path):
        seconds = int(found[1])
    return Response(json.dumps(exchanges), mimetype="application/json")


@Request.application
def serve(request):
    if request.path.startswith("/-/"):
        return control(request.path)
    sent = request.get_data(cache=True)
    request.environ["wsgi.input"] = io.BytesIO(sent)
    response = Response.from_app(app, request.environ)
    if response.status_code < 300 and request.path == "/oauth/token":
        exchanges[parse_qs(sent.decode())["grant_type"][0]] += 1
    if response.status_code < 300 and request.path == "/oauth/register":
        admit(json.loads(response.get_data())["client_id"])
    return response


logging.getLogger("werkzeug").setLevel(logging.ERROR)
print(f"listening on {ISSUER}", flush=True)
run_simple("127.0.0.1", PORT, serve, threaded=True)
