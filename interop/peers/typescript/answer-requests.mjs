// Answers a server's requests with a published TypeScript client, as the revisions with a handshake have it.
//
//     answer-requests.mjs --handshake http URL
//     answer-requests.mjs --handshake stdio COMMAND [ARGUMENT ...]
//     answer-requests.mjs --stateless http URL
//
// Calls everything of our conformance server that stops and asks, answers in every way there is, and checks what was
// asked and what came of it. Without a session (`--stateless`) whatever asks has to say why it cannot. One line a
// check; the last line says `N passed, M failed`.

import { check, conclude, connect, expect, flag, refusal } from './checks.mjs';
import { Refusal, newClient } from './sdk.mjs';
import { HANDSHAKE, REVISION, nothingNewer } from './wire.mjs';

// What is typed into each field of a form.
const FIELDS = { name: 'Ada', color: 'teal', ok: true, context: 'tides' };
// The tools that ask with a form among other things.
const FORMS = ['elicitation', 'request_state', 'tampered_state', 'multiple_inputs', 'multi_round', 'capabilities'];
// Every tool that asks: its questions, together (sorted) or one after the other, and how its answer reads.
const NAME = 'What is your name?';
const ROOTS = 'the roots';
const STEPS = ['Step 1: what is your name?', 'Step 2: what is your favourite colour?'];
const ASKED = {
  elicitation: [[[NAME]], 'Hello, Ada!'],
  sampling: [[['What is the capital of France?']], 'the model said: Paris'],
  list_roots: [[[ROOTS]], '2 roots'],
  url: [[['Please give your consent at https://example.com/consent?id=7']], 'thank you for the visit'],
  request_state: [[['Please confirm']], 'state-ok: true'],
  tampered_state: [[['Please confirm']], 'state-ok: true'],
  multiple_inputs: [[['Generate a greeting', NAME, ROOTS]], 'Ada: Paris (2 roots)'],
  multi_round: [[[STEPS[0]], [STEPS[1]]], 'Ada likes teal'],
  capabilities: [[['Say hello', NAME, ROOTS]], 'name: Some("Ada"), model: Some("Paris"), roots: Some(2)'],
  state_only: [[], 'ready after 2 rounds']
};
const NEED_NOT_ASK = ['capabilities', 'state_only'];
const TEMPLATE = 'test://asking/7';
// A prompt or a resource has no tool errors: there, our server answers with an error of its own.
const DECLINED = 403;
const REFUSALS = { decline: 'the user declined to answer', cancel: 'the user dismissed' };
// How often a question is put again when its answer does not fit.
const AGAIN = 10;
const REQUESTS = ['elicitation/create', 'sampling/createMessage', 'roots/list'];

const EVERYTHING = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const MODEL_SAYS = { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'none', stopReason: 'endTurn' };

const tool = (kind) => `test_input_required_result_${kind}`;
const blocks = (result) => result.content ?? result.contents ?? result.messages.map((one) => one.content);
const text = (result) => blocks(result).map((one) => one.text).join(' ');

/**
 * A connected client with somebody who answers: fills in forms, or does to each in turn what `acts` say, which is an
 * action, something to type or an error. `asked` has the questions, in the order they came; `gate` is waited for
 * before each answer.
 */
async function withUser(checks, { acts = [], capabilities = EVERYTHING, gate } = {}) {
  const client = newClient(capabilities, { version: HANDSHAKE });
  const asked = [];
  const handle = (method, question, answer) =>
    client.setRequestHandler(method, async ({ params }) => {
      asked.push(question(params));
      await gate?.(client);
      return answer(params);
    });
  if (capabilities.elicitation)
    handle(
      'elicitation/create',
      ({ message, mode, url }) => (mode === 'url' ? `${message} at ${url}` : message),
      ({ mode, requestedSchema }) => {
        const act = acts.shift() ?? 'accept';
        if (act instanceof Error) throw act;
        if (typeof act === 'object') return { action: 'accept', content: act };
        if (act !== 'accept' || mode === 'url') return { action: act };
        const names = Object.keys(requestedSchema.properties);
        return { action: act, content: Object.fromEntries(names.map((name) => [name, FIELDS[name]])) };
      }
    );
  if (capabilities.sampling)
    handle(
      'sampling/createMessage',
      ({ messages: [{ content }] }) => [content].flat()[0].text,
      ({ maxTokens }) => {
        expect(maxTokens === 100, `maxTokens is ${maxTokens}`);
        return MODEL_SAYS;
      }
    );
  if (capabilities.roots)
    handle(
      'roots/list',
      () => ROOTS,
      () => ({ roots: [{ uri: 'file:///project' }, { uri: 'file:///notes' }] })
    );
  const transport = await connect(client, HANDSHAKE);
  try {
    return await checks(client, asked);
  } finally {
    await transport.terminateSession?.();
    await client.close();
  }
}

