// A server on the published TypeScript SDK that wants tokens of `ISSUER`: it serves the metadata of the resource, and checks
// tokens by `requireBearerAuth`. `PORT` is its port.

import {
  McpServer,
  OAuthError,
  OAuthErrorCode,
  createMcpHandler,
  getOAuthProtectedResourceMetadataUrl,
  oauthMetadataResponse,
  requireBearerAuth
} from '@modelcontextprotocol/server';
import { createRemoteJWKSet, jwtVerify } from 'jose';

import { listen } from './web.mjs';

const { ISSUER, PORT } = process.env;
const resource = new URL(`http://127.0.0.1:${PORT}/mcp`);
const metadata = await (await fetch(`${ISSUER}/.well-known/oauth-authorization-server`)).json();
const keys = createRemoteJWKSet(new URL(metadata.jwks_uri));

const verifier = {
  async verifyAccessToken(token) {
    const { payload } = await jwtVerify(token, keys, { issuer: ISSUER }).catch((error) => {
      throw new OAuthError(OAuthErrorCode.InvalidToken, error.message);
    });
    return {
      token,
      clientId: payload.client_id,
      scopes: payload.scope.split(' '),
      expiresAt: payload.exp,
      resource: new URL(payload.aud),
      extra: { subject: payload.sub }
    };
  }
};
const gate = requireBearerAuth({
  verifier,
  requiredScopes: ['mcp:read'],
  expectedResource: resource,
  resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource)
});

const handler = createMcpHandler(() => {
  const server = new McpServer({ name: 'guarded-typescript', version: '1.0.0' });
  server.registerTool('whoami', { description: 'Names the caller' }, (ctx) => {
    const { authInfo } = ctx.http ?? ctx;
    return { content: [{ type: 'text', text: authInfo.extra.subject }] };
  });
  return server;
});

async function answer(request) {
  const options = { oauthMetadata: metadata, resourceServerUrl: resource, scopesSupported: ['mcp:read'] };
  const found = oauthMetadataResponse(request, options);
  if (found) return found;
  const authInfo = await gate(request);
  return authInfo instanceof Response ? authInfo : handler.fetch(request, { authInfo });
}

listen(answer, Number(PORT));
