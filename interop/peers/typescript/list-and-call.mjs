// Drives a server with a published TypeScript client.
//
//     list-and-call.mjs [--handshake | --stateless] http URL
//     list-and-call.mjs [--handshake] stdio COMMAND [ARGUMENT ...]
//
// Lists everything the server offers, calls every tool, and checks that each answer is of the
// expected kind. One line a check; the last line says `N passed, M failed`. Exit status 0 only
// when something passed and nothing failed.
//
// At protocol revision 2026-07-28, or with a handshake at the newest revision that has one; without a
// session (`--stateless`), nothing that asks is called. Then no message may hold what only 2026-07-28 has.

import { answerEverything } from './answers.mjs';
import {
  INVALID_PARAMS,
  MISSING_CAPABILITY,
  check,
  conclude,
  connect,
  expect,
  flag,
  refusal,
  target
} from './checks.mjs';
import { OLD_NEEDS_TASK, OLD_NOT_FOUND, newClient } from './sdk.mjs';
import { HANDSHAKE, REVISION, nothingNewer } from './wire.mjs';

const version = flag ? HANDSHAKE : REVISION;
const canAsk = flag !== '--stateless';

// Tools every conformance server must offer, and the kinds of content they answer with, in order.
const PLAIN_TOOLS = {
  test_simple_text: ['text'],
  test_image_content: ['image'],
  test_audio_content: ['audio'],
  test_embedded_resource: ['resource'],
  test_multiple_content_types: ['text', 'image', 'resource']
};
// Tools whose answer only has to be an answer: any content, no error.
const OPEN_TOOLS = {
  json_schema_2020_12_tool: { name: 'Ada', contactMethod: 'email', email: 'ada@example.com' },
  test_custom_header: { value: 'Grüße, 世界' },
  test_streaming_elicitation: {},
  test_logging_tool: {},
  test_trigger_tool_change: {},
  test_trigger_prompt_change: {}
};
// Tools with a check of their own below.
const SPECIAL = ['test_error_handling', 'test_tool_with_progress', 'test_missing_capability'];
// Optional tools that refuse a client which does not declare the tasks extension, or in the handshake era sends no `task`.
const MISSING_TASKS = flag ? OLD_NEEDS_TASK : MISSING_CAPABILITY;
const TASK_ONLY = { failing_job: MISSING_TASKS, protocol_error_job: MISSING_TASKS };
// What asks is named like this; without a session nobody can be asked.
const ASKING = /^(test_(input_required_result_|elicitation|sampling|tool_with_task)|multi_input)/;
// What the older revisions say of a resource that is not there.
const NOT_FOUND = flag ? OLD_NOT_FOUND : INVALID_PARAMS;

const kinds = (result) => (result.content ?? []).map((block) => block.type);
const describe = (result) => (result.isError ? 'tool error, ' : '') + (kinds(result).join('+') || 'no content');

async function openCall(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  expect(!result.isError, `${describe(result)}: ${JSON.stringify(result.content)}`);
  return describe(result);
}

async function checkTools(client) {
  let tools = [];
  await check('tools/list', async () => {
    ({ tools } = await client.listTools());
    expect(new Set(tools.map((tool) => tool.name)).size === tools.length, 'a tool is listed twice');
    return `${tools.length} tools`;
  });

  for (const [name, expected] of Object.entries(PLAIN_TOOLS)) {
    await check(name, async () => {
      const result = await client.callTool({ name, arguments: {} });
      expect(!result.isError && kinds(result).join() === expected.join(), `wanted ${expected}, got ${describe(result)}`);
      return describe(result);
    });
  }
  await check('test_error_handling', async () => {
    const result = await client.callTool({ name: 'test_error_handling', arguments: {} });
    expect(result.isError === true, `wanted isError, got ${describe(result)}`);
    expect(kinds(result).includes('text'), 'a tool error says what went wrong in text');
    return describe(result);
  });
  await check('test_tool_with_progress', async () => {
    const seen = [];
    const onprogress = ({ progress }) => seen.push(progress);
    const result = await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, { onprogress });
    expect(!result.isError, describe(result));
    expect(seen.length >= 3 && seen.every((n, i) => i === 0 || n > seen[i - 1]), `progress was [${seen}]`);
    return `${describe(result)}, progress [${seen}]`;
  });
  if (canAsk) {
    await check('test_missing_capability (sampling declared)', () => openCall(client, 'test_missing_capability', {}));
  }

  const named = new Set([...Object.keys({ ...PLAIN_TOOLS, ...OPEN_TOOLS, ...TASK_ONLY }), ...SPECIAL]);
  const extra = tools
    .filter((tool) => !named.has(tool.name) && !tool.inputSchema.required?.length)
    .filter((tool) => canAsk || !ASKING.test(tool.name));
  const open = { ...OPEN_TOOLS, ...Object.fromEntries(extra.map((tool) => [tool.name, {}])) };
  for (const [name, args] of Object.entries(open)) {
    await check(name, () => openCall(client, name, args));
  }
  for (const [name, code] of Object.entries(TASK_ONLY)) {
    if (!tools.some((tool) => tool.name === name)) continue;
    await check(`${name} (tasks not declared)`, () => refusal(() => client.callTool({ name, arguments: {} }), code));
  }
  await check('an unknown tool', () =>
    refusal(() => client.callTool({ name: 'no_such_tool', arguments: {} }), INVALID_PARAMS)
  );
}

