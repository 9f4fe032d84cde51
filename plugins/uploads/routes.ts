/** The upload queue over HTTP, `/api/queue`, and the commands for it. */
import type { ResponseToolkit, Request, ResponseObject, ServerRoute } from '@hapi/hapi';
import { documented, Joi } from 'mountkeeper';
import type { Clock, Mount, MountStats, RouteAccess, RouteDocument } from 'mountkeeper';
import { pauseUploads, sendNow, sendOne } from './pause.ts';
import type { Keep } from './conflicts/resolve.ts';
import type { ReceiptJobs } from './proof/receipt-jobs.ts';
import { plainQueue } from './plain-queue.ts';
import { layerBody, plainBody } from './queue-body.ts';
import type { VerifyJobs } from './proof/verify-jobs.ts';
import {
  ANSWER,
  HASH_LIST,
  ONE_QUEUE,
  ONE_RECEIPT,
  ONE_VERIFICATION,
  PATH,
  QUEUES,
  SUMMARIES,
} from './route-documents.ts';
import type { Discarded, DiscardRequest } from './transfer/leaving/discard.ts';
import { KEPT_DAYS } from './transfer/leaving/left-files.ts';
import type { ManagedUploads } from './transfer/managed.ts';

const MAX_BODY_BYTES = 16 * 1024;
const HOUR_S = 3_600;
const LONGEST_PAUSE_S = 7 * 24 * HOUR_S;

interface Answer {
  readonly ok: boolean;
  readonly message: string;
  /** Of work that goes on: a receipt or a comparison. */
  readonly id?: string;
  /** Of a file that was discarded: where what was written is kept. */
  readonly kept_at?: string;
}

type Shares = () => ReadonlyMap<string, ManagedUploads>;

const path = PATH;
const BODIES = {
  send: Joi.object<{ path?: string }>({ path }).allow(null),
  pause: Joi.object<{ seconds?: number }>({
    seconds: Joi.number().integer().min(0).max(LONGEST_PAUSE_S),
  }).allow(null),
  conflicts: Joi.object<{ path: string; copy: string; keep: Keep }>({
    path: path.required(),
    copy: path.required(),
    keep: Joi.string().valid('mine', 'theirs', 'both').required(),
  }).required(),
  discard: Joi.object<DiscardRequest>({
    path: path.required(),
    version: Joi.string().max(64).required(),
  }).required(),
  verify: Joi.object<{ path?: string }>({ path }).allow(null),
  receipt: Joi.object<{ path?: string }>({ path }).allow(null),
};

/** What takes a version of a file away is an administrator's: to choose between two, to discard one. */
const ACCESS: Readonly<Record<keyof typeof BODIES, RouteAccess>> = {
  send: { role: 'operator', verb: 'upload', share: 'share' },
  pause: { role: 'operator', verb: 'upload', share: 'share' },
  conflicts: { role: 'admin', verb: 'files', share: 'share' },
  discard: { role: 'admin', verb: 'files', share: 'share' },
  verify: { role: 'operator', verb: 'proof', share: 'share' },
  receipt: { role: 'operator', verb: 'proof', share: 'share' },
};

export interface Proofs {
  readonly receipt: ReceiptJobs;
  readonly verify: VerifyJobs;
}

export interface RouteParts extends Proofs {
  /** Undefined while the share is not mounted. */
  readonly mountOf: (share: string) => Mount | undefined;
  /** The mount's latest figures. */
  readonly statsOf: (share: string) => MountStats | undefined;
}

