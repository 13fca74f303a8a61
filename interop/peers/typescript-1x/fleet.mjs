// Calls tools of two instances of a server behind a load balancer that knows nothing of sessions.
//
//   node fleet.mjs [--handshake] http URL
//
// `INSTANCES` has the names and URLs of the instances. One line a check; the last line says `N passed, M failed`.

import { check, conclude, connect, expect } from './checks.mjs';
import { newClient } from './sdk.mjs';
import { HANDSHAKE } from './wire.mjs';

const URLS = Object.fromEntries(process.env.INSTANCES.split(' ').map((one) => one.split('=')));
const CHANGED = 'notifications/tools/list_changed';
const CALLS = 8;

const client = newClient({});
const transport = await connect(client);

async function call(tool) {
  const steps = [];
  const options = tool === 'count' ? { onprogress: ({ progress }) => steps.push(progress) } : {};
  const result = await client.callTool({ name: tool, arguments: {} }, options);
  expect(tool !== 'count' || String(steps) === '1,2,3', `progress ${steps}`);
  return result.content[0].text;
}

/** The process of each instance that has answered. */
async function everywhere(tool) {
  const found = {};
  for (let number = 0; number < CALLS; number += 1) {
    const [name, pid] = (await call(tool)).split(' ');
    found[name] = pid;
  }
  return found;
}

/** Sends one request of this session to one instance. */
function send(instance, method, tool) {
  const headers = {
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    'mcp-session-id': transport.sessionId,
    'mcp-protocol-version': HANDSHAKE
  };
  const message = { jsonrpc: '2.0', id: 'plain', method: 'tools/call', params: { name: tool } };
  return fetch(URLS[instance], { method, headers, body: tool && JSON.stringify(message) });
}

const served = (tool) => async () => {
  const found = Object.keys(await everywhere(tool)).sort();
  expect(String(found) === String(Object.keys(URLS).sort()), `served by ${found}`);
  return `by ${found}`;
};

const restarted = (instance) => async () => {
  const before = await everywhere('whereabouts');
  const ended = await send(instance, 'POST', 'crash').then(() => false, () => true);
  expect(ended, 'it is still there');
  let now;
  do {
    await new Promise((resolve) => setTimeout(resolve, 50));
    now = await everywhere('whereabouts');
  } while (now[instance] === undefined || now[instance] === before[instance]);
  return 'served by the new process, too';
};

// The stream is at one of the instances: a change there is told, at whichever call it is.
async function changed() {
  let told = false;
  client.received.until(1, CHANGED).then(() => (told = true));
  while (!told) {
    await call('change');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return 'told on the stream';
}

await check('tools/list', async () => `${(await client.listTools()).tools.length} tools`);
await check('calls', served('whereabouts'));
await check('calls with progress', served('count'));
await check('a change', changed);
for (const instance of Object.keys(URLS)) {
  await check(`a restart of ${instance}`, restarted(instance));
  await check(`calls with progress after a restart of ${instance}`, served('count'));
}
for (const instance of Object.keys(URLS)) {
  await check(`DELETE at ${instance}`, async () => {
    const { status } = await send(instance, 'DELETE');
    expect(status === 405, `status ${status}`);
    return `405, and served ${await served('whereabouts')()}`;
  });
}
await check('the end of the session', async () => {
  await transport.terminateSession();
  await client.close();
  return 'as the SDK does it';
});
conclude();
