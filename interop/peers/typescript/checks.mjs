// What the scripts here share: counting checks, and connecting to the server they are told to.

import { Refusal, newTransport } from './sdk.mjs';
import { HANDSHAKE, REVISION } from './wire.mjs';

export const MISSING_CAPABILITY = -32021;
export const INVALID_PARAMS = -32602;
export const METHOD_NOT_FOUND = -32601;
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
    expect(error instanceof Refusal, `not a JSON-RPC error: ${error}`);
    expect(code === undefined || error.code === code, `wanted error ${code}, got ${error.code}: ${error.message}`);
    return `error ${error.code}: ${error.message}`;
  }
  throw new Error(`wanted a JSON-RPC error, got ${JSON.stringify(result)}`);
}

const USAGE = 'usage: [--handshake | --stateless] http URL | [--handshake] stdio COMMAND [ARGUMENT ...]';

/** What the command line says: how to speak, and to whom. Without a session (`--stateless`) nobody can be asked. */
export const { flag, target } = (() => {
  const words = process.argv.slice(2);
  const flag = ['--handshake', '--stateless'].includes(words[0]) ? words.shift() : undefined;
  if (['http', 'stdio'].includes(words[0]) && words.length > 1) return { flag, target: words };
  console.error(USAGE);
  process.exit(2);
})();

/** Connects to the server named on the command line, at the revision wanted. Gives the transport. */
export async function connect(client, version = flag ? HANDSHAKE : REVISION) {
  const transport = client.received.record(newTransport(target));
  await client.connect(transport, { timeout: STEP_MS });
  const negotiated = client.getNegotiatedProtocolVersion();
  expect(negotiated === version, `negotiated ${negotiated}`);
  return transport;
}

/** Prints the last line and ends; the exit status is 0 only when something passed and nothing failed. */
export function conclude() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(passed > 0 && failed === 0 ? 0 : 1);
}
