/**
 * Runs as a child process: a crowd of clients that hold connections and get nowhere. Arguments: how many, and
 * the ports that each is to be done to. Each that is closed is opened again. Prints a line once all have been
 * opened.
 */
import { connect } from 'node:net';

const HEAD = 'Host: localhost\r\nContent-Type: application/json\r\n';
/** What each kind says first; those that drip say a byte more each second. */
const KINDS = [
  { text: '', drips: false },
  { text: `GET /api/status HTTP/1.1\r\n${HEAD}`, drips: false },
  { text: `POST /core/pid HTTP/1.1\r\n${HEAD}X-Slow: `, drips: true },
  { text: `POST /api/config HTTP/1.1\r\n${HEAD}Content-Length: 100000\r\n\r\n{`, drips: true },
] as const;
const AGAIN_MS = 1_000;
const DRIP_MS = 1_000;
/**
 * So many are opened at once: more would measure the kernel's queue of connections that nobody has accepted
 * yet.
 */
const AT_ONCE = 50;

function hold(port: number, kind: (typeof KINDS)[number]): Promise<void> {
  return new Promise((resolve) => {
    // It never closes its own side.
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    let drip: NodeJS.Timeout | undefined;
    socket.on('error', () => undefined).resume();
    socket.once('connect', () => {
      socket.write(kind.text);
      if (kind.drips) drip = setInterval(() => socket.write('a'), DRIP_MS);
      resolve();
    });
    socket.once('close', () => {
      clearInterval(drip);
      resolve();
      setTimeout(() => void hold(port, kind), AGAIN_MS);
    });
  });
}

const [count = 0, ...ports] = process.argv.slice(2).map(Number);
for (let opened = 0; opened < count; opened += AT_ONCE) {
  const some = Array.from({ length: Math.min(AT_ONCE, count - opened) }, (_, index) => opened + index);
  const opening = some.flatMap((index) =>
    ports.map((port) => hold(port, KINDS[index % KINDS.length] ?? KINDS[0])),
  );
  await Promise.all(opening);
}
console.log('all have been opened');
