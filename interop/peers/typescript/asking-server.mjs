// A server on the published TypeScript SDK whose tools, prompt and resource stop and ask.
//
//     asking-server.mjs            listens on http://127.0.0.1:$PORT/mcp, and says so
//     asking-server.mjs --stdio    serves standard input and output
//
// `asking-client` drives it. The Python server beside it offers the same, under the same names and with the
// same answers. This SDK has no way of asking but to build each round by hand, and it carries no answers from
// round to round: what a later round needs goes into the state, which a codec of the SDK signs.

import { randomBytes } from 'node:crypto';

import {
  McpServer,
  ProtocolError,
  ResourceTemplate,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  inputResponse
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

import { CAPITAL, NAME, PAGE, SURVEY, schema, sorted } from './questions.mjs';
import { listen } from './web.mjs';

const codec = createRequestStateCodec({
  key: randomBytes(32),
  bind: ({ mcpReq }) => mcpReq.method
});

// Questions.

const form = (message, properties) => inputRequired.elicit({ message, requestedSchema: schema(properties) });
const askName = () => form('What is your name?', NAME);
const askRoots = () => inputRequired.listRoots();
const askModel = () => inputRequired.createMessage(CAPITAL);

/** Ends a round: with questions, with state, or with both. */
async function ask(ctx, inputRequests, state) {
  const requestState = state === undefined ? undefined : await codec.mint(state, ctx);
  return inputRequired({ inputRequests, requestState });
}

// Answers.

class Refused extends Error {}

/** What a form was filled in with, if it has been asked and answered. */
function filled({ mcpReq }, key) {
  const view = inputResponse(mcpReq.inputResponses, key);
  if (view.kind === 'missing') return undefined;
  if (view.kind !== 'elicit') throw new Refused(`${key} is not answered with a form`);
  if (view.action !== 'accept') throw new Refused(`${key}: ${view.action}`);
  return view.content ?? {};
}

const said = ({ mcpReq }, key) => inputResponse(mcpReq.inputResponses, key).result?.content.text;
const listed = ({ mcpReq }, key) => inputResponse(mcpReq.inputResponses, key).roots;

const TOOLS = {
  async sample(ctx) {
    const answer = said(ctx, 'capital');
    return answer === undefined ? ask(ctx, { capital: askModel() }) : `the model said: ${answer}`;
  },

  async roots(ctx) {
    const found = listed(ctx, 'roots');
    if (!found) return ask(ctx, { roots: askRoots() });
    return `${found.length} roots: ${found.map((root) => root.uri).join(', ')}`;
  },

  async together(ctx) {
    const [name, answer, found] = [filled(ctx, 'name'), said(ctx, 'capital'), listed(ctx, 'roots')];
    if (name && answer !== undefined && found) return `${name.name}: ${answer} (${found.length} roots)`;
    return ask(ctx, { name: askName(), capital: askModel(), roots: askRoots() });
  },

  async rounds(ctx) {
    const name = ctx.mcpReq.requestState()?.name ?? filled(ctx, 'name')?.name;
    if (name === undefined) return ask(ctx, { name: askName() }, {});
    const colour = filled(ctx, 'colour')?.colour;
    if (colour !== undefined) return `${name} likes ${colour}`;
    const question = form(`${name}, what is your favourite colour?`, { colour: { type: 'string' } });
    return ask(ctx, { colour: question }, { name });
  },

  async survey(ctx) {
    const answer = filled(ctx, 'survey');
    return answer ? sorted(answer) : ask(ctx, { survey: form('Please fill this in', SURVEY) });
  },

  async no_state(ctx) {
    const name = filled(ctx, 'name')?.name;
    if (name === undefined) return ask(ctx, { name: askName() });
    return `${name}, ${ctx.mcpReq.requestState() === undefined ? 'without' : 'with'} state`;
  },

  async visit(ctx) {
    if (filled(ctx, 'consent')) return 'thank you for the visit';
    return ask(ctx, { consent: inputRequired.elicitUrl(PAGE) });
  },

  async wait(ctx) {
    const waited = ctx.mcpReq.requestState() ?? 0;
    return waited < 3 ? ask(ctx, undefined, waited + 1) : `ready after ${waited} rounds`;
  },

  async wait_and_ask(ctx) {
    const state = ctx.mcpReq.requestState();
    if (state === undefined) return ask(ctx, undefined, 'asking');
    if (state === 'asking') return ask(ctx, { name: askName() }, 'asked');
    if (state !== 'asked') return `${state}, after all`;
    const name = filled(ctx, 'name')?.name;
    return ask(ctx, undefined, name === undefined ? 'asking' : `named ${name}`);
  },

  async endless(ctx) {
    const asked = (ctx.mcpReq.requestState() ?? 0) + 1;
    return ask(ctx, { more: form(`Question ${asked}`, { ok: { type: 'boolean' } }) }, asked);
  }
};

/** Text becomes a tool's result; a refusal, its error. */
function tool(answer) {
  return async (...args) => {
    try {
      const reply = await answer(...args);
      return typeof reply === 'string' ? { content: [{ type: 'text', text: reply }] } : reply;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return { content: [{ type: 'text', text: error.message }], isError: true };
    }
  };
}

/** Prompts and resources have no tool errors. */
function refusing(answer) {
  return async (...args) => {
    try {
      return await answer(...args);
    } catch (error) {
      throw error instanceof Refused ? new ProtocolError(-32000, error.message) : error;
    }
  };
}

function newServer() {
  const server = new McpServer(
    { name: 'asking-typescript', version: '1.0.0' },
    { requestState: { verify: codec.verify } }
  );
  const greeting = fromJsonSchema({ type: 'object', properties: { greeting: { type: 'string' } } });
  server.registerTool(
    'greet',
    { description: 'Asks for a name', inputSchema: greeting },
    tool(async (args, ctx) => {
      const name = filled(ctx, 'name')?.name;
      return name === undefined ? ask(ctx, { name: askName() }) : `${args.greeting ?? 'Hello'}, ${name}!`;
    })
  );
  for (const [name, answer] of Object.entries(TOOLS)) {
    server.registerTool(name, { description: 'Stops and asks' }, tool(answer));
  }

  const kind = fromJsonSchema({ type: 'object', properties: { kind: { type: 'string' } }, required: ['kind'] });
  server.registerPrompt(
    'topic',
    { description: 'Asks what to write about', argsSchema: kind },
    refusing(async (args, ctx) => {
      const topic = filled(ctx, 'topic')?.topic;
      if (topic === undefined) {
        return ask(ctx, { topic: form(`What is the ${args.kind} about?`, { topic: { type: 'string' } }) });
      }
      const text = `Write a ${args.kind} about ${topic}`;
      return { messages: [{ role: 'user', content: { type: 'text', text } }] };
    })
  );

  server.registerResource(
    'note',
    new ResourceTemplate('note://{id}', { list: undefined }),
    { description: 'Asks what the note is about', mimeType: 'text/plain' },
    refusing(async (uri, { id }, ctx) => {
      const topic = filled(ctx, 'topic')?.topic;
      if (topic === undefined) {
        return ask(ctx, { topic: form(`What is note ${id} about?`, { topic: { type: 'string' } }) }, id);
      }
      const text = `Note ${ctx.mcpReq.requestState()} about ${topic}`;
      return { contents: [{ uri: uri.href, mimeType: 'text/plain', text }] };
    })
  );
  return server;
}

if (process.argv.includes('--stdio')) {
  serveStdio(newServer);
} else {
  const handler = createMcpHandler(newServer);
  listen((request) => handler.fetch(request), Number(process.env.PORT ?? 3003));
}