const call = (client, kind) => client.callTool({ name: tool(kind), arguments: {} });

function right(result, wanted) {
  expect(!result.isError && text(result) === wanted, `wanted '${wanted}', got ${JSON.stringify(result)}`);
  return wanted;
}

function toolError(result, said = '') {
  const is = result.isError === true && text(result).includes(said);
  expect(is, `wanted a tool error '${said}', got ${JSON.stringify(result)}`);
  return text(result);
}

/** The call must fail, as a tool does or as a request does. */
async function eitherError(client, kind) {
  let result;
  try {
    result = await call(client, kind);
  } catch (error) {
    expect(error instanceof Refusal, `not a JSON-RPC error: ${error}`);
    return `error ${error.code}: ${error.message}`;
  }
  return toolError(result);
}

/** What is asked together comes in any order. */
function inTurn(asked, wanted) {
  const left = [...asked];
  const found = wanted.map((together) => left.splice(0, together.length).sort());
  const is = left.length === 0 && JSON.stringify(found) === JSON.stringify(wanted);
  expect(is, `asked ${JSON.stringify(asked)}, wanted ${JSON.stringify(wanted)}`);
}

/** Each tool, the prompt and the template, with a user who answers everything. */
async function checkAnswers(client, asked) {
  await check('every tool that asks', async () => {
    const names = (await client.listTools()).tools.map((one) => one.name);
    const asking = names.filter((name) => name.startsWith(tool(''))).sort();
    expect(asking.join() === Object.keys(ASKED).map(tool).sort().join(), `listed ${asking}`);
    return `${asking.length} of ${names.length} tools ask`;
  });
  for (const [kind, [wanted, answer]] of Object.entries(ASKED)) {
    await check(`${kind}, accepted`, async () => {
      asked.length = 0;
      right(await call(client, kind), answer);
      inTurn(asked, wanted);
      return `${asked.join(', ') || 'nothing'}: ${answer}`;
    });
  }
  await check('prompt, accepted', async () => {
    asked.length = 0;
    right(await client.getPrompt({ name: tool('prompt') }), 'Consider this context: tides');
    inTurn(asked, [['What is the context?']]);
    return 'Consider this context: tides';
  });
  await check('template, accepted', async () => {
    asked.length = 0;
    right(await client.readResource({ uri: TEMPLATE }), '7 is about tides');
    inTurn(asked, [['What is 7 about?']]);
    return '7 is about tides';
  });
  await check('many calls at the same time', async () => {
    const kinds = Object.keys(ASKED);
    const all = [...kinds, ...kinds, ...kinds];
    await Promise.all(all.map(async (kind) => right(await call(client, kind), ASKED[kind][1])));
    return `${all.length} answers, each to its call`;
  });
}

/** Questions that belong together go out together: here none is answered before all have come. */
async function checkTogether() {
  const gate = (client) => client.received.until(3, ...REQUESTS);
  for (const kind of ['multiple_inputs', 'capabilities']) {
    await check(`${kind}, answered once all is asked`, () =>
      withUser(async (client) => right(await call(client, kind), ASKED[kind][1]), { gate })
    );
  }
}

/** A user who declines or cancels: a tool ends in a tool error, a prompt or a resource in an error. */
async function checkRefusals(action, said) {
  const refused = (step) => async (client) => {
    const why = await refusal(() => step(client), DECLINED);
    expect(why.includes(said), why);
    return why;
  };
  for (const kind of [...FORMS, 'url']) {
    await check(`${kind}, ${action}`, () =>
      withUser(async (client) => toolError(await call(client, kind), said), { acts: [action] })
    );
  }
  await check(`multi_round, ${action} the second question`, () =>
    withUser(
      async (client, asked) => {
        const result = await call(client, 'multi_round');
        expect(asked.join() === STEPS.join(), `asked ${asked}`);
        return toolError(result, said);
      },
      { acts: ['accept', action] }
    )
  );
  const prompt = refused((client) => client.getPrompt({ name: tool('prompt') }));
  const template = refused((client) => client.readResource({ uri: TEMPLATE }));
  await check(`prompt, ${action}`, () => withUser(prompt, { acts: [action] }));
  await check(`template, ${action}`, () => withUser(template, { acts: [action] }));
}

