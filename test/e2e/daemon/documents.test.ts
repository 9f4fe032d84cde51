// @start 6
// @long
/** Random and mutated documents, over HTTP and on disk: never a crash, never something in between. */
import assert from 'node:assert/strict';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { applied } from '../../support/config/applied-config.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { seeded, strangeDocument } from '../../support/config/random-documents.ts';
import { Nas } from '../../support/nas/nas.ts';
import { inForm } from '../../support/platform/long-form.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';

/** Each costs what a change of the configuration costs. */
const OVER_HTTP = inForm({ short: 250, long: 1_900 });
const ON_DISK = inForm({ short: 16, long: 100 });
/** Each document on disk waits until the file is quiet: so many daemons do that beside each other. */
const DAEMONS = 2;
const SEED = 20_240_917;

interface Keeper {
  readonly daemon: Daemon;
  readonly base: string;
  running(): Promise<string>;
}

async function openKeeper(scratch: Scratch): Promise<Keeper> {
  const nas = await Nas.create(scratch, { files: { 'a/x.bin': 1000, 'b/y.bin': 1000 } });
  const daemon = await Daemon.create(scratch, {
    connections: [nas.connection('nas')],
    shares: [
      { name: 'work', connection: 'nas', remote_path: 'a' },
      { name: 'other', connection: 'nas', remote_path: 'b' },
    ],
  });
  await daemon.start();
  await daemon.healthy();
  return { daemon, base: daemon.text(), running: async () => (await daemon.get('/api/config')).text };
}

async function isWell({ daemon, base }: Keeper): Promise<void> {
  assert.ok(daemon.alive);
  await applied(daemon, base);
  assert.doesNotMatch(await daemon.output(), /uncaught|unhandled/i);
}

describe('strange documents', { concurrency: true }, () => {
  describe('over HTTP', { concurrency: 1 }, () => {
    let scratch: Scratch;
    let keeper: Keeper;

    before(async () => {
      scratch = await createScratch('docs');
      keeper = await openKeeper(scratch);
    });
    after(() => scratch.close());

    it(`${OVER_HTTP} of them: the running configuration and the file are always the last accepted one`, async (t) => {
      const { daemon, base, running } = keeper;
      const random = seeded(SEED);
      const counts = { accepted: 0, unchanged: 0, refused: 0 };
      let text = await readFile(daemon.configFile, 'utf8');
      let before = await running();
      for (let index = 0; index < OVER_HTTP; index += 1) {
        const document = strangeDocument(base, random);
        const { status, body } = await daemon.submit(document);
        const where =
          `document ${index} of seed ${SEED}: ${JSON.stringify(document.slice(0, 300))} → ` +
          `${status} ${JSON.stringify(body)}`;
        assert.ok(typeof body?.ok === 'boolean' && typeof body.message === 'string', where);
        if (body.message === 'Config applied successfully') {
          assert.equal(status, 200, where);
          counts.accepted += 1;
          text = document;
          // A new [web] address is obeyed: what listens elsewhere cannot be asked here any more.
          const after = await until(
            'the accepted configuration runs',
            async () => {
              const now = await running();
              return now !== before ? now : undefined;
            },
            { timeoutMs: 30_000, everyMs: 10 },
          ).catch((cause: unknown) => assert.fail(`${where}: ${String(cause)}`));
          before = after;
        } else if (body.message === 'No changes detected') counts.unchanged += 1;
        else {
          counts.refused += 1;
          assert.equal(status, 400, where);
          assert.match(body.message, /^(TOML parse error|Validation error): ./s, where);
          assert.equal(body.diff_summary, null, where);
          assert.equal(await running(), before, where);
        }
        if (index % 50 === 0) assert.equal(await readFile(daemon.configFile, 'utf8'), text, where);
      }
      t.diagnostic(JSON.stringify(counts));
      assert.equal(await readFile(daemon.configFile, 'utf8'), text);
      assert.ok(counts.accepted > OVER_HTTP / 19 && counts.refused > OVER_HTTP / 4, JSON.stringify(counts));
    });

    it('is the same process, with its shares healthy', () => isWell(keeper));

    it('a body that is no JSON, lacks "toml" or is too large is a client error in the same shape', async () => {
      const { daemon, running } = keeper;
      const before = await running();
      const bodies: unknown[] = [
        '{',
        '[]',
        'null',
        '"x"',
        {},
        { toml: 5 },
        { toml: null },
        '',
        { toml: `# ${'x'.repeat(20_000_000)}` },
      ];
      for (const body of bodies) {
        const answer = await daemon
          .request<{ ok: boolean; message: string; diff_summary: null }>('POST', '/api/config', body)
          .catch((error: unknown) => assert.fail(`${JSON.stringify(body).slice(0, 50)}: ${String(error)}`));
        const where = `${JSON.stringify(body).slice(0, 50)} → ${answer.status} ${answer.text.slice(0, 200)}`;
        assert.ok(answer.status >= 400 && answer.status < 500, where);
        assert.deepEqual(
          [answer.body.ok, typeof answer.body.message, answer.body.diff_summary],
          [false, 'string', null],
          where,
        );
      }
      assert.equal(await running(), before);
    });
  });

  for (let part = 0; part < DAEMONS; part += 1) {
    it(`on disk, ${ON_DISK / DAEMONS} of them (${part + 1}): bad ones change nothing, good ones apply`, async (t) => {
      const scratch = await createScratch(`docs-disk-${part}`);
      t.after(() => scratch.close());
      const keeper = await openKeeper(scratch);
      const { daemon, base, running } = keeper;
      const random = seeded(SEED + 1 + part);
      const marked = (mark: number): string => `[notifications]\nwriteback_depth = ${mark + 1}\n\n${base}`;
      for (let index = 0; index < ON_DISK / DAEMONS; index += 1) {
        // A burst: a strange one, and soon after one that is good; by rename and in place in turn.
        await writeFile(daemon.configFile, strangeDocument(base, random));
        if (index % 3 === 0) await sleep(random() * 700);
        const good = marked(index);
        if (index % 2 === 0) await writeFile(daemon.configFile, good);
        else {
          await writeFile(`${daemon.configFile}.new`, good);
          await rename(`${daemon.configFile}.new`, daemon.configFile);
        }
        await until(
          `good document ${index} runs`,
          async () => new RegExp(`"writeback_depth":${index + 1}[,}]`).test(await running()),
          { timeoutMs: 30_000, everyMs: 20 },
        );
      }
      await isWell(keeper);
    });
  }
});