export function routes(shares: Shares, clock: () => Clock, parts: RouteParts): ServerRoute[] {
  const { mountOf, statsOf, ...proofs } = parts;
  return [
    {
      method: 'GET',
      path: '/api/queue',
      options: documented(QUEUES, { role: 'viewer', verb: 'queue' }),
      handler: () => ({ shares: [...shares()].map(([name, uploads]) => layerBody(name, uploads)) }),
    },
    {
      method: 'GET',
      path: '/api/queue/{share}',
      options: documented(ONE_QUEUE, { role: 'viewer', verb: 'queue', share: 'share' }),
      handler: async (request, h) => {
        const name = String(request.params['share']);
        const { error, value } = path.validate(request.query['path']);
        if (error !== undefined) return refuse(h, error.message);
        const uploads = shares().get(name);
        if (uploads !== undefined) return layerBody(name, uploads, value);
        const mount = mountOf(name);
        // A queue that cannot be seen is not an empty one.
        const queue = await plainQueue(mount, clock()).catch(() => undefined);
        if (queue === undefined) return h.response().code(mount?.uploadQueue ? 503 : 404);
        const pausedUntil = mount?.uploadPause?.until;
        return plainBody(name, { queue, stats: statsOf(name), pausedUntil }, value);
      },
    },
    post(
      'send',
      shares,
      async (uploads, body: { path?: string } | null) => {
        if (body?.path === undefined) uploads.flush();
        else await uploads.sendNow(body.path);
        return sending(body?.path);
      },
      async (share, body) => {
        const mount = mountOf(share);
        if (body?.path === undefined) await sendNow(mount, clock());
        else await sendOne({ uploads: undefined, mount, path: body.path }, clock());
        return sending(body?.path);
      },
    ),
    post(
      'pause',
      shares,
      (uploads, body: { seconds?: number } | null) => {
        const until = endOf(body, clock());
        uploads.pause(until);
        return paused(until);
      },
      async (share, body) => {
        const until = endOf(body, clock());
        if (until === 0) await sendNow(mountOf(share), clock());
        else await pauseUploads(mountOf(share), until, clock());
        return paused(until);
      },
    ),
    post(
      'conflicts',
      shares,
      async (uploads, { path: one, copy, keep }: { path: string; copy: string; keep: Keep }) => {
        await uploads.resolve({ path: one, copy }, keep);
        return {
          ok: true,
          message:
            keep === 'both'
              ? `Both versions of ${one} stay`
              : `The version of ${one} that was chosen is in its place`,
        };
      },
    ),
    post(
      'discard',
      shares,
      async (uploads, asked: DiscardRequest, name) => discarded(await uploads.discard(asked), name),
      (share) => Promise.reject(new Error(noDiscard(share, mountOf(share)))),
    ),
    post('verify', shares, (uploads, body: { path?: string } | null, share) => {
      const id = proofs.verify.start({ share, path: body?.path ?? '', uploads });
      return { ok: true, message: 'Files are being held against the remote', id };
    }),
    answered('verify', proofs.verify, ONE_VERIFICATION),
    post('receipt', shares, (uploads, body: { path?: string } | null, share) => {
      const id = proofs.receipt.start({ share, path: body?.path ?? '', uploads });
      return { ok: true, message: 'The receipt is being made', id };
    }),
    answered('receipt', proofs.receipt, ONE_RECEIPT),
    hashList(proofs.receipt),
  ];
}

const noLayer = (share: string): string => `Share '${share}' is not mounted with a write layer`;

/** Why a file of a share that has no write layer cannot be discarded. */
export function noDiscard(share: string, mount: Mount | undefined): string {
  return mount === undefined
    ? `Share '${share}' is not mounted; nothing was discarded`
    : `Share '${share}' has no write layer: no single file can be given up there`;
}

/** A sentence for who asked. */
export function discarded({ path: one, keptAt, shows }: Discarded, share: string): Answer {
  const now =
    shows === 'nothing' ? 'the name is gone, for the remote has none' : "the remote's version shows again";
  return {
    ok: true,
    message:
      `${one} in '${share}' is discarded: ${now}; what was written here is kept at ${keptAt} ` +
      `for ${KEPT_DAYS} days`,
    kept_at: keptAt,
  };
}

function sending(one: string | undefined): Answer {
  return { ok: true, message: one === undefined ? 'Sending what waits' : `Sending ${one} next` };
}

