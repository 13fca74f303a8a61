// What the asking servers ask, whichever SDK they are written on.

export const CAPITAL = {
  messages: [{ role: 'user', content: { type: 'text', text: 'What is the capital of France?' } }],
  maxTokens: 100
};
export const NAME = { name: { type: 'string' } };
export const PAGE = { message: 'Please give your consent', url: 'https://example.com/consent?id=7' };
export const SURVEY = {
  name: { type: 'string', minLength: 1, maxLength: 40 },
  email: { type: 'string', format: 'email' },
  age: { type: 'integer', minimum: 0, maximum: 150 },
  score: { type: 'number' },
  member: { type: 'boolean', default: true },
  size: { type: 'string', enum: ['small', 'large'], default: 'small' },
  colour: { type: 'string', oneOf: [{ const: 'teal', title: 'Teal' }, { const: 'red', title: 'Red' }] },
  toppings: { type: 'array', items: { type: 'string', enum: ['cheese', 'olives', 'ham'] }, minItems: 1 }
};

/** The schema of a form: whatever has no default has to be filled in. */
export function schema(properties) {
  const required = Object.keys(properties).filter((name) => !('default' in properties[name]));
  return { type: 'object', properties, required };
}

/** JSON with its keys in order, however they came. */
export const sorted = (object) => JSON.stringify(object, Object.keys(object).sort());
