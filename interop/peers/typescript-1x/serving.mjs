// Serves a server of the TypeScript SDK of the handshake era: over stdio (`--stdio`), or over HTTP with sessions.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

const sessions = new Map();

/** A server and a transport for every session. */
async function newTransport(newServer) {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport)
  });
  transport.onclose = () => sessions.delete(transport.sessionId);
  await newServer().connect(transport);
  return transport;
}

async function answer(newServer, listens, incoming, outgoing) {
  const id = incoming.headers['mcp-session-id'];
  const transport = id === undefined ? await newTransport(newServer) : sessions.get(id);
  if (!transport) {
    outgoing.writeHead(404, { 'content-type': 'application/json' });
    const error = { code: -32001, message: 'Session not found' };
    outgoing.end(JSON.stringify({ jsonrpc: '2.0', error, id: null }));
    return;
  }
  if (incoming.method === 'GET') {
    const { writeHead } = outgoing;
    outgoing.writeHead = (status, ...rest) => {
      if (status === 200) listens?.(id);
      return writeHead.call(outgoing, status, ...rest);
    };
  }
  await transport.handleRequest(incoming, outgoing);
}

/** Serves as the command line says. `listens` hears of every session that has opened its stream. */
export async function serve(newServer, listens) {
  if (process.argv.includes('--stdio')) return newServer().connect(new StdioServerTransport());
  const http = createServer((incoming, outgoing) => {
    answer(newServer, listens, incoming, outgoing).catch((error) => {
      console.error(error);
      outgoing.destroy();
    });
  });
  http.listen(Number(process.env.PORT ?? 3005), '127.0.0.1', () => {
    console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`);
  });
}
