// A gate before a server that wants no tokens: `dpop-gate.mjs ORIGIN`, at `PORT`. It lets requests through whose access
// token is of `ISSUER`, for this resource, and bound to the key of a proof (RFC 9449) that has the gate's nonce.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { EmbeddedJWK, calculateJwkThumbprint, createRemoteJWKSet, jwtVerify } from 'jose';

import { forward } from './forward.mjs';

const { ISSUER, PORT } = process.env;
const [origin] = process.argv.slice(2);
const self = `http://127.0.0.1:${PORT}`;
const resource = `${self}/mcp`;
const metadataPath = '/.well-known/oauth-protected-resource/mcp';
const keys = createRemoteJWKSet(new URL(`${ISSUER}/jwks`));
const NONCE = 'a-nonce-of-the-gate';
const seen = new Set();

class Refusal extends Error {}

function expect(condition, error) {
  if (!condition) throw new Refusal(error);
}

async function admit({ method, url, headers }) {
  const [scheme, token] = (headers.authorization ?? '').split(' ');
  expect(scheme === 'DPoP', '');
  const { payload: claims } = await jwtVerify(token, keys, { issuer: ISSUER, audience: resource, typ: 'at+jwt' });
  const { payload: proof, protectedHeader } = await jwtVerify(headers.dpop, EmbeddedJWK, { typ: 'dpop+jwt' });
  expect(claims.cnf?.jkt === (await calculateJwkThumbprint(protectedHeader.jwk)), 'invalid_token');
  expect(proof.ath === createHash('sha256').update(token).digest('base64url'), 'invalid_dpop_proof');
  expect(proof.htm === method && proof.htu === `${self}${url}`, 'invalid_dpop_proof');
  expect(Math.abs(Date.now() / 1000 - proof.iat) < 60 && !seen.has(proof.jti), 'invalid_dpop_proof');
  expect(proof.nonce === NONCE, 'use_dpop_nonce');
  seen.add(proof.jti);
}

function refuse(error, outgoing) {
  const named = error instanceof Refusal ? error.message : 'invalid_token';
  if (!(error instanceof Refusal)) console.error(error);
  const parameters = [`resource_metadata="${self}${metadataPath}"`, 'scope="mcp:read"', 'algs="ES256"'];
  if (named) parameters.unshift(`error="${named}"`);
  if (named === 'use_dpop_nonce') outgoing.setHeader('dpop-nonce', NONCE);
  outgoing.writeHead(401, { 'www-authenticate': `DPoP ${parameters.join(', ')}` }).end();
}

const server = createServer(async (incoming, outgoing) => {
  if (incoming.url === metadataPath) {
    outgoing.setHeader('content-type', 'application/json');
    return outgoing.end(JSON.stringify({
      resource, authorization_servers: [ISSUER], scopes_supported: ['mcp:read'],
      dpop_signing_alg_values_supported: ['ES256'], dpop_bound_access_tokens_required: true,
    }));
  }
  try {
    await admit(incoming);
  } catch (error) {
    return refuse(error, outgoing);
  }
  delete incoming.headers.authorization;
  delete incoming.headers.dpop;
  forward(incoming, outgoing, origin);
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`listening on ${resource}`));
