// Runs tools of our conformance server as tasks of 2025-11-25, with the experimental tasks of this SDK's client.
//
//     tasks.mjs --handshake http URL
//     tasks.mjs --handshake stdio COMMAND [ARGUMENT ...]
//
// `callToolStream` creates a task, looks at it and fetches its result; the questions of a task come in the midst of
// `tasks/result`. One line a check; the last line says `N passed, M failed`.

import { CallToolResultSchema, CreateTaskResultSchema } from '@modelcontextprotocol/sdk/types.js';

import { INVALID_PARAMS, METHOD_NOT_FOUND, check, conclude, connect, expect, refusal, target } from './checks.mjs';
import { newClient } from './sdk.mjs';
import { nothingNewer } from './wire.mjs';

const INTERNAL_ERROR = -32603;
const RELATED = 'io.modelcontextprotocol/related-task';
const STATUS = 'notifications/tasks/status';
const TTL = 60_000;
// What is typed into each field of a form.
const FIELDS = { name: 'Ada', confirm: true };

const text = (result) => result.content.map((one) => one.text).join(' ');

/** A connected client with somebody who fills in forms, or does to each in turn what `acts` say. */
async function withUser(acts, checks) {
  const client = newClient({ elicitation: { form: {} } });
  client.asked = [];
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    client.asked.push({ message: params.message, task: params._meta?.[RELATED]?.taskId });
    const action = acts.shift() ?? 'accept';
    if (action !== 'accept') return { action };
    const names = Object.keys(params.requestedSchema.properties);
    return { action, content: Object.fromEntries(names.map((name) => [name, FIELDS[name]])) };
  });
  const transport = await connect(client);
  await client.listTools(); // tells the client which tools run as tasks
  try {
    return await checks(client);
  } finally {
    await transport.terminateSession?.();
    await client.close();
  }
}

/** Starts a task, and gives it as it was created. */
async function start(client, name, args = {}) {
  const params = { name, arguments: args, task: { ttl: TTL } };
  const { task } = await client.request({ method: 'tools/call', params }, CreateTaskResultSchema);
  expect(task.status === 'working', `created as ${task.status}`);
  return task;
}

/** Runs a tool to its end: every message of the stream, by type. */
async function streamed(client, name, args = {}) {
  const seen = { taskStatus: [] };
  for await (const message of client.experimental.tasks.callToolStream({ name, arguments: args })) {
    if (message.type === 'taskStatus') seen.taskStatus.push(message.task.status);
    else seen[message.type] = message.task ?? message.result ?? message.error;
  }
  return seen;
}

const result = (client, taskId) => client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema);

/** A tool that runs as a task, asks these questions as one of that task, and answers with this text. */
const says = (name, args, questions, wanted) => async () =>
  withUser([], async (client) => {
    const { taskCreated, result } = await streamed(client, name, args);
    expect(result && !result.isError && text(result) === wanted, `wanted '${wanted}', got ${JSON.stringify(result)}`);
    expect(result._meta?.[RELATED]?.taskId === taskCreated.taskId, `of another task: ${JSON.stringify(result._meta)}`);
    const asked = client.asked.map((one) => one.message).sort();
    expect(asked.join() === questions.join(), `asked ${asked}`);
    expect(client.asked.every((one) => one.task === taskCreated.taskId), `asked for ${JSON.stringify(client.asked)}`);
    return `${text(result)}, asked [${asked}]`;
  });

