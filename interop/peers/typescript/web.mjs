// A handler of the web's requests, served by Node.

import { createServer } from 'node:http';
import { Readable } from 'node:stream';

async function serve(handle, incoming, outgoing) {
  const { method, url, headers } = incoming;
  const body = method === 'GET' || method === 'HEAD' ? undefined : Readable.toWeb(incoming);
  const request = new Request(new URL(url, `http://${headers.host}`), { method, headers, body, duplex: 'half' });
  const response = await handle(request);
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body) Readable.fromWeb(response.body).pipe(outgoing);
  else outgoing.end();
}

/** Serves at a port of this machine, and says where. */
export function listen(handle, port) {
  const server = createServer((incoming, outgoing) => {
    serve(handle, incoming, outgoing).catch((error) => {
      console.error(error);
      outgoing.destroy();
    });
  });
  server.listen(port, '127.0.0.1', () => {
    console.log(`listening on http://127.0.0.1:${server.address().port}/mcp`);
  });
}
