/** GET /api/files/{share}/download: one file of a share, as users of the share see it now. */
import type { Request, ResponseObject, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import { documented, isAnybodyAsked, isFromCommandSocket, Joi, principalOf } from 'mountkeeper';
import type { PluginContext } from 'mountkeeper';
import { contentDisposition } from './content-disposition.ts';
import { sendFile } from './sender.ts';
import type { SendRequest } from './send-process.ts';
import { Slots } from './slots.ts';

const LONGEST_PATH = 4_096;
const NO_PASSWORD = 'set web.password first: without one, every user of this machine could read every share';

/** The names on the way to the file; undefined for everything but a plain path. */
export function namesOf(path: unknown): readonly string[] | undefined {
  if (typeof path !== 'string' || path.length > LONGEST_PATH || path.includes('\0')) return undefined;
  const names = path.split('/');
  return names.every((name) => name !== '' && name !== '.' && name !== '..') ? names : undefined;
}

/**
 * Files are for whoever was asked who it is; what a share itself lets in is not asked here. That `[web]` names somebody
 * says nothing: the plugin that asks may be switched off.
 */
function mayDownload(request: Request): boolean {
  return principalOf(request) !== undefined || isFromCommandSocket(request.raw.req);
}

/** Whether the page shows how: to nobody where everybody would be refused. */
export function isOffered(ctx: PluginContext): boolean {
  const isAsking = ctx
    .use('plugins')
    .list()
    .some(({ name, state }) => name === 'auth' && state === 'active');
  return isAsking && isAnybodyAsked(ctx.use('config').current.config.web);
}

export function downloadAddress(share: string, path: string): string {
  return `/api/files/${encodeURIComponent(share)}/download?path=${encodeURIComponent(path)}`;
}

export function downloadRoute(ctx: PluginContext): ServerRoute {
  const slots = new Slots();
  return {
    method: 'GET',
    path: '/api/files/{share}/download',
    options: documented(
      {
        summary: 'Sends a file of a share',
        query: { path: Joi.string().required() },
        answers: {
          200: 'application/octet-stream',
          400: 'text/plain',
          403: 'text/plain',
          404: 'text/plain',
          503: 'text/plain',
        },
      },
      { role: 'admin', verb: 'files', share: 'share' },
    ),
    handler: async (request, h) => {
      if (!mayDownload(request)) return refuse(h, 403, NO_PASSWORD);
      const names = namesOf(request.query['path']);
      if (!names) return refuse(h, 400, 'path is no plain path of a file in the share');
      const share = String(request.params['share']);
      const root = rootOf(ctx, share);
      if (root === undefined) return refuse(h, 404, 'there is no such share, or it is not mounted now');
      const gone = slots.take(share);
      if (typeof gone === 'string') return refuse(h, 503, gone);
      try {
        return await send(ctx, { root, names, request, gone }, h);
      } catch (error) {
        return refuse(h, 503, error instanceof Error ? error.message : String(error));
      }
    },
  };
}

interface Download extends SendRequest {
  readonly request: Request;
  readonly gone: () => void;
}

async function send(
  ctx: PluginContext,
  { root, names, request, gone }: Download,
  h: ResponseToolkit,
): Promise<ResponseObject> {
  const { clock, signal } = { clock: ctx.use('clock'), signal: ctx.signal };
  const { answer, content, stop } = await sendFile({ root, names }, { clock, signal, gone });
  if (!answer.ok) stop();
  if (!answer.ok)
    return refuse(h, 404, answer.reason === 'missing' ? 'there is no such file' : 'it is no plain file');
  request.raw.res.once('close', stop);
  if (request.raw.res.destroyed) stop();
  return h
    .response(content)
    .type('application/octet-stream')
    .bytes(answer.bytes)
    .header('content-disposition', contentDisposition(names.at(-1) ?? 'file'))
    .header('last-modified', new Date(answer.modifiedMs).toUTCString())
    .header('x-content-type-options', 'nosniff')
    .header('content-security-policy', "default-src 'none'; sandbox")
    .header('cache-control', 'no-store');
}

function rootOf(ctx: PluginContext, share: string): string | undefined {
  return ctx.use('shares').get(share)?.mount?.plan.mountPoint;
}

function refuse(h: ResponseToolkit, status: number, message: string): ResponseObject {
  return h.response(`${message}\n`).type('text/plain').code(status);
}
