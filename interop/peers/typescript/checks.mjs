// What the scripts here share: counting checks, and connecting to the server they are told to.

import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

export const REVISION = '2026-07-28';
export const MISSING_CAPABILITY = -32021;
export const INVALID_PARAMS = -32602;
const STEP_MS = 20_000;

let passed = 0;
let failed = 0;

export async function check(name, step) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${STEP_MS} ms`)), STEP_MS);
  });
  try {
    console.log(`ok    ${name}: ${oneLine(await Promise.race([step(), late]))}`);
    passed += 1;
  } catch (error) {
    console.log(`FAIL  ${name}: ${error.code === undefined ? '' : `${error.code} `}${oneLine(error.message)}`);
    failed += 1;
  } finally {
    clearTimeout(timer);
  }
}

const oneLine = (said) => String(said).split(/\s+/).join(' ');

export function expect(condition, what) {
  if (!condition) throw new Error(what);
}

/** The request must end in a JSON-RPC error, of that code if one is given. */
export async function refusal(request, code) {
  let result;
  try {
    result = await request();
  } catch (error) {
    expect(error instanceof ProtocolError, `not a JSON-RPC error: ${error}`);
    expect(code === undefined || error.code === code, `wanted error ${code}, got ${error.code}: ${error.message}`);
    return `error ${error.code}: ${error.message}`;
  }
  throw new Error(`wanted a JSON-RPC error, got ${JSON.stringify(result)}`);
}

function transport([kind, first, ...rest]) {
  if (kind === 'http' && first) return new StreamableHTTPClientTransport(new URL(first));
  if (kind === 'stdio' && first) return new StdioClientTransport({ command: first, args: rest });
  console.error('usage: http URL | stdio COMMAND [ARGUMENT ...]');
  process.exit(2);
}

/** A client for the server named on the command line. Without a pin it would speak the handshake era. */
export function newClient(capabilities, more = {}) {
  const options = { capabilities, versionNegotiation: { mode: { pin: REVISION } }, ...more };
  return new Client({ name: 'roundtrip-interop', version: '1.0.0' }, options);
}

export async function connect(client) {
  await client.connect(transport(process.argv.slice(2)), { timeout: STEP_MS });
  const version = client.getNegotiatedProtocolVersion();
  expect(version === REVISION, `negotiated ${version}`);
}

/** Prints the last line and ends; the exit status is 0 only when something passed and nothing failed. */
export function conclude() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(passed > 0 && failed === 0 ? 0 : 1);
}
