/** A homeserver for tests, as far as sending goes: one room, one token, each transaction once. */
import { once } from 'node:events';
import { createServer } from 'node:http';

const PATH = /^\/_matrix\/client\/v3\/rooms\/([^/]+)\/send\/m\.room\.message\/([^/?]+)$/;

/** `answers`: what the next requests get instead, `[status, body]` each; 'drop' takes it and answers nothing. */
export async function startHomeserver({ room, token, answers = [], onRequest = () => {} }) {
  const events = new Map();
  const requests = [];

  const judge = (request, body) => {
    const [, roomId, txn] = PATH.exec(request.url) ?? [];
    if (request.method !== 'PUT' || txn === undefined)
      return [404, { errcode: 'M_UNRECOGNIZED', error: 'Unrecognized request' }];
    if (request.headers.authorization !== `Bearer ${token}`)
      return [401, { errcode: 'M_UNKNOWN_TOKEN', error: 'Unrecognised access token' }];
    if (decodeURIComponent(roomId) !== room)
      return [403, { errcode: 'M_FORBIDDEN', error: 'User not in room' }];
    const next = answers.shift();
    if (Array.isArray(next)) return next;
    if (!events.has(txn)) events.set(txn, JSON.parse(body));
    return next === 'drop' ? undefined : [200, { event_id: `$${txn}` }];
  };

  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const answer = judge(request, body);
    requests.push({ url: request.url, status: answer?.[0] });
    if (!answer) request.socket.destroy();
    else response.writeHead(answer[0], { 'content-type': 'application/json' }).end(JSON.stringify(answer[1]));
    onRequest();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    answers,
    /** What the room shows, in order. */
    messages: () => [...events.values()].map(({ body }) => body),
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
