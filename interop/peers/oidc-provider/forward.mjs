// Hands a request on to another server, and its answer back.
import { request } from 'node:http';

export function forward(incoming, outgoing, origin) {
  const { method, url, headers } = incoming;
  const next = request(new URL(url, origin), { method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    answer.pipe(outgoing);
  });
  next.on('error', () => outgoing.destroy());
  outgoing.on('close', () => next.destroy());
  incoming.pipe(next);
}
