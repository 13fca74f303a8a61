// What a server has sent, as it came; whichever SDK the client is of.

export const REVISION = '2026-07-28';
// The newest revision that begins with a handshake.
export const HANDSHAKE = '2025-11-25';

// What only 2026-07-28 has on the wire.
const NEWER = ['resultType', 'ttlMs', 'cacheScope', 'requestState', 'inputRequests', 'io.modelcontextprotocol/serverInfo'];

const wires = [];

/** The messages of one connection. */
export class Wire {
  messages = [];
  #waiting = new Set();

  constructor() {
    wires.push(this);
  }

  add(message) {
    this.messages.push(message);
    for (const look of this.#waiting) look();
  }

  of(...methods) {
    return this.messages.filter((message) => methods.includes(message.method));
  }

  /** Waits for that many messages of these methods; whoever calls says for how long. */
  until(number, ...methods) {
    return new Promise((resolve) => {
      const look = () => {
        if (this.of(...methods).length < number) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }

  /** Sees every message of a transport before the client does. */
  record(transport) {
    transport.onmessage = (message) => this.add(message);
    return transport;
  }

  /** What the server answered to the handshake. */
  greeting() {
    return this.messages.find((message) => message.result?.protocolVersion)?.result;
  }
}

/** What an older client must not be sent, however deep it is. */
function newerFields(message) {
  if (message === null || typeof message !== 'object') return [];
  const here = Array.isArray(message) ? [] : NEWER.filter((name) => name in message);
  return [...here, ...Object.values(message).flatMap(newerFields)];
}

/** No message of any connection so far may hold what the older revisions do not have. */
export function nothingNewer() {
  const messages = wires.flatMap((wire) => wire.messages);
  for (const message of messages) {
    const found = newerFields(message);
    if (found.length > 0) throw new Error(`${found} in ${JSON.stringify(message)}`);
  }
  if (messages.length === 0) throw new Error('no messages');
  return `${messages.length} messages on ${wires.length} connections`;
}
