/**
 * The proxy's own process: clients on one side, the backends of the shares on the other. It survives the
 * daemon that started it. Where that one is root, it runs as a user of its own without capabilities, and is given
 * its folders open.
 */
import { chmod, rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { at, takePlaces } from './places.ts';
import { WebdavProxy } from './proxy.ts';
import { bodyOf } from './requests/stat.ts';
import type { ProxyState, SystemAnswer } from './state.ts';

// Not imported, which costs a start much: see docs/contributing.md.
const { createServer } = process.getBuiltinModule('node:http');

const MAX_STATE_BYTES = 16 * 1_048_576;
/**
 * Length of the accept queue; beyond it the kernel drops connection attempts, which clients repeat after a
 * second.
 */
const MAX_COMING = 4_096;
const log = (sentence: string): void => console.error(sentence);

async function control(
  proxy: WebdavProxy,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    response.end(JSON.stringify(await answerOf(proxy, request, gone.signal)));
  } catch (error) {
    response.statusCode = 500;
    response.end(String(error));
  }
}

/**
 * `/` is the state and what came of it, `/sessions` those who are here, `/sessions/<id>` one of them, `/refused` the
 * sign-ins that were refused since it was asked for, `/kept` what waits of uploads that did not come to their end,
 * `/system` what the daemon is to find out about users of the machine, and what it has found out.
 */
async function answerOf(proxy: WebdavProxy, request: IncomingMessage, gone: AbortSignal): Promise<unknown> {
  const { method, url = '/' } = request;
  const body = await bodyOf(request, MAX_STATE_BYTES);
  const { sessions } = proxy.visitors;
  if (url === '/system') return systemUsers(proxy, body, gone);
  if (url === '/sessions') return sessions.list();
  if (url === '/kept') return proxy.clearUp.kept;
  if (url === '/refused') return proxy.authenticator.refused.take() ?? null;
  if (method === 'DELETE') return sessions.end(url.slice('/sessions/'.length));
  if (method === 'PUT' && body) await proxy.take(JSON.parse(body.toString('utf8')) as ProxyState);
  return proxy.report;
}

async function systemUsers(
  { authenticator: { system } }: WebdavProxy,
  body: Buffer | undefined,
  gone: AbortSignal,
): Promise<unknown> {
  if (!body || body.length === 0) return system.fetch(gone);
  const { id, isRight } = JSON.parse(body.toString('utf8')) as SystemAnswer;
  system.answer(id, isRight);
  return null;
}

async function main([
  folder = '',
  host = '',
  port = '',
  scheme = '',
  ...places
]: readonly string[]): Promise<void> {
  process.umask(0o077);
  takePlaces(places);
  const proxy = new WebdavProxy(folder, log);
  await proxy.open();
  const server = proxy.createServer({ isSecure: scheme === 'https' });
  const fail = (error: Error): void => {
    log(error.message);
    process.exit(1);
  };
  await new Promise<void>((resolve) =>
    server
      .once('error', fail)
      .listen({ host, port: Number(port), exclusive: true, backlog: MAX_COMING }, resolve),
  );
  server.off('error', fail).on('error', (error) => log(error.message));
  const socket = at(join(folder, 'own', 'control'));
  await rm(socket, { force: true });
  const desk = createServer((request, response) => void control(proxy, request, response));
  await new Promise<void>((resolve) => desk.once('error', fail).listen(socket, resolve));
  // Later errors, for example when no file descriptor is left for a new connection, do not end the process.
  desk.off('error', fail).on('error', (error) => log(error.message));
  await chmod(socket, 0o600);
  process.once('SIGTERM', () => process.exit(0));
}

process.on('unhandledRejection', (error) => log(`unhandled: ${String(error)}`));
await main(process.argv.slice(2));
