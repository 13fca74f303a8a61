// A published TypeScript client that signs in to our server: `sign-in.mjs http URL`. `BROWSER` is the command that signs the
// person in. One line a check; the last line says `N passed, M failed`.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

import { check, conclude, expect, target } from './checks.mjs';
import { newClient } from './sdk.mjs';
import { HANDSHAKE, REVISION } from './wire.mjs';

const url = new URL(target[1]);
const CALLBACK = 'http://127.0.0.1/callback';
const run = promisify(execFile);

/** Keeps what the SDK gives it in memory; the browser ends at a URL that the person copies. */
class Person {
  visits = 0;
  constructor(kept = {}) {
    this.kept = kept;
  }
  redirectUrl = CALLBACK;
  clientMetadata = {
    client_name: 'TypeScript',
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: 'native'
  };
  clientInformation = () => this.kept.client;
  saveClientInformation = (client) => void (this.kept.client = client);
  tokens = () => this.kept.tokens;
  saveTokens = (tokens) => void (this.kept.tokens = tokens);
  codeVerifier = () => this.kept.verifier;
  saveCodeVerifier = (verifier) => void (this.kept.verifier = verifier);
  discoveryState = () => this.kept.discovery;
  saveDiscoveryState = (state) => void (this.kept.discovery = state);

  async redirectToAuthorization(page) {
    this.visits += 1;
    const [program, ...words] = process.env.BROWSER.split(' ');
    const { stdout } = await run(program, [...words, page.href], { timeout: 15_000 });
    this.cameBack = new URL(stdout.trim());
  }
}

const text = (result) => result.content.map((block) => block.text).join('');

/** Does something that may need a sign-in, and does it again after that. */
async function signedIn(person, transport, step) {
  try {
    return await step();
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await transport().finishAuth(person.cameBack.searchParams);
    return step();
  }
}

/** A client that signs in as it connects, and wherever it is refused. */
async function signIn(person, version, asked = []) {
  const client = newClient({ elicitation: {} }, { version });
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    asked.push(params.message);
    return { action: 'accept', content: { ok: true } };
  });
  let transport;
  const connect = () => {
    transport = new StreamableHTTPClientTransport(url, { authProvider: person });
    return client.connect(transport);
  };
  await signedIn(person, () => transport, connect);
  const call = async (name) =>
    text(await signedIn(person, () => transport, () => client.callTool({ name, arguments: {} })));
  return { client, call };
}

for (const version of [REVISION, HANDSHAKE]) {
  await check(`signs in, ${version}`, async () => {
    const person = new Person();
    const { client, call } = await signIn(person, version);
    const said = await call('whoami');
    expect(said === 'alice', `the server says that ${said} is calling`);
    expect(person.visits === 1, `${person.visits} visits of the browser`);
    expect(client.getNegotiatedProtocolVersion() === version, client.getNegotiatedProtocolVersion());
    await client.close();
    return 'as alice';
  });
  await check(`steps up, ${version}`, async () => {
    // A client of this SDK that registers itself asks for the scopes of its first request alone, and gets no others later.
    const person = new Person({ client: { client_id: 'registered', issuer: process.env.ISSUER } });
    const { client, call } = await signIn(person, version);
    const said = await call('write');
    expect(said === 'written by alice', said);
    expect(person.visits === 2, `${person.visits} visits of the browser`);
    await client.close();
    return said;
  });
}
await check('steps up in the middle of a flow', async () => {
  const [person, asked] = [new Person({ client: { client_id: 'registered', issuer: process.env.ISSUER } }), []];
  const { client, call } = await signIn(person, REVISION, asked);
  const said = await call('publish');
  expect(said.startsWith('true true by alice'), said);
  expect(person.visits === 2, `${person.visits} visits of the browser`);
  await client.close();
  return `${said}; asked ${asked.join(' ')}`;
});
conclude();
