// A server on the TypeScript SDK of the handshake era whose tools run as tasks of 2025-11-25.
//
//     task-server.mjs            listens on http://127.0.0.1:$PORT/mcp, with sessions, and says so
//     task-server.mjs --stdio    serves standard input and output
//
// `task-client` drives it. Its tools have the names and answers that the task servers on all SDKs have.

import { InMemoryTaskMessageQueue, InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

import { schema } from './questions.mjs';
import { serve } from './serving.mjs';

const TTL_MS = 60_000;
const POLL_MS = 50;

/** The user did not answer: the tool's error. */
class Refused extends Error {}

const NAME = 'What is your name?';
const COLOUR = 'what is your favourite colour?';

const TOOLS = {
  async compute(_ask, { label }) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    return `${label}: computed`;
  },

  greet: async (ask) => `Hello, ${await ask('name', NAME)}!`,

  async rounds(ask) {
    const name = await ask('name', NAME);
    return `${name} likes ${await ask('colour', `${name}, ${COLOUR}`)}`;
  },

  async together(ask) {
    const [name, colour] = await Promise.all([ask('name', NAME), ask('colour', `W${COLOUR.slice(1)}`)]);
    return `${name} likes ${colour}`;
  },

  async fail() {
    throw new Refused('this job always fails');
  },

  async broken() {
    throw new Error('this job always ends with an error');
  },

  endless: () => new Promise(() => {})
};

// Shared, because a task outlives the session that has started it.
const taskStore = new InMemoryTaskStore();
const taskMessageQueue = new InMemoryTaskMessageQueue();

/** Runs a tool to the end of its task. */
async function work(answer, args, taskId, { sendRequest, taskStore }) {
  const ask = async (field, message) => {
    const params = { mode: 'form', message, requestedSchema: schema({ [field]: { type: 'string' } }) };
    const request = { method: 'elicitation/create', params };
    const { action, content } = await sendRequest(request, ElicitResultSchema, { relatedTask: { taskId } });
    if (action !== 'accept') throw new Refused(`${field}: ${action}`);
    return content[field];
  };
  const text = (said) => ({ content: [{ type: 'text', text: said }] });
  try {
    const said = await answer(ask, args);
    await taskStore.storeTaskResult(taskId, 'completed', text(said));
  } catch (error) {
    if (error instanceof Refused) {
      return taskStore.storeTaskResult(taskId, 'failed', { ...text(error.message), isError: true });
    }
    // There is no place for an error of the protocol: a failed task without a result.
    await taskStore.updateTaskStatus(taskId, 'failed', error.message);
  }
}

function newServer() {
  const server = new McpServer(
    { name: 'tasks-typescript-1x', version: '1.0.0' },
    { capabilities: { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } }, taskStore, taskMessageQueue }
  );
  for (const [name, answer] of Object.entries(TOOLS)) {
    const config = {
      description: 'Runs as a task',
      inputSchema: { label: z.string().optional() },
      execution: { taskSupport: 'required' }
    };
    server.experimental.tasks.registerToolTask(name, config, {
      async createTask(args, extra) {
        const ttl = extra.taskRequestedTtl ?? TTL_MS;
        const task = await extra.taskStore.createTask({ ttl, pollInterval: POLL_MS });
        // A task that was cancelled takes no result.
        work(answer, args, task.taskId, extra).catch((error) => console.error(error.message));
        return { task };
      },
      getTask: (_args, { taskId, taskStore }) => taskStore.getTask(taskId),
      getTaskResult: (_args, { taskId, taskStore }) => taskStore.getTaskResult(taskId)
    });
  }
  return server;
}

await serve(newServer);
