// A client of the TypeScript SDK of the handshake era, with the methods of the newer one as far as they differ:
// `list-and-call.mjs` and `answer-requests.mjs` run on both.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  McpError
} from '@modelcontextprotocol/sdk/types.js';

import { HANDSHAKE, Wire } from './wire.mjs';

const SCHEMAS = {
  'elicitation/create': ElicitRequestSchema,
  'sampling/createMessage': CreateMessageRequestSchema,
  'roots/list': ListRootsRequestSchema
};

/** What a JSON-RPC error is thrown as. */
export const Refusal = McpError;

/** What a server of the handshake era says of a resource that is not there. */
export const OLD_NOT_FOUND = -32002;

class Older extends Client {
  received = new Wire();

  setRequestHandler(method, answer) {
    super.setRequestHandler(SCHEMAS[method] ?? method, answer);
  }

  callTool(params, options) {
    return super.callTool(params, undefined, options);
  }

  getNegotiatedProtocolVersion() {
    return this.received.greeting()?.protocolVersion;
  }
}

/** A tool that only runs as a task is refused by the client itself, without `task`. */
export const OLD_NEEDS_TASK = -32600;

/** A client that has not connected yet; `received` has what the server sends. */
export function newClient(capabilities, { version = HANDSHAKE, ...more } = {}) {
  if (version !== HANDSHAKE) throw new Error(`this SDK cannot speak ${version}`);
  return new Older({ name: 'roundtrip-interop', version: '1.0.0' }, { capabilities, ...more });
}

export function newTransport([kind, first, ...rest]) {
  return kind === 'http'
    ? new StreamableHTTPClientTransport(new URL(first))
    : new StdioClientTransport({ command: first, args: rest });
}