/** Milliseconds since the epoch; 0: the pause ends now. */
function endOf(body: { seconds?: number } | null, clock: Clock): number {
  const seconds = body?.seconds ?? HOUR_S;
  return seconds === 0 ? 0 : clock.now() + seconds * 1_000;
}

function paused(until: number): Answer {
  const message = until === 0 ? 'Uploads go on' : `Uploads are paused until ${new Date(until).toISOString()}`;
  return { ok: true, message };
}

/** How far work is that was begun by the verb, and its result. */
function answered(
  verb: keyof Proofs,
  jobs: Pick<Proofs[typeof verb], 'get'>,
  document: RouteDocument,
): ServerRoute {
  return {
    method: 'GET',
    path: `/api/queue/{share}/${verb}/{id}`,
    options: documented(document, ACCESS[verb]),
    handler: (request, h) => {
      const { share, id } = request.params as { readonly share: string; readonly id: string };
      return jobs.get(share, id) ?? h.response().code(404);
    },
  };
}

/** The list alone, as a file to keep. */
function hashList(jobs: ReceiptJobs): ServerRoute {
  return {
    method: 'GET',
    path: '/api/queue/{share}/receipt/{id}/hash-list',
    options: documented(HASH_LIST, ACCESS.receipt),
    handler: (request, h) => {
      const { share, id } = request.params as { readonly share: string; readonly id: string };
      const list = jobs.get(share, id)?.hash_list;
      if (list === undefined || list === null) return h.response().code(404);
      return h
        .response(list)
        .type('application/xml; charset=utf-8')
        .header('content-disposition', 'attachment; filename="receipt.mhl"')
        .header('x-content-type-options', 'nosniff');
    },
  };
}

function refuse(h: ResponseToolkit, message: string): ResponseObject {
  return h.response({ ok: false, message: `Invalid request: ${message}` } satisfies Answer).code(400);
}

/**
 * A malformed body is answered with 400; a request that cannot be done in the present state with 200 and
 * `ok: false`, as everywhere in this API. A refused discard is 409: nobody is to take it for done.
 */
function post<T>(
  verb: keyof typeof BODIES,
  shares: Shares,
  act: (uploads: ManagedUploads, body: T, share: string) => Answer | Promise<Answer>,
  /** For a mount without this uploader, which may have a queue of its own. Absent: it cannot be done there. */
  withoutLayer?: (share: string, body: T) => Promise<Answer>,
): ServerRoute {
  return {
    method: 'POST',
    path: `/api/queue/{share}/${verb}`,
    options: {
      ...documented(
        {
          summary: SUMMARIES[verb],
          body: BODIES[verb],
          answers: { 200: ANSWER, 400: ANSWER, ...(verb === 'discard' && { 409: ANSWER }) },
        },
        ACCESS[verb],
      ),
      payload: {
        maxBytes: MAX_BODY_BYTES,
        allow: 'application/json',
        failAction: (_request, h, error) => refuse(h, error?.message ?? 'unreadable body').takeover(),
      },
    },
    handler: async (request: Request, h) => {
      const name = String(request.params['share']);
      const uploads = shares().get(name);
      const { error, value } = BODIES[verb].validate(
        request.payload ?? (verb === 'conflicts' || verb === 'discard' ? undefined : null),
      );
      if (error !== undefined) return refuse(h, error.message);
      try {
        request.app.about = aboutOf(verb, value);
        if (uploads !== undefined) return await act(uploads, value as T, name);
        return (await withoutLayer?.(name, value as T)) ?? { ok: false, message: noLayer(name) };
      } catch (cause) {
        const answer: Answer = { ok: false, message: (cause as Error).message };
        return verb === 'discard' ? h.response(answer).code(409) : answer;
      }
    },
  };
}

/** Which file it was about, for the record of changes. */
function aboutOf(verb: keyof typeof BODIES, body: unknown): Record<string, string> {
  const { path: one } = (body ?? {}) as { readonly path?: string };
  return verb === 'discard' && one !== undefined ? { path: one } : {};
}
