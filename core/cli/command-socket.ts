/**
 * The command line's way over the daemon's command socket: no password, since the kernel knows whose process
 * this is.
 */
import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { COMMAND_SOCKET } from '../http/command-socket.ts';
import { isTrustedUser } from '../platform/files/ownership.ts';

/** One request to the daemon; the body is sent as JSON. */
export interface Call {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: unknown;
}

/** What the daemon answered. */
export interface Answer {
  readonly status: number;
  readonly body: string;
}

const OTHERS = 0o077;

/**
 * `forbidden`: there may be a daemon, whom this user cannot ask. `absent`: there is none, or none to be
 * believed.
 */
export type NoSocket = 'absent' | 'forbidden';

/** Nothing was sent when it resolves with why. Rejects when the daemon was asked and has not answered. */
export async function askOverSocket(
  stateDir: string,
  call: Call,
  signal: AbortSignal,
): Promise<Answer | NoSocket> {
  const folder = await open(stateDir, constants.O_RDONLY | constants.O_DIRECTORY).catch(why);
  if (typeof folder === 'string') return folder;
  try {
    // Through the descriptor: what was judged is what is asked, and no name is too long for a socket.
    const path = `/proc/self/fd/${folder.fd}/${COMMAND_SOCKET}`;
    const [around, socket] = await Promise.all([folder.stat(), lstat(path).catch(why)]);
    if (typeof socket === 'string') return socket;
    const isOurs = [around, socket].every(({ uid, mode }) => isTrustedUser(uid) && (mode & OTHERS) === 0);
    // Whoever put another one there could tell lies.
    if (!isOurs || !socket.isSocket()) return 'absent';
    return await ask(path, call, signal);
  } finally {
    await folder.close();
  }
}

function why({ code }: NodeJS.ErrnoException): NoSocket {
  return code === 'EACCES' || code === 'EPERM' ? 'forbidden' : 'absent';
}

function ask(
  socketPath: string,
  { method, path, body }: Call,
  signal: AbortSignal,
): Promise<Answer | NoSocket> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = {
    host: 'localhost',
    accept: 'application/json, text/html;q=0.9',
    ...(text !== undefined && {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    }),
  };
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath, method, path, headers, signal, agent: false });
    outgoing.once('error', (error: NodeJS.ErrnoException) => {
      if (error.syscall === 'connect') resolve(why(error));
      else reject(error);
    });
    outgoing.once('response', (response) => {
      textOf(response).then((answer) => resolve({ status: response.statusCode ?? 0, body: answer }), reject);
    });
    outgoing.end(text);
  });
}

async function textOf(response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString('utf8');
}
