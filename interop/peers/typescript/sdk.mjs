// A client of the published TypeScript SDK: at 2026-07-28, or with a handshake.

import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { HANDSHAKE, REVISION, Wire } from './wire.mjs';

/** What a JSON-RPC error is thrown as. */
export const Refusal = ProtocolError;

/** What a server of the handshake era says of a resource that is not there: -32002, for which this SDK puts its own. */
export const OLD_NOT_FOUND = -32602;

/** What a server of the handshake era says of a tool that only runs as a task, called without `task`. */
export const OLD_NEEDS_TASK = -32601;

/** A client that has not connected yet; `received` has what the server sends. */
export function newClient(capabilities, { version = REVISION, ...more } = {}) {
  // Without a pin it speaks the handshake era.
  const pin = version === HANDSHAKE ? {} : { versionNegotiation: { mode: { pin: version } } };
  const client = new Client({ name: 'roundtrip-interop', version: '1.0.0' }, { capabilities, ...pin, ...more });
  return Object.assign(client, { received: new Wire() });
}

export function newTransport([kind, first, ...rest]) {
  return kind === 'http'
    ? new StreamableHTTPClientTransport(new URL(first))
    : new StdioClientTransport({ command: first, args: rest });
}
