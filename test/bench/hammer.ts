/**
 * A cheap HTTP client in a process of its own: sockets that ask for one path and count the bytes that come
 * back.
 */
import { connect } from 'node:net';
import type { Socket } from 'node:net';

const CLIENTS = 16;

function keepAsking(port: number, path: string, onAnswer: () => void): Socket {
  const request = Buffer.from(
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: keep-alive\r\n\r\n`,
  );
  const socket = connect(port, '127.0.0.1', () => socket.write(request));
  let answerBytes = 0;
  let seen = 0;
  socket.on('data', (piece) => {
    seen += piece.length;
    if (answerBytes === 0) answerBytes = lengthOfAnswer(piece);
    if (seen < answerBytes) return;
    seen = 0;
    answerBytes = 0;
    onAnswer();
    socket.write(request);
  });
  return socket;
}

/** Head and body together, read from the head, which comes in one piece. */
function lengthOfAnswer(piece: Buffer): number {
  const headBytes = piece.indexOf('\r\n\r\n') + 4;
  const head = piece.toString('latin1', 0, headBytes);
  if (!head.startsWith('HTTP/1.1 200')) throw new Error(`not answered with 200: ${head.slice(0, 60)}`);
  return headBytes + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN);
}

const [port = '', path = '', spanMs = ''] = process.argv.slice(2);
let answers = 0;
const sockets = Array.from({ length: CLIENTS }, () => keepAsking(Number(port), path, () => (answers += 1)));
setTimeout(() => {
  process.stdout.write(JSON.stringify({ answers }));
  sockets.forEach((socket) => socket.destroy());
}, Number(spanMs));
