// Answers a server's questions with the published TypeScript client, at protocol revision 2026-07-28.
//
//     answer.mjs http URL
//     answer.mjs stdio COMMAND [ARGUMENT ...]
//
// Calls everything of our conformance server that stops and asks, answers in every way there is, and
// checks what was asked and what came of it. One line a check; the last line says `N passed, M failed`.

import { INVALID_PARAMS, MISSING_CAPABILITY, check, conclude, connect, expect, refusal } from './checks.mjs';
import { newClient } from './sdk.mjs';

// What is typed into each field of a form.
const FIELDS = { name: 'Ada', color: 'teal', ok: true, context: 'tides' };
// The tools that ask with a form among other things.
const FORMS = ['elicitation', 'request_state', 'tampered_state', 'multiple_inputs', 'multi_round', 'capabilities'];
// Every tool that asks: the keys of each of its rounds, and how its answer reads.
const ROUNDS = {
  elicitation: [[['user_name']], 'Hello, Ada!'],
  sampling: [[['capital_question']], 'the model said: Paris'],
  list_roots: [[['client_roots']], '2 roots'],
  request_state: [[['confirm']], 'state-ok: true'],
  tampered_state: [[['confirm']], 'state-ok: true'],
  multiple_inputs: [[['client_roots', 'greeting', 'user_name']], 'Ada: Paris (2 roots)'],
  multi_round: [[['step1'], ['step2']], 'Ada likes teal'],
  capabilities: [
    [['client_roots', 'greeting', 'user_name']],
    'name: Some("Ada"), model: Some("Paris"), roots: Some(2)'
  ]
};
// A prompt has no tool errors: there, our server answers with an error of its own.
const DECLINED = 403;
const REFUSALS = { decline: 'the user declined to answer', cancel: 'the user dismissed' };

const EVERYTHING = { elicitation: { form: {} }, sampling: {}, roots: {} };
const MODEL_SAYS = { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'none', stopReason: 'endTurn' };
const ROOTS = { roots: [{ uri: 'file:///project' }, { uri: 'file:///notes' }] };

const tool = (kind) => `test_input_required_result_${kind}`;
const text = (result) => (result.content ?? result.messages.map((one) => one.content)).map((one) => one.text).join(' ');

/**
 * A connected client with somebody who answers: fills in forms, or does to each in turn what `actions` say.
 * `asked` has the keys of the questions, in the order they came.
 */
async function withUser(checks, { actions = [], capabilities = EVERYTHING, more } = {}) {
  const client = newClient(capabilities, more);
  const asked = [];
  const handle = (method, answer) =>
    client.setRequestHandler(method, async ({ params }, { mcpReq }) => {
      asked.push(mcpReq.id); // in a round this is the question's key
      return answer(params);
    });
  if (capabilities.elicitation)
    handle('elicitation/create', ({ requestedSchema }) => {
      const action = actions.shift() ?? 'accept';
      if (action !== 'accept') return { action };
      const names = Object.keys(requestedSchema.properties);
      return { action, content: Object.fromEntries(names.map((name) => [name, FIELDS[name]])) };
    });
  if (capabilities.sampling)
    handle('sampling/createMessage', ({ maxTokens }) => {
      expect(maxTokens === 100, `maxTokens is ${maxTokens}`);
      return MODEL_SAYS;
    });
  if (capabilities.roots) handle('roots/list', () => ROOTS);
  await connect(client);
  try {
    return await checks(client, asked);
  } finally {
    await client.close();
  }
}

const call = (client, kind) => client.callTool({ name: tool(kind), arguments: {} });

async function answered(client, kind, wanted) {
  const result = await call(client, kind);
  expect(!result.isError && text(result) === wanted, `wanted '${wanted}', got ${JSON.stringify(result)}`);
  return wanted;
}

/** Each tool, and the prompt, with a user who answers everything. */
async function checkAnswers(client, asked) {
  for (const [kind, [rounds, wanted]] of Object.entries(ROUNDS)) {
    await check(`${kind}, accepted`, async () => {
      asked.length = 0;
      await answered(client, kind, wanted);
      const left = [...asked];
      const found = rounds.map((keys) => left.splice(0, keys.length).sort()); // within a round, in any order
      expect(
        left.length === 0 && JSON.stringify(found) === JSON.stringify(rounds),
        `asked ${asked}, wanted ${JSON.stringify(rounds)}`
      );
      return `${rounds.length} round(s) of ${asked.join(', ')}: ${wanted}`;
    });
  }
  await check('prompt, accepted', async () => {
    asked.length = 0;
    const said = text(await client.getPrompt({ name: tool('prompt') }));
    expect(said === 'Consider this context: tides', `got '${said}'`);
    expect(asked.join() === 'user_context', `asked ${asked}`);
    return said;
  });
  await check('many calls at the same time', async () => {
    const kinds = Object.keys(ROUNDS);
    const all = [...kinds, ...kinds, ...kinds];
    await Promise.all(all.map((kind) => answered(client, kind, ROUNDS[kind][1])));
    return `${all.length} answers, each to its call`;
  });
}

