/** Receipts over HTTP: they are begun, asked about and given up when nobody asks. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Clock } from 'mountkeeper';
import { ReceiptJobs } from '../../../../plugins/uploads/proof/receipt-jobs.ts';
import type { ProofOptions } from '../../../../plugins/uploads/proof/proof-jobs.ts';
import type { Receipt } from '../../../../plugins/uploads/proof/receipt.ts';

const UNPROVED: Receipt = { root: 'd', proved: [], unproved: [{ path: 'd/a', reason: 'It waits.' }] };

/** A clock whose timers run when the test says so, and a share whose receipts end when the test says so. */
function stage() {
  const timers = new Set<() => void>();
  const clock = {
    now: () => 0,
    after: (_ms: number, fn: () => void) => {
      timers.add(fn);
      return () => void timers.delete(fn);
    },
  } as unknown as Clock;
  const asked: (ProofOptions & { readonly end: (result: Receipt | Error) => void })[] = [];
  const uploads = {
    receipt: (_path: string, options: ProofOptions): Promise<Receipt> =>
      new Promise((resolve, reject) =>
        asked.push({
          ...options,
          end: (result) => (result instanceof Error ? reject(result) : resolve(result)),
        }),
      ),
  };
  const jobs = new ReceiptJobs({ clock: () => clock, version: '1.0.0' });
  const start = (): string => jobs.start({ share: 'files', path: 'd', uploads });
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return { timers, asked, jobs, start, settled };
}

describe('receipts that are being made', () => {
  it('tell how far they are, and in the end what is not proved', async () => {
    const { jobs, asked, start, settled } = stage();
    const id = start();
    asked[0]!.onProgress(2, 5);
    const running = jobs.get('files', id);
    assert.deepEqual(
      [running?.state, running?.checked, running?.files, running?.hash_list],
      ['running', 2, 5, null],
    );
    asked[0]!.end(UNPROVED);
    await settled();
    const done = jobs.get('files', id);
    assert.deepEqual([done?.state, done?.is_complete, done?.unproved], ['done', false, UNPROVED.unproved]);
    assert.match(done?.hash_list ?? '', /^<\?xml /);
    assert.equal(jobs.get('other', id), undefined, 'it is of another share');
  });

  it('fail in the words of the remote, and have no list then', async () => {
    const { jobs, asked, start, settled } = stage();
    const id = start();
    asked[0]!.end(new Error('The NAS does not answer.'));
    await settled();
    const failed = jobs.get('files', id);
    assert.deepEqual(
      [failed?.state, failed?.message, failed?.hash_list, failed?.is_complete],
      ['failed', 'The NAS does not answer.', null, false],
    );
  });

  it('are given up and forgotten when nobody asks about them', () => {
    const { jobs, asked, start, timers } = stage();
    const id = start();
    jobs.get('files', id);
    assert.equal(timers.size, 1, 'each question begins the time anew');
    for (const fire of timers) fire();
    assert.equal(asked[0]!.signal.aborted, true);
    assert.equal(jobs.get('files', id), undefined);
  });

  it('are four at a time; one whose end was heard gives way to a new one, no other', async () => {
    const { jobs, asked, start, settled } = stage();
    const [first] = [start(), start(), start(), start()];
    assert.throws(start, /4 receipts are being made/);
    asked[0]!.end(UNPROVED);
    await settled();
    assert.throws(start, /wait to be fetched/, 'hours of reading must not be thrown away unread');
    assert.equal(jobs.get('files', first!)?.state, 'done');
    start();
    assert.equal(jobs.get('files', first!), undefined);
  });
});
