/**
 * The command line's client for the daemon's command socket. It needs no password: the kernel checks which
 * user opens the socket.
 */
import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { COMMAND_SOCKET } from '../http/command-socket.ts';
import { isTrustedUser } from '../platform/files/ownership.ts';

// Not imported, which costs a start much: see docs/contributing.md.
const { request } = process.getBuiltinModule('node:http');

/** One request to the daemon; the body is sent as JSON. */
export interface Call {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: unknown;
}

/** The daemon's answer. */
export interface Answer {
  readonly status: number;
  readonly body: string;
}

const OTHERS = 0o077;

/**
 * `forbidden`: there may be a daemon, but this user may not open its socket. `absent`: there is none, or
 * none that can be trusted.
 */
export type NoSocket = 'absent' | 'forbidden';

/**
 * Resolves with the answer, or with a `NoSocket` when nothing was sent. Rejects when the request was sent
 * and not answered.
 */
export async function askOverSocket(
  stateDir: string,
  call: Call,
  signal: AbortSignal,
): Promise<Answer | NoSocket> {
  const folder = await open(stateDir, constants.O_RDONLY | constants.O_DIRECTORY).catch(why);
  if (typeof folder === 'string') return folder;
  try {
    // Opened through the descriptor: exactly the folder that was checked is used, and no path is too long
    // for a socket.
    const path = `/proc/self/fd/${folder.fd}/${COMMAND_SOCKET}`;
    const [around, socket] = await Promise.all([folder.stat(), lstat(path).catch(why)]);
    if (typeof socket === 'string') return socket;
    const isOurs = [around, socket].every(({ uid, mode }) => isTrustedUser(uid) && (mode & OTHERS) === 0);
    // Another user's socket in its place could give false answers.
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
