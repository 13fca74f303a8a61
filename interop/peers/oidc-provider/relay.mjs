// Sends requests to servers in turn: `relay.mjs ORIGIN ORIGIN`, at `PORT`. A request with a token never goes to the server
// that had the one before it.
import { createServer } from 'node:http';

import { forward } from './forward.mjs';

const origins = process.argv.slice(2);
let turn = 0;

const server = createServer((incoming, outgoing) => {
  if (incoming.headers.authorization) turn += 1;
  forward(incoming, outgoing, origins[turn % origins.length]);
});
const port = Number(process.env.PORT);
server.listen(port, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${port}`));
