"""A server on the published Python SDK that wants tokens of `ISSUER`, by a `TokenVerifier`. `PORT` is its port."""

from __future__ import annotations

import os
import socket

import httpx2
import jwt
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

ISSUER = os.environ["ISSUER"]
PORT = int(os.environ["PORT"])
RESOURCE = f"http://127.0.0.1:{PORT}/mcp"


class Verifier:
    """Checks signatures by the keys of the issuer; the SDK compares the resource."""

    def __init__(self) -> None:
        metadata = httpx2.get(f"{ISSUER}/.well-known/oauth-authorization-server").json()
        self.keys = jwt.PyJWKClient(metadata["jwks_uri"])

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            key = self.keys.get_signing_key_from_jwt(token)
            claims = jwt.decode(token, key.key, algorithms=["RS256"], issuer=ISSUER, options={"verify_aud": False})
        except jwt.PyJWTError:
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims["scope"].split(),
            expires_at=claims["exp"],
            resource=claims["aud"],
            subject=claims.get("sub"),
            claims=claims,
        )


server = MCPServer(
    "guarded-python",
    token_verifier=Verifier(),
    auth=AuthSettings(
        issuer_url=ISSUER, resource_server_url=RESOURCE, required_scopes=["mcp:read"], validate_token_resource=True
    ),
)


@server.tool()
def whoami() -> str:
    """Names the caller."""
    token = get_access_token()
    return token.subject if token and token.subject else "a stranger"


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", PORT))
    print(f"listening on {RESOURCE}", flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listener])
