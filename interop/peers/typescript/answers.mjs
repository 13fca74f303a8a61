// What the client answers when a server asks it something.

/** A value that fits one property of a form. */
function valueFor(schema) {
  if ('default' in schema) return schema.default;
  if ('const' in schema) return schema.const;
  if (schema.enum) return schema.enum[0];
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return valueFor(choices[0]);
  switch (schema.type) {
    case 'boolean':
      return true;
    case 'integer':
    case 'number':
      return schema.minimum ?? 1;
    case 'array':
      return [valueFor(schema.items ?? {})];
    default: {
      const samples = {
        email: 'ada@example.com',
        uri: 'https://example.com/',
        date: '2026-07-28',
        'date-time': '2026-07-28T12:00:00Z'
      };
      return (samples[schema.format] ?? 'Ada').padEnd(schema.minLength ?? 0, 'a');
    }
  }
}

/** Registers a handler for each of the three kinds of question. */
export function answerEverything(client) {
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    if (params.mode === 'url') return { action: 'accept' };
    const properties = Object.entries(params.requestedSchema?.properties ?? {});
    return { action: 'accept', content: Object.fromEntries(properties.map(([k, s]) => [k, valueFor(s)])) };
  });
  client.setRequestHandler('sampling/createMessage', async () => ({
    role: 'assistant',
    content: { type: 'text', text: 'Paris' },
    model: 'none',
    stopReason: 'endTurn'
  }));
  client.setRequestHandler('roots/list', async () => ({ roots: [{ uri: 'file:///project', name: 'project' }] }));
}
