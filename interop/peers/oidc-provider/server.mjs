// An authorization server on oidc-provider: `PORT` is its port, and it signs anybody in who has a login and a password.
//
// Clients register by request, by a document that they host, or are those below. Access tokens are for the resource that was
// asked for: JWTs, or with `OPAQUE` texts that the client `guarded` introspects. Refresh tokens rotate. For the checks,
// `/-/exchanges` counts what was exchanged, and `/-/seconds/N` sets the life of the access tokens that are issued from then on.
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';

const port = Number(process.env.PORT);
const issuer = `http://127.0.0.1:${port}`;
const callback = 'http://127.0.0.1/callback';
const scopes = ['mcp:read', 'mcp:write'];
const format = process.env.OPAQUE ? 'opaque' : 'jwt';
let seconds = 300;
const exchanges = {};

const code = { grant_types: ['authorization_code', 'refresh_token'], redirect_uris: [callback], application_type: 'native' };
const machine = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };
const clients = [
  { client_id: 'registered', token_endpoint_auth_method: 'none', ...code },
  { client_id: 'confidential', client_secret: 'confidential-secret', ...code },
  { client_id: 'guarded', client_secret: 'guarded-secret', ...machine, grant_types: [] },
  { client_id: 'machine', client_secret: 'machine-secret', ...machine },
  { client_id: 'poster', client_secret: 'poster-secret', token_endpoint_auth_method: 'client_secret_post', ...machine },
  {
    client_id: 'device',
    token_endpoint_auth_method: 'none',
    application_type: 'native',
    redirect_uris: [],
    response_types: [],
    grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
  },
];
// The key of the client `keyed` is made anew, and its private half written where that client looks for it.
if (process.env.MACHINE_KEY) {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(process.env.MACHINE_KEY, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  const jwks = { keys: [{ ...publicKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig' }] };
  clients.push({ client_id: 'keyed', token_endpoint_auth_method: 'private_key_jwt', jwks, ...machine });
}

// The document of a client is at an https URL that does not exist: what `CLIENT_DOCUMENT` has is got in place of it.
async function documents(url, options) {
  if (String(url) !== process.env.CLIENT_METADATA) return fetch(url, options);
  const document = readFileSync(process.env.CLIENT_DOCUMENT, 'utf8');
  return new Response(document, { headers: { 'content-type': 'application/json' } });
}

const provider = new Provider(issuer, {
  clients,
  fetch: documents,
  scopes: ['openid', 'offline_access', ...scopes],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
  issueRefreshToken: async (_, client) => client.grantTypeAllowed('refresh_token'),
  features: {
    clientCredentials: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    deviceFlow: { enabled: true },
    devInteractions: { enabled: true },
    dPoP: { enabled: true },
    introspection: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: scopes.join(' '), audience: resource, accessTokenFormat: format, accessTokenTTL: seconds,
      }),
    },
    revocation: { enabled: true },
  },
});
provider.on('grant.success', (ctx) => {
  const type = ctx.oidc.params.grant_type;
  exchanges[type] = (exchanges[type] ?? 0) + 1;
});
for (const event of ['server_error', 'grant.error', 'authorization.error', 'registration_create.error']) {
  provider.on(event, (_, error) => console.error(event, error.error_description ?? error));
}

const answers = provider.callback();
const server = createServer((request, response) => {
  const [, control, value] = /^\/-\/(\w+)\/?(\d*)$/.exec(request.url) ?? [];
  if (!control) return answers(request, response);
  if (control === 'seconds') seconds = Number(value);
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(exchanges));
});
server.listen(port, '127.0.0.1', () => console.log(`listening on ${issuer}`));