/** A user who declines or cancels: a tool ends in a tool error, a prompt in an error. */
async function checkRefusals(action, said) {
  const isRefused = (result) => {
    expect(result.isError === true && text(result).includes(said), `got ${JSON.stringify(result)}`);
    return text(result);
  };
  for (const kind of FORMS) {
    await check(`${kind}, ${action}`, () =>
      withUser(async (client) => isRefused(await call(client, kind)), { actions: [action] })
    );
  }
  await check(`multi_round, ${action} in the second round`, () =>
    withUser(
      async (client, asked) => {
        const why = isRefused(await call(client, 'multi_round'));
        expect(asked.join() === 'step1,step2', `asked ${asked}`);
        return why;
      },
      { actions: ['accept', action] }
    )
  );
  await check(`prompt, ${action}`, () =>
    withUser(
      async (client) => {
        const why = await refusal(() => client.getPrompt({ name: tool('prompt') }), DECLINED);
        expect(why.includes(said), why);
        return why;
      },
      { actions: [action] }
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
      withUser((client) => answered(client, 'capabilities', wanted), { capabilities })
    );
  }
  for (const kind of ['elicitation', 'sampling', 'list_roots', 'multi_round']) {
    await check(`${kind}, nothing declared`, () =>
      withUser((client) => refusal(() => call(client, kind), MISSING_CAPABILITY), { capabilities: {} })
    );
  }
}

/** Rounds one at a time, so that they can be done wrong. */
async function checkByHand(client) {
  const turn = (kind, inputResponses, requestState) =>
    client.callTool(
      { name: tool(kind), arguments: {}, inputResponses, requestState },
      { allowInputRequired: true }
    );
  const form = (content) => ({ action: 'accept', content });
  const keys = (result) => {
    expect(result.resultType === 'input_required', `wanted questions, got ${JSON.stringify(result)}`);
    return Object.keys(result.inputRequests ?? {}).sort().join();
  };
  await check('by hand, one answer at a time', async () => {
    const first = await turn('multiple_inputs');
    expect(keys(first) === 'client_roots,greeting,user_name', `asked ${keys(first)}`);
    const second = await turn('multiple_inputs', { user_name: form({ name: 'Ada' }) }, first.requestState);
    expect(keys(second) === 'client_roots,greeting', `asked ${keys(second)}`);
    const rest = { greeting: MODEL_SAYS, client_roots: ROOTS };
    const last = await turn('multiple_inputs', rest, second.requestState);
    expect(text(last) === ROUNDS.multiple_inputs[1], `got ${JSON.stringify(last)}`);
    return 'what was missing is asked for again, alone';
  });
  await check('by hand, an answer that does not fit', async () => {
    const first = await turn('multi_round');
    const second = await turn('multi_round', { step1: form({ name: 7 }) }, first.requestState);
    expect(keys(second) === 'step1', `asked ${keys(second)}`);
    const { message } = second.inputRequests.step1.params;
    expect(message !== first.inputRequests.step1.params.message, `again only '${message}'`);
    return message;
  });
  await check('by hand, a state that was changed', async () => {
    const { requestState } = await turn('tampered_state');
    const answers = { confirm: form({ ok: true }) };
    return refusal(() => turn('tampered_state', answers, `${requestState}x`), INVALID_PARAMS);
  });
  await check('by hand, the state of another tool', async () => {
    const { requestState } = await turn('request_state');
    const answers = { confirm: form({ ok: true }) };
    return refusal(() => turn('tampered_state', answers, requestState), INVALID_PARAMS);
  });
}

await withUser(checkAnswers);
for (const [action, said] of Object.entries(REFUSALS)) await checkRefusals(action, said);
await checkCapabilities();
await withUser(checkByHand, { more: { inputRequired: { autoFulfill: false } } });
conclude();