/** Answers that do not fit their form, and a client that fails to answer. */
async function checkMisfits() {
  const multiRound = (step, acts) => withUser(step, { acts });
  await check('an answer that does not fit is asked for again', () =>
    multiRound(
      async (client, asked) => {
        right(await call(client, 'multi_round'), ASKED.multi_round[1]);
        const [first, again, ...rest] = asked;
        const is = first === STEPS[0] && again !== first && rest.join() === STEPS[1];
        expect(is, `asked ${JSON.stringify(asked)}`);
        return again;
      },
      [{ name: 7 }]
    )
  );
  await check('answers that never fit come to an end', () =>
    multiRound(
      async (client, asked) => {
        const why = await eitherError(client, 'multi_round');
        expect(asked.length > 1 && asked.length <= 1 + AGAIN, `asked ${asked.length} times`);
        return `after ${asked.length} times: ${why}`;
      },
      Array(50).fill({ name: 7 })
    )
  );
  await check('a client that fails to answer', () =>
    multiRound(
      async (client) => {
        const why = await eitherError(client, 'multi_round');
        right(await call(client, 'elicitation'), ASKED.elicitation[1]);
        return why;
      },
      [new Error('the terminal is gone')]
    )
  );
}

/** Clients that can be asked some things only. */
async function checkCapabilities() {
  const some = [
    ['none declared', {}, 'name: None, model: None, roots: None'],
    ['forms', { elicitation: { form: {} } }, 'name: Some("Ada"), model: None, roots: None'],
    ['forms, said the old way', { elicitation: {} }, 'name: Some("Ada"), model: None, roots: None'],
    ['URLs only', { elicitation: { url: {} } }, 'name: None, model: None, roots: None'],
    ['sampling', { sampling: {} }, 'name: None, model: Some("Paris"), roots: None'],
    ['roots', { roots: {} }, 'name: None, model: None, roots: Some(2)']
  ];
  for (const [what, capabilities, wanted] of some) {
    await check(`capabilities, ${what}`, () =>
      withUser(async (client) => right(await call(client, 'capabilities'), wanted), { capabilities })
    );
  }
  const cannot = (kind, what, capabilities) =>
    check(`${kind}, ${what}`, () =>
      withUser(
        async (client) => {
          const why = await eitherError(client, kind);
          const asked = client.received.of(...REQUESTS);
          expect(asked.length === 0, `asked all the same: ${JSON.stringify(asked)}`);
          return why;
        },
        { capabilities }
      )
    );
  for (const kind of ['elicitation', 'sampling', 'list_roots', 'url', 'multi_round']) {
    await cannot(kind, 'nothing declared', {});
  }
  await cannot('url', 'only forms declared', { elicitation: { form: {} } });
  await cannot('elicitation', 'only URLs declared', { elicitation: { url: {} } });
}

/** Without a session nobody can be asked: an error has to name the ways out. */
async function checkStateless(client, asked) {
  const helpful = (why) => {
    expect(why.includes(REVISION) && why.includes('session'), `neither ${REVISION} nor a session: ${why}`);
    expect(asked.length === 0, `asked ${asked}`);
    return why;
  };
  for (const kind of Object.keys(ASKED)) {
    await check(`${kind}, without a session`, async () => {
      // Some need not ask: what they answer is theirs to say.
      const result = NEED_NOT_ASK.includes(kind) ? await call(client, kind).catch(() => undefined) : undefined;
      return result && !result.isError ? text(result) : helpful(await eitherError(client, kind));
    });
  }
  await check('prompt, without a session', async () =>
    helpful(await refusal(() => client.getPrompt({ name: tool('prompt') })))
  );
  await check('template, without a session', async () =>
    helpful(await refusal(() => client.readResource({ uri: TEMPLATE })))
  );
}

/** Many checks on one connection. */
async function onOne(checks) {
  try {
    await withUser(checks);
  } catch (error) {
    await check('connection', () => Promise.reject(error));
  }
}

if (flag === '--stateless') {
  await onOne(checkStateless);
} else {
  await onOne(checkAnswers);
  await checkTogether();
  for (const [action, said] of Object.entries(REFUSALS)) await checkRefusals(action, said);
  await checkMisfits();
  await checkCapabilities();
}
await check('nothing of 2026-07-28 on the wire', async () => nothingNewer());
conclude();