await check('execution.taskSupport', () =>
  withUser([], async (client) => {
    const { tools } = await client.listTools();
    const support = Object.fromEntries(tools.map((tool) => [tool.name, tool.execution?.taskSupport]));
    expect(support.failing_job === 'required', `failing_job: ${support.failing_job}`);
    expect(support.slow_compute === 'optional', `slow_compute: ${support.slow_compute}`);
    expect([undefined, 'forbidden'].includes(support.greet), `greet: ${support.greet}`);
    expect(client.getServerCapabilities().tasks?.requests?.tools?.call, 'tasks are not offered');
    return 'required, optional, none';
  })
);
await check('slow_compute', says('slow_compute', { seconds: 0.3, label: 'seven' }, [], 'seven: computed for 0.3 s'));
await check('confirm_delete', says('confirm_delete', { filename: 'a.txt' }, ['Delete a.txt?'], 'a.txt is deleted'));
await check('multi_input', says('multi_input', {}, ['Are you sure?', 'What is your name?'], 'Ada: true'));
await check(
  'test_tool_with_task',
  says('test_tool_with_task', {}, ['What is your name?'], 'Hello, Ada!')
);
for (const action of ['decline', 'cancel']) {
  await check(`confirm_delete, ${action}`, () =>
    withUser([action], async (client) => {
      const task = await start(client, 'confirm_delete', { filename: 'a.txt' });
      const refused = await result(client, task.taskId);
      expect(refused.isError, `wanted a tool error, got ${JSON.stringify(refused)}`);
      const { status } = await client.experimental.tasks.getTask(task.taskId);
      expect(status === 'failed', `it is ${status}`);
      return text(refused);
    })
  );
}
await check('failing_job', () =>
  withUser([], async (client) => {
    const { error, taskCreated } = await streamed(client, 'failing_job');
    expect(error?.message.includes('failed'), `wanted a failed task, got ${error}`);
    const failed = await result(client, taskCreated.taskId);
    expect(failed.isError, `wanted a tool error, got ${JSON.stringify(failed)}`);
    return text(failed);
  })
);
await check('protocol_error_job', () =>
  withUser([], async (client) => {
    const { taskId } = await start(client, 'protocol_error_job');
    return refusal(() => result(client, taskId), INTERNAL_ERROR);
  })
);
await check('tasks/result waits, tasks/cancel ends it', () =>
  withUser([], async (client) => {
    const { taskId } = await start(client, 'slow_compute', { seconds: 60, label: 'long' });
    const waiting = refusal(() => result(client, taskId), INVALID_PARAMS);
    const { status } = await client.experimental.tasks.cancelTask(taskId);
    expect(status === 'cancelled', `it is ${status}`);
    return waiting;
  })
);
await check('tasks/cancel while it asks, and again', () =>
  withUser([], async (client) => {
    const { taskId } = await start(client, 'confirm_delete', { filename: 'a.txt' });
    const { status } = await client.experimental.tasks.cancelTask(taskId);
    expect(status === 'cancelled', `it is ${status}`);
    return refusal(() => client.experimental.tasks.cancelTask(taskId), INVALID_PARAMS);
  })
);
await check('tasks/list', () =>
  withUser([], async (client) => {
    const { taskId } = await start(client, 'slow_compute', { seconds: 0, label: 'seven' });
    // Over HTTP nobody says who a caller is, so there is no list of the caller's tasks.
    if (target[0] === 'http') {
      expect(!client.getServerCapabilities().tasks.list, 'a list is offered');
      const list = () => client.experimental.tasks.listTasks();
      return refusal(list, METHOD_NOT_FOUND);
    }
    const { tasks } = await client.experimental.tasks.listTasks();
    expect(tasks.length === 1 && tasks[0].taskId === taskId, `listed ${JSON.stringify(tasks)}`);
    return `${tasks.length} task`;
  })
);
await check('what a task says of itself', () =>
  withUser([], async (client) => {
    const { taskId, ttl, pollInterval, createdAt } = await start(client, 'slow_compute', { seconds: 0, label: 'seven' });
    expect(ttl === TTL, `ttl ${ttl}`);
    expect(pollInterval > 0 && !Number.isNaN(Date.parse(createdAt)), `${pollInterval} ms, ${createdAt}`);
    await result(client, taskId);
    const ended = await client.experimental.tasks.getTask(taskId);
    expect(ended.status === 'completed' && ended.ttl === TTL, `it is ${JSON.stringify(ended)}`);
    return `${ttl} ms, every ${pollInterval} ms`;
  })
);
await check(STATUS, () =>
  withUser([], async (client) => {
    const { taskId } = await start(client, 'slow_compute', { seconds: 0.3, label: 'seven' });
    const told = [];
    while (told.at(-1)?.status !== 'completed') {
      await client.received.until(told.length + 1, STATUS);
      told.push(client.received.of(STATUS)[told.length].params);
    }
    expect(told.every((one) => one.taskId === taskId), `of another task: ${JSON.stringify(told)}`);
    return told.map((one) => one.status).join();
  })
);
await check('failing_job without `task`', () =>
  withUser([], (client) => {
    const request = { method: 'tools/call', params: { name: 'failing_job', arguments: {} } };
    return refusal(() => client.request(request, CallToolResultSchema), METHOD_NOT_FOUND);
  })
);
await check('greet with `task`', () =>
  withUser([], (client) => refusal(() => start(client, 'greet', { name: 'Ada' }), METHOD_NOT_FOUND))
);
await check('slow_compute without `task`', () =>
  withUser([], async (client) => {
    const done = await client.callTool({ name: 'slow_compute', arguments: { seconds: 0, label: 'now' } });
    expect(text(done) === 'now: computed for 0 s', `got ${JSON.stringify(done)}`);
    return text(done);
  })
);
for (const method of ['getTask', 'cancelTask']) {
  await check(`an unknown task, ${method}`, () =>
    withUser([], (client) => refusal(() => client.experimental.tasks[method]('no-such-task'), INVALID_PARAMS))
  );
}
await check('an unknown task, getTaskResult', () =>
  withUser([], (client) => refusal(() => result(client, 'no-such-task'), INVALID_PARAMS))
);
await check('twenty tasks at the same time', () =>
  withUser([], async (client) => {
    const numbers = [...Array(20).keys()];
    const said = await Promise.all(
      numbers.map(async (number) => {
        const { result } = await streamed(client, 'slow_compute', { seconds: 0.1, label: `${number}` });
        return text(result);
      })
    );
    expect(said.every((one, number) => one === `${number}: computed for 0.1 s`), `got ${said}`);
    return `${said.length} results, each of its task`;
  })
);
await check('nothing of 2026-07-28 on the wire', async () => nothingNewer());
conclude();
