/** The queue over HTTP: what is asked of an uploader, and what is refused. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import Hapi from '@hapi/hapi';
import type { Mount } from 'mountkeeper';
import { createClock } from '../../../core/platform/clock.ts';
import type { QueueBody } from '../../../plugins/uploads/queue-body.ts';
import { QUEUE } from '../../../plugins/uploads/route-documents.ts';
import { routes } from '../../../plugins/uploads/routes.ts';
import type { VerifyBody } from '../../../plugins/uploads/proof/verify-jobs.ts';
import { VerifyJobs } from '../../../plugins/uploads/proof/verify-jobs.ts';
import { ReceiptJobs } from '../../../plugins/uploads/proof/receipt-jobs.ts';
import type { ManagedUploads } from '../../../plugins/uploads/transfer/managed.ts';

const clock = createClock();

function stage(more: Partial<ManagedUploads> = {}): {
  readonly asked: string[];
  readonly post: (
    path: string,
    payload?: object,
  ) => Promise<{ status: number; body: { ok: boolean; message: string } }>;
  readonly server: Hapi.Server;
} {
  const asked: string[] = [];
  const uploads: ManagedUploads = {
    figures: {
      lookedAtMs: 0,
      dirtyFiles: 2,
      dirtyBytes: 30,
      oldestDirtyAt: 1_800_000_000_000,
      stuckFiles: 0,
      uploading: 0,
      uploadedBytes: 0,
      localBytes: 0,
    },
    pausedUntil: 1_800_000_060_000,
    look: () => Promise.reject(new Error('not asked')),
    refreshed: () => undefined,
    holdMoves: () => Promise.resolve(() => undefined),
    settleMoves: () => Promise.resolve(),
    flush: () => void asked.push('flush'),
    pause: (until) => void asked.push(`pause ${until === 0 ? 0 : Math.round((until - clock.now()) / 1_000)}`),
    sendNow: async (path) => {
      if (path === 'gone') throw new Error('gone does not wait to be uploaded.');
      asked.push(`send ${path}`);
    },
    resolve: ({ path, copy }, keep) => {
      asked.push(`${keep} ${path} ${copy}`);
      return keep === 'theirs' ? Promise.reject(new Error('It cannot be done now.')) : Promise.resolve();
    },
    discard: async ({ path, version }) => {
      asked.push(`discard ${path} ${version}`);
      if (version !== 'v1') throw new Error(`${path} was changed since it was shown.`);
      return { path, bytes: 30, keptAt: '/kept/p', shows: 'file' };
    },
    verify: async (path) => {
      const result = path === 'd' ? ('differs' as const) : ('hash' as const);
      const files = path === 'none' ? [] : [{ path: `${path}a`, result, bytes: 1, modifiedMs: 0 }];
      return { files, waiting: path === 'same' ? 0 : 2 };
    },
    receipt: async () => ({ root: '', proved: [], unproved: [] }),
    queue: () => [
      {
        path: 'p',
        action: 'upload',
        state: 'waiting',
        bytes: 30,
        sentBytes: 0,
        since: 0,
        reason: 'The NAS says no.',
        tries: 2,
        nextTryAt: 1_800_000_000_000,
        version: 'v1',
      },
    ],
    conflicts: () => [],
    stop: () => Promise.resolve(),
    ...more,
  };
  const plain = {
    flush: async () => void asked.push('flush plain'),
    uploadPause: {
      until: undefined,
      obstacle: undefined,
      set: async (until: number) =>
        void asked.push(`pause plain ${Math.round((until - clock.now()) / 1_000)}`),
    },
    uploadQueue: async () => [
      { path: 'up', bytes: 10, isUploading: true, failures: 0 },
      { path: 'no', bytes: 20, isUploading: false, failures: 2, goesAt: 1_800_000_000_000 },
    ],
    sendNow: async (path: string) => {
      if (path === 'gone') throw new Error('gone does not wait to be uploaded');
      asked.push(`send plain ${path}`);
    },
  } as Partial<Mount> as Mount;
  const server = Hapi.server();
  server.route(
    routes(
      () => new Map([['files', uploads]]),
      () => clock,
      {
        receipt: new ReceiptJobs({ clock: () => clock, version: '1.2.3' }),
        verify: new VerifyJobs(() => clock),
        mountOf: (share) =>
          ({ plain, blind: { ...plain, uploadQueue: () => Promise.reject(new Error('silent')) } })[share],
        statsOf: () =>
          ({ dirtyFiles: 1, dirtyBytes: 10, erroredFiles: 1, oldestDirtyAt: 1_800_000_000_000 }) as never,
      },
    ),
  );
  const post = async (
    path: string,
    payload?: object,
  ): Promise<{ status: number; body: { ok: boolean; message: string } }> => {
    const { statusCode, result } = await server.inject({
      method: 'POST',
      url: `/api/queue/${path}`,
      ...(payload !== undefined && { payload }),
    });
    return { status: statusCode, body: result as { ok: boolean; message: string } };
  };
  return { asked, post, server };
}

describe('the routes of the queue', () => {
  it('hand out the hash list of a receipt as a file, and none of what is unknown', async () => {
    const { server, post } = stage();
    const { id = '' } = (await post('files/receipt')).body as { id?: string };
    await new Promise((resolve) => setImmediate(resolve));
    const { statusCode, headers, payload } = await server.inject(`/api/queue/files/receipt/${id}/hash-list`);
    assert.equal(statusCode, 200);
    assert.match(String(headers['content-type']), /^application\/xml/);
    assert.match(String(headers['content-disposition']), /^attachment; filename="receipt\.mhl"$/);
    assert.match(payload, /^<\?xml[^]*<hashlist/);
    assert.equal((await server.inject(`/api/queue/plain/receipt/${id}/hash-list`)).statusCode, 404);
    assert.equal((await server.inject('/api/queue/files/receipt/none/hash-list')).statusCode, 404);
  });

  it('tell what waits at one path, past the thousand that are shown, and refuse what is none', async () => {
    const many = Array.from({ length: 1_200 }, (_, index) => ({
      path: `d${Math.floor(index / 1_100)}/${index}`,
      action: 'upload' as const,
      state: 'waiting' as const,
      bytes: 1,
      sentBytes: 0,
      since: 0,
      reason: 'It waits for its turn.',
      tries: 0,
      version: 'v',
    }));
    const { server } = stage({ queue: () => many });
    const shown = async (query: string): Promise<readonly string[]> => {
      const { result } = await server.inject(`/api/queue/files${query}`);
      return (result as QueueBody).entries.map(({ path }) => path);
    };
    assert.equal((await shown('')).length, 1_000);
    assert.equal((await shown('?path=d1')).length, 100);
    assert.deepEqual(await shown('?path=d1%2F1199'), ['d1/1199']);
    assert.deepEqual(await shown('?path=d'), []);
    const { result } = await server.inject('/api/queue/plain?path=no');
    assert.deepEqual(
      (result as QueueBody).entries.map(({ path }) => path),
      ['no'],
    );
    for (const path of ['..%2Fx', '%2Fx', 'a&path=b'])
      assert.equal((await server.inject(`/api/queue/files?path=${path}`)).statusCode, 400, path);
  });

  it('tell the queue of a mount without the uploader in the same form, and what it does not know', async () => {
    const { server } = stage();
    const { statusCode, result } = await server.inject('/api/queue/plain');
    const body = result as QueueBody;
    assert.equal(statusCode, 200);
    assert.deepEqual(
      body.entries.map(({ path, state, sent_bytes, since, tries, next_try_at }) => ({
        path,
        state,
        sent_bytes,
        since,
        tries,
        next_try_at,
      })),
      [
        { path: 'up', state: 'uploading', sent_bytes: null, since: null, tries: 0, next_try_at: null },
        {
          path: 'no',
          state: 'stuck',
          sent_bytes: 0,
          since: null,
          tries: 2,
          next_try_at: '2027-01-15T08:00:00.000Z',
        },
      ],
    );
    // The figures are older than the queue: their size is of fewer files.
    assert.deepEqual(
      [body.dirty_files, body.dirty_bytes, body.stuck_files, body.conflicts],
      [2, null, 1, []],
    );
    assert.equal(QUEUE.validate(body).error, undefined);
    assert.equal((await server.inject('/api/queue/blind')).statusCode, 503, 'unseen is not empty');
    assert.equal((await server.inject('/api/queue/none')).statusCode, 404);
  });

  it("tell how much waits and since when, and each entry's reason, attempts and next attempt", async () => {
    const { result } = await stage().server.inject('/api/queue/files');
    const body = result as {
      dirty_bytes: number;
      oldest_dirty_at: string;
      paused_until: string;
      entries: { reason: string; tries: number; next_try_at: string }[];
    };
    assert.equal(body.dirty_bytes, 30);
    assert.equal(body.oldest_dirty_at, '2027-01-15T08:00:00.000Z');
    assert.equal(body.paused_until, '2027-01-15T08:01:00.000Z');
    assert.deepEqual(
      body.entries.map(({ reason, tries, next_try_at }) => ({ reason, tries, next_try_at })),
      [{ reason: 'The NAS says no.', tries: 2, next_try_at: '2027-01-15T08:00:00.000Z' }],
    );
  });

  it('send all, or one path; pause for an hour, for as long as is said, or not any more', async () => {
    const { asked, post } = stage();
    for (const [verb, payload] of [
      ['send'],
      ['send', { path: 'd/a' }],
      ['pause'],
      ['pause', { seconds: 60 }],
      ['pause', { seconds: 0 }],
    ] as const) {
      assert.equal((await post(`files/${verb}`, payload)).body.ok, true);
    }
    assert.deepEqual(asked, ['flush', 'send d/a', 'pause 3600', 'pause 60', 'pause 0']);
  });

  it('discard one file in the version that was shown, and refuse with 409 and the reason', async () => {
    const { asked, post, server } = stage();
    const { result } = await server.inject('/api/queue/files');
    assert.equal((result as QueueBody).entries[0]?.version, 'v1');
    assert.deepEqual(await post('files/discard', { path: 'p', version: 'v1' }), {
      status: 200,
      body: {
        ok: true,
        message:
          "p in 'files' is discarded: the remote's version shows again; what was written here is kept at /kept/p " +
          'for 7 days',
        kept_at: '/kept/p',
      },
    });
    assert.deepEqual(await post('files/discard', { path: 'p', version: 'v2' }), {
      status: 409,
      body: { ok: false, message: 'p was changed since it was shown.' },
    });
    const plain = await post('plain/discard', { path: 'p', version: 'v1' });
    assert.deepEqual([plain.status, plain.body.ok], [409, false]);
    assert.match(plain.body.message, /has no write layer/);
    const gone = await post('gone/discard', { path: 'p', version: 'v1' });
    assert.deepEqual([gone.status, /not mounted/.test(gone.body.message)], [409, true]);
    for (const body of [undefined, {}, { path: 'p' }, { path: '../p', version: 'v1' }])
      assert.equal((await post('files/discard', body)).status, 400, JSON.stringify(body));
    assert.deepEqual(asked, ['discard p v1', 'discard p v2']);
  });

  it('say why a conflict cannot be ended', async () => {
    const { asked, post } = stage();
    assert.equal((await post('files/conflicts', { path: 'a', copy: 'b', keep: 'mine' })).body.ok, true);
    assert.deepEqual(await post('files/conflicts', { path: 'a', copy: 'b', keep: 'theirs' }), {
      status: 200,
      body: { ok: false, message: 'It cannot be done now.' },
    });
    assert.deepEqual(asked, ['mine a b', 'theirs a b']);
  });

  it('are not well when the remote has something else', async () => {
    const { post, server } = stage();
    const { body } = await post('files/verify', { path: 'd' });
    assert.equal(body.ok, true);
    await new Promise((resolve) => setImmediate(resolve));
    const { result } = await server.inject(`/api/queue/files/verify/${(body as { id?: string }).id}`);
    const { state, is_equal, message, results } = result as VerifyBody;
    assert.deepEqual(
      [state, is_equal, message],
      ['done', false, '1 files held against the remote, 1 differ, 2 wait to go up'],
    );
    assert.deepEqual(results, [{ path: 'da', result: 'differs', bytes: 1 }]);
    assert.equal((await server.inject('/api/queue/files/verify/none')).statusCode, 404);
  });

  it('are equal only where something was compared, nothing differs and nothing waits', async () => {
    const { post, server } = stage();
    const compared = async (path: string): Promise<readonly unknown[]> => {
      const { body } = await post('files/verify', { path });
      await new Promise((resolve) => setImmediate(resolve));
      const { result } = await server.inject(`/api/queue/files/verify/${(body as { id?: string }).id}`);
      const { is_equal, waiting, message } = result as VerifyBody;
      return [is_equal, waiting, message];
    };
    assert.deepEqual(await compared('same'), [true, 0, '1 files held against the remote, 0 differ']);
    assert.deepEqual(await compared('rest'), [
      false,
      2,
      '1 files held against the remote, 0 differ, 2 wait to go up',
    ]);
    const [isEqual, waiting, message] = await compared('none');
    assert.deepEqual([isEqual, waiting], [false, 2]);
    assert.match(String(message), /^No file was held against the remote \(2 wait to go up\): /);
  });

  it('refuse what makes no sense, and shares that have no queue', async () => {
    const { asked, post } = stage();
    for (const [verb, payload] of [
      ['send', { path: '../x' }],
      ['send', { path: '/x' }],
      ['send', { path: 1 }],
      ['pause', { seconds: -1 }],
      ['pause', { hours: 1 }],
      ['conflicts', { path: 'a' }],
      ['conflicts', { path: 'a', copy: 'b', keep: 'none' }],
      ['conflicts', undefined],
    ] as const) {
      const { status, body } = await post(`files/${verb}`, payload);
      assert.deepEqual([status, body.ok], [400, false], `${verb} ${JSON.stringify(payload)}`);
    }
    assert.deepEqual(await post('none/send'), {
      status: 200,
      body: { ok: false, message: 'the share is not mounted' },
    });
    assert.deepEqual((await post('files/send', { path: 'gone' })).body, {
      ok: false,
      message: 'gone does not wait to be uploaded.',
    });
    assert.deepEqual((await post('plain/send', { path: 'gone' })).body, {
      ok: false,
      message: 'gone does not wait to be uploaded',
    });
    assert.deepEqual((await post('plain/verify')).body, {
      ok: false,
      message: "Share 'plain' is not mounted with a write layer",
    });
    assert.deepEqual(asked, []);
  });

  it('pause and send the queue of a share without a write layer, too', async () => {
    const { asked, post } = stage();
    for (const [verb, payload] of [
      ['pause', { seconds: 60 }],
      ['pause', { seconds: 0 }],
      ['send', undefined],
      ['send', { path: 'd/a' }],
    ] as const)
      assert.equal((await post(`plain/${verb}`, payload)).body.ok, true, verb);
    assert.deepEqual(asked, ['pause plain 60', 'flush plain', 'flush plain', 'send plain d/a']);
  });
});
