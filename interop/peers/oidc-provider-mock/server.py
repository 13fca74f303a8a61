"""An authorization server whose metadata says nothing of PKCE. `PORT` is its port."""

import os

import oidc_provider_mock
import uvicorn

port = int(os.environ["PORT"])
uvicorn.run(oidc_provider_mock.app(), host="127.0.0.1", port=port, interface="wsgi", log_level="warning")
