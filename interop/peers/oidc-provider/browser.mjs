// A browser with a person who agrees: `browser.mjs URL [CODE]` opens a page, fills in and sends every form that it meets,
// and follows where that leads. Prints the URL that it ends at. `LOGIN` is the person, `CODE` that of a device.
const [start, code] = process.argv.slice(2);
const fill = { login: process.env.LOGIN ?? 'alice', password: 'password', answer: 'accept', user_code: code };
const home = new URL(start).host;
const jar = new Map();
const STEPS = 30;

function unescaped(text) {
  return text.replaceAll('&quot;', '"').replaceAll('&#34;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&');
}

function attribute(tag, name) {
  const found = new RegExp(`\\b${name}\\s*=\\s*("([^"]*)"|'([^']*)')`, 'i').exec(tag);
  return found ? unescaped(found[2] ?? found[3]) : undefined;
}

// The first form of a page that is sent by POST, with its fields as a person fills them in.
function formOf(page, url) {
  for (const [, opening, inside] of page.matchAll(/(<form\b[^>]*>)([\s\S]*?)<\/form>/gi)) {
    if ((attribute(opening, 'method') ?? 'get').toLowerCase() !== 'post') continue;
    const fields = new URLSearchParams();
    let pressed = false;
    for (const [tag] of inside.matchAll(/<(?:input|button)\b[^>]*>/gi)) {
      const [name, type] = [attribute(tag, 'name'), (attribute(tag, 'type') ?? 'text').toLowerCase()];
      const button = type === 'submit' || /^<button/i.test(tag);
      if (!name || name === 'abort' || (button && pressed) || fields.has(name)) continue;
      pressed ||= button;
      fields.set(name, fill[name] ?? attribute(tag, 'value') ?? '');
    }
    return { url: new URL(attribute(opening, 'action') || url, url), fields };
  }
  return undefined;
}

async function request(url, fields) {
  const headers = { accept: 'text/html' };
  if (url.host === home) headers.cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
  const limit = AbortSignal.timeout(10_000);
  const method = fields ? 'POST' : 'GET';
  const response = await fetch(url, { method, body: fields, headers, redirect: 'manual', signal: limit });
  for (const cookie of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
    if (name) jar.set(name, value);
  }
  return response;
}

let next = { url: new URL(start) };
for (let step = 0; next && step < STEPS; step++) {
  const { url, fields } = next;
  // Nothing may listen where the authorization server sends the person: then the address bar has all there is.
  const response = await request(url, fields).catch((error) => {
    if (url.host === home) throw error;
  });
  const location = response?.headers.get('location');
  const page = location ? '' : (await response?.text()) ?? '';
  if (url.host === home && response.status >= 400) {
    console.error(`${response.status} at ${url}: ${page.slice(0, 2000)}`);
    process.exit(1);
  }
  const form = url.host === home && !location ? formOf(page, url) : undefined;
  next = location ? { url: new URL(location, url) } : form;
  if (!next) console.log(url.href);
}
if (next) {
  console.error(`no end after ${STEPS} pages: ${next.url}`);
  process.exit(1);
}
