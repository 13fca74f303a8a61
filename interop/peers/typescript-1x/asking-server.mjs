// A server on the TypeScript SDK of the handshake era whose tools, prompt and resource stop and ask.
//
//     asking-server.mjs            listens on http://127.0.0.1:$PORT/mcp, with sessions, and says so
//     asking-server.mjs --stdio    serves standard input and output
//
// `asking-client` drives it. It offers what the servers on the newer SDKs offer, under the same names and with the
// same answers, as requests to the client while the call is under way. What is different in this era:
//
// - There are no rounds and no state. `no_state` has none to send; `wait` and `wait_and_ask` ping the client where
//   the others send a round without a question.
// - A call cannot be taken by hand, one request at a time: the server waits for its answers.
// - What the client did not declare is not asked: the call ends in a tool error.
// - `endless` has enough after a hundred questions: nobody but the client can stop it before.
//
// Two tools are here only, as in the Python server of this era: `visit_first` refuses with -32042 until somebody was
// sent to its page, and `roots_apart` asks on the stream of the session, not on that of the call, as this SDK does
// unless it is told.

import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  CreateMessageResultSchema,
  EmptyResultSchema,
  ListRootsResultSchema,
  UrlElicitationRequiredError
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

import { CAPITAL, NAME, PAGE, SURVEY, schema, sorted } from './questions.mjs';
import { serve } from './serving.mjs';

const PATIENCE_MS = 10_000;
const ENOUGH = 100;

/** The user did not answer. With a code of its own it is the error of a prompt or a resource as it stands. */
class Refused extends Error {
  code = -32000;
}

// Sessions that have opened their stream: whatever is sent on it before gets lost.
const listening = new Map();

function listens(sessionId) {
  if (!listening.has(sessionId)) listening.set(sessionId, Promise.withResolvers());
  return listening.get(sessionId);
}

/** What can be asked in the course of a request, on its stream. */
function questions({ server }, { requestId, sessionId, sendRequest }) {
  const related = { relatedRequestId: requestId };
  const elicit = async (key, params) => {
    const { action, content } = await server.elicitInput(params, related);
    if (action !== 'accept') throw new Refused(`${key}: ${action}`);
    return content ?? {};
  };
  const form = (key, message, properties) => elicit(key, { message, requestedSchema: schema(properties) });
  return {
    form,
    name: async () => (await form('name', 'What is your name?', NAME)).name,
    model: async () => {
      const request = { method: 'sampling/createMessage', params: CAPITAL };
      return (await sendRequest(request, CreateMessageResultSchema)).content.text;
    },
    roots: async () => (await sendRequest({ method: 'roots/list' }, ListRootsResultSchema)).roots,
    rootsApart: async () => {
      if (sessionId) await soon(listens(sessionId).promise);
      return (await server.listRoots()).roots;
    },
    page: async (elicitationId) => {
      await elicit('consent', { mode: 'url', ...PAGE, elicitationId });
      await server.createElicitationCompletionNotifier(elicitationId, related)();
    },
    ping: () => sendRequest({ method: 'ping' }, EmptyResultSchema)
  };
}

function soon(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Refused('the client has opened no stream for the session')), PATIENCE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const counted = (roots) => `${roots.length} roots: ${roots.map((root) => root.uri).join(', ')}`;

const TOOLS = {
  sample: async (ask) => `the model said: ${await ask.model()}`,

  roots: async (ask) => counted(await ask.roots()),

  roots_apart: async (ask) => counted(await ask.rootsApart()),

  async together(ask) {
    const [name, said, roots] = await Promise.all([ask.name(), ask.model(), ask.roots()]);
    return `${name}: ${said} (${roots.length} roots)`;
  },

  async rounds(ask) {
    const name = await ask.name();
    const properties = { colour: { type: 'string' } };
    const { colour } = await ask.form('colour', `${name}, what is your favourite colour?`, properties);
    return `${name} likes ${colour}`;
  },

  survey: async (ask) => sorted(await ask.form('survey', 'Please fill this in', SURVEY)),

  no_state: async (ask) => `${await ask.name()}, without state`,

  async visit(ask) {
    await ask.page('visit-7');
    return 'thank you for the visit';
  },

  async wait(ask) {
    for (let waited = 0; waited < 3; waited += 1) await ask.ping();
    return 'ready after 3 rounds';
  },

  async wait_and_ask(ask) {
    await ask.ping();
    const name = await ask.name();
    await ask.ping();
    return `named ${name}, after all`;
  },

  async endless(ask) {
    for (let number = 1; number <= ENOUGH; number += 1) {
      await ask.form('more', `Question ${number}`, { ok: { type: 'boolean' } });
    }
    return 'enough';
  }
};

// Whoever was sent to the page of `visit_first`.
const sent = new Set();

function newServer() {
  const server = new McpServer({ name: 'asking-typescript-1x', version: '1.0.0' }, { enforceStrictCapabilities: true });
  const text = (said) => ({ content: [{ type: 'text', text: said }] });

  for (const [name, answer] of Object.entries(TOOLS)) {
    const run = async (extra) => text(await answer(questions(server, extra)));
    server.registerTool(name, { description: 'Stops and asks' }, run);
  }
  server.registerTool(
    'greet',
    { description: 'Asks for a name', inputSchema: { greeting: z.string().optional() } },
    async ({ greeting = 'Hello' }, extra) => text(`${greeting}, ${await questions(server, extra).name()}!`)
  );
  server.registerTool(
    'visit_first',
    {
      description: 'Answers only those who were sent to its page before; `id` says who that is',
      inputSchema: { id: z.string() }
    },
    async ({ id }) => {
      if (sent.has(id)) return text('thank you for the visit');
      sent.add(id);
      throw new UrlElicitationRequiredError([{ mode: 'url', ...PAGE, elicitationId: `visit-first-${id}` }]);
    }
  );

  const askTopic = async (extra, of) => {
    const properties = { topic: { type: 'string' } };
    return (await questions(server, extra).form('topic', `What is ${of} about?`, properties)).topic;
  };
  server.registerPrompt(
    'topic',
    { description: 'Asks what to write about', argsSchema: { kind: z.string() } },
    async ({ kind }, extra) => {
      const said = `Write a ${kind} about ${await askTopic(extra, `the ${kind}`)}`;
      return { messages: [{ role: 'user', content: { type: 'text', text: said } }] };
    }
  );
  server.registerResource(
    'note',
    new ResourceTemplate('note://{id}', { list: undefined }),
    { description: 'Asks what the note is about', mimeType: 'text/plain' },
    async (uri, { id }, extra) => {
      const said = `Note ${id} about ${await askTopic(extra, `note ${id}`)}`;
      return { contents: [{ uri: uri.href, mimeType: 'text/plain', text: said }] };
    }
  );
  return server;
}

await serve(newServer, (sessionId) => listens(sessionId).resolve());