async function checkResources(client) {
  await check('resources/list', async () => {
    const uris = (await client.listResources()).resources.map((one) => one.uri);
    for (const uri of ['test://static-text', 'test://static-binary']) expect(uris.includes(uri), `listed ${uris}`);
    return `${uris.length} resources`;
  });
  await check('resources/templates/list', async () => {
    const found = (await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate);
    expect(found.includes('test://template/{id}/data'), `listed ${found}`);
    return `${found.length} templates`;
  });
  const read = (name, uri, field, contains = '') =>
    check(`resources/read ${name}`, async () => {
      const { contents } = await client.readResource({ uri });
      expect(contents.length === 1 && contents[0].uri === uri, `contents ${JSON.stringify(contents)}`);
      expect(contents[0][field]?.includes(contains), `no '${contains}' in ${JSON.stringify(contents[0])}`);
      return `${field}, ${contents[0].mimeType}`;
    });
  await read('text', 'test://static-text', 'text');
  await read('binary', 'test://static-binary', 'blob');
  await read('template', 'test://template/42/data', 'text', '42');
  await check('an unknown resource', () =>
    refusal(() => client.readResource({ uri: 'test://no-such-resource' }), NOT_FOUND)
  );
}

async function checkPrompts(client) {
  let names = [];
  await check('prompts/list', async () => {
    names = (await client.listPrompts()).prompts.map((one) => one.name);
    return `${names.length} prompts`;
  });
  const wanted = [
    ['test_simple_prompt', undefined, 'text'],
    ['test_prompt_with_arguments', { arg1: 'hello', arg2: 'world' }, 'text'],
    ['test_prompt_with_embedded_resource', { resourceUri: 'test://example-resource' }, 'resource'],
    ['test_prompt_with_image', undefined, 'image']
  ];
  const asking = 'test_input_required_result_prompt';
  if (canAsk && names.includes(asking)) wanted.push([asking, undefined, 'text']);
  for (const [name, args, kind] of wanted) {
    await check(name, async () => {
      const { messages } = await client.getPrompt({ name, arguments: args });
      const found = messages.map((message) => message.content.type);
      expect(found.includes(kind), `wanted ${kind}, got ${found}`);
      const text = messages.map((message) => message.content.text ?? '').join(' ');
      if (name === 'test_prompt_with_arguments') {
        for (const value of Object.values(args)) expect(text.includes(value), `'${value}' is not in '${text}'`);
      }
      return found.join('+');
    });
  }
  await check('completion/complete', async () => {
    const ref = { type: 'ref/prompt', name: 'test_prompt_with_arguments' };
    const { completion } = await client.complete({ ref, argument: { name: 'arg1', value: 't' } });
    return `${completion.values.length} values`;
  });
}

/** What only a handshake brings: pings, and whatever its capabilities promise to a session. */
async function checkOlder(client, transport) {
  const can = client.getServerCapabilities();
  const told = async (number, method, name) => {
    const before = client.received.of(method).length;
    await client.callTool({ name, arguments: {} });
    await client.received.until(before + number, method);
    return `the client is told, ${number} times`;
  };
  await check('ping', async () => {
    await client.ping();
    return 'it is there';
  });
  if (target[0] === 'http') {
    await check('a session', async () => {
      expect((transport.sessionId !== undefined) === canAsk, `a session: ${transport.sessionId}`);
      return canAsk ? 'yes' : 'no';
    });
  }
  if (!canAsk) return; // nothing can be sent apart from an answer
  if (can.logging) {
    await check('logging/setLevel', async () => {
      await client.setLoggingLevel('info');
      return told(3, 'notifications/message', 'test_logging_tool');
    });
  }
  for (const what of ['tool', 'prompt']) {
    if (!can[`${what}s`]?.listChanged) continue;
    await check(`${what}s/list_changed`, () =>
      told(1, `notifications/${what}s/list_changed`, `test_trigger_${what}_change`)
    );
  }
  if (can.resources?.subscribe) {
    await check('resources/subscribe', async () => {
      await client.subscribeResource({ uri: 'test://watched-resource' });
      await client.unsubscribeResource({ uri: 'test://watched-resource' });
      return 'and back';
    });
  }
}

/** Connects, runs the checks and hangs up. */
async function withClient(capabilities, checks) {
  const client = newClient(capabilities, { version });
  if (capabilities.elicitation) answerEverything(client);
  let transport;
  await check(flag ? 'initialize' : 'server/discover', async () => {
    transport = await connect(client);
    return `${client.getNegotiatedProtocolVersion()}, ${client.getServerVersion()?.name}`;
  });
  if (transport) await checks(client, transport);
  await transport?.terminateSession?.();
  await client.close();
}

await withClient({}, async (client) => {
  const call = () => client.callTool({ name: 'test_missing_capability', arguments: {} });
  await check('test_missing_capability', () => refusal(call, flag ? undefined : MISSING_CAPABILITY));
});
await withClient({ elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }, async (client, transport) => {
  await checkTools(client);
  await checkResources(client);
  await checkPrompts(client);
  if (flag) await checkOlder(client, transport);
});
if (flag) await check('nothing of 2026-07-28 on the wire', async () => nothingNewer());
conclude();
