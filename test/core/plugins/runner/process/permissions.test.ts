/** What a plugin's process may do, by the permissions in its package.json: tried in real runners. */
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { Permission, PluginInfo } from '../../../../../core/contract/services.ts';
import { readPackage } from '../../../../../core/plugins/discovery/manifest.ts';
import { packageDir, prepareStage, stagePlugin } from '../../../../../core/plugins/discovery/stage.ts';
import { DEFAULT_PERMISSIONS, inWords } from '../../../../../core/plugins/permissions.ts';
import { declarationFrom } from '../../../../../core/plugins/runner/process/first-run.ts';
import { ownFolder } from '../../../../../core/plugins/runner/process/confinement.ts';
import { tellNotKept } from '../../../../../core/plugins/plugin-info.ts';
import { notKeptFrom, Runners } from '../../../../../core/plugins/runner/runners.ts';
import { collectLog } from '../../../../support/platform/collected-log.ts';
import { createScratch } from '../../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../../support/platform/scratch-folder.ts';
import { supervisorOf } from '../../../../support/plugins/supervised-runner.ts';

const NAME = 'asker';
const source = (early: string, body = ''): string => `import { definePlugin } from 'mountkeeper';
import { connect } from 'node:net';
import { readFileSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { Worker } from 'node:worker_threads';
void [connect, readFileSync, writeFileSync, spawnSync, Worker];
${early}
export default definePlugin({ name: '${NAME}', version: '1.0.0', apiVersion: 1, description: 'Asks.',
  requires: [${body.includes("use('status')") ? "'status'" : ''}],
  register(ctx) { ${body} } });
`;

describe('permissions in package.json', () => {
  const permissionsOf = (mountkeeper: object): readonly Permission[] =>
    readPackage(JSON.stringify({ type: 'module', main: 'index.js', mountkeeper })).permissions;

  it('are a default where they are left out, and exactly what is said where they are not', () => {
    assert.deepEqual(permissionsOf({}), DEFAULT_PERMISSIONS);
    assert.deepEqual(permissionsOf({ permissions: [] }), []);
    assert.deepEqual(permissionsOf({ permissions: ['network', 'files', 'network'] }), ['network', 'files']);
    assert.equal(inWords(['read-status', 'processes']), 'read the status, start processes');
  });

  it('are told with all that they allow, also where package.json says nothing', () => {
    assert.equal(
      inWords(permissionsOf({})),
      'read the status, limit the bandwidth, reconnect shares, send notifications, ' +
        'use the network and the services of this machine, keep files in its own folder',
    );
  });

  it('are what they were where package.json still names one that is no more', () => {
    assert.deepEqual(permissionsOf({ permissions: ['network', 'change-config'] }), ['network']);
  });

  it('are refused where they are no permissions', () => {
    assert.throws(
      () => permissionsOf({ permissions: ['root'] }),
      /permission "root", which does not exist; there are read-/,
    );
    assert.throws(() => permissionsOf({ permissions: ['toString'] }), /"toString", which does not exist/);
    assert.throws(() => permissionsOf({ permissions: 'network' }), /must be a list of these: read-status,/);
  });
});

describe('the process of a plugin', { timeout: 120_000 }, () => {
  let scratch: Scratch;
  let stateDir: string;
  let secret: string;
  let made = 0;
  before(async () => {
    scratch = await createScratch('permissions');
    stateDir = scratch.path('state');
    secret = scratch.path('secret.txt');
    await writeFile(secret, 'the secret');
    await prepareStage(stateDir);
    await mkdir(ownFolder({ stateDir, name: NAME }), { recursive: true });
    await mkdir(ownFolder({ stateDir, name: `${NAME}s-neighbour` }), { recursive: true });
  });
  after(() => scratch.close());

  async function staged(text: string, entry: string) {
    const folder = scratch.path('sources', String((made += 1)), NAME);
    await mkdir(folder, { recursive: true });
    await writeFile(`${folder}/package.json`, JSON.stringify({ type: 'module', main: entry }));
    await writeFile(`${folder}/${entry}`, text);
    const hasTypes = entry.endsWith('.ts');
    const { folder: copy } = await stagePlugin(folder, NAME, stateDir, {
      hasTypes: () => Promise.resolve(hasTypes),
    });
    return { folder: copy, entry: `${copy}/${entry}` };
  }

  const declared = async (text: string, permissions: readonly Permission[], entry = 'index.js') =>
    declarationFrom({
      ...(await staged(text, entry)),
      name: NAME,
      declared: { guard: false, shareKeys: [], permissions },
      stateDir,
      timeoutMs: 30_000,
    });

  /** What each does when it is imported, what it needs for that, and what it is told without. */
  const DEEDS = (): readonly (readonly [what: string, code: string, needs: Permission, told: RegExp])[] => {
    const neighbour = `${ownFolder({ stateDir, name: `${NAME}s-neighbour` })}/x`;
    return [
      [
        'read a file of the machine',
        `readFileSync('${secret}')`,
        'files',
        /without the permission "files" \(.*secret\.txt\); add "files" to "mountkeeper": \{ "permissions"/,
      ],
      [
        'write beside another plugin',
        `writeFileSync('${neighbour}', '')`,
        'files',
        /without the permission "files" \(.*neighbour\/x\)/,
      ],
      [
        'change its own code',
        `writeFileSync(new URL('x.js', import.meta.url), '')`,
        'files',
        /without the permission "files"/,
      ],
      [
        'keep a file',
        `writeFileSync('${ownFolder({ stateDir, name: NAME })}/x', '')`,
        'own-files',
        /without the permission "own-files" \(.*asker\/x\)/,
      ],
      [
        'start a process',
        `{ const { error } = spawnSync('true'); if (error) throw error; }`,
        'processes',
        /without the permission "processes"/,
      ],
      [
        'start a thread',
        `await new Worker('0', { eval: true }).terminate()`,
        'workers',
        /without the permission "workers"/,
      ],
    ];
  };

  it('is kept from what it has no permission for, and told which; with it, it may', async () => {
    for (const [what, code, needs, sentence] of DEEDS()) {
      const others = DEFAULT_PERMISSIONS.filter((one) => one !== needs);
      await assert.rejects(declared(source(code), others), sentence, what);
      await assert.doesNotReject(declared(source(code), [...others, needs]), what);
    }
  });

  it('reaches nobody without the permission to use the network', async (t) => {
    const heard: string[] = [];
    const server = createServer((socket) => {
      heard.push('a call');
      socket.end();
    }).listen(0, '127.0.0.1');
    t.after(() => server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    const call = source(
      `await new Promise((resolve, reject) => connect(${port}, '127.0.0.1', resolve).on('error', reject));`,
    );
    await declared(call, ['network']);
    assert.deepEqual(heard, ['a call']);
    await assert.rejects(declared(call, ['files']), /ENETUNREACH|ECONNREFUSED/);
    assert.deepEqual(heard, ['a call']);
  });

  it('is named where the machine makes no network of its own for it', async (t) => {
    const load = async (permissions: readonly Permission[]) => {
      const request = { name: NAME, stateDir, timeoutMs: 30_000 };
      const place = await staged(source(`'${String(permissions)} ${made}'`), 'index.js');
      const declared_ = { guard: false, shareKeys: [], permissions };
      return new Runners({ log: collectLog().log }).load(
        { ...request, ...place, declared: declared_ },
        'own',
      );
    };
    assert.equal(notKeptFrom(await load([])), undefined);
    const usual = process.env['PATH'];
    t.after(() => {
      process.env['PATH'] = usual;
    });
    await mkdir(scratch.path('bin'));
    await writeFile(scratch.path('bin', 'unshare'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    process.env['PATH'] = `${scratch.path('bin')}:${usual}`;
    const kept = await load([]);
    assert.match(notKeptFrom(kept) ?? '', /^it can use the network though it has no permission for it: /);
    assert.equal(notKeptFrom(await load(['network'])), undefined);
    const told: (readonly [string, string | undefined])[] = [];
    const info = { name: NAME, state: 'active', notKept: notKeptFrom(kept) } as unknown as PluginInfo;
    const tell = (...words: readonly [string, string | undefined]): void => void told.push(words);
    tellNotKept([info], [], tell);
    tellNotKept([info], [info], tell);
    tellNotKept([{ ...info, state: 'failed' }], [info], tell);
    assert.deepEqual(told, [
      [NAME, notKeptFrom(kept)],
      [NAME, undefined],
    ]);
  });

  it('hears nothing of the status without the permission to read it', async () => {
    const uses = source(
      '',
      "ctx.every({ name: 'x', ms: () => 1, run: async () => { ctx.use('status'); } });",
    );
    await assert.rejects(
      declared(uses, []),
      /it uses the service "status" without the permission "read-status"/,
    );
    await declared(uses, ['read-status']);
    for (const body of [
      "ctx.tap('afterMount', () => undefined);",
      "ctx.handle('notify', async () => undefined);",
      'ctx.shareStatus({ defaults: {}, read: () => ({}) });',
      "ctx.webhookFormat({ name: 'card', render: () => ({ body: '' }) });",
      "ctx.on('nas-watch:changed', () => undefined);",
    ])
      await assert.rejects(declared(source('', body), ['network']), /without the permission "read-status"/);
    await declared(source('', "ctx.tap('collectNotices', () => []);"), []);
  });

  it('limits no bandwidth without the permission to send commands', async () => {
    for (const body of [
      "ctx.tap('collectShareLimits', () => []);",
      "ctx.tap('resolveBandwidth', (budget) => budget);",
    ]) {
      await assert.rejects(
        declared(source('', body), ['read-status', 'network']),
        /it uses ctx\.tap\("\w+"\) without the permission "send-commands"; add "send-commands" to/,
      );
      await declared(source('', body), ['send-commands']);
    }
  });

  it('keeps no share from being mounted without the permission for that, which nobody has by default', async () => {
    const holds = source('', "ctx.tap('beforeMount', () => 'no');");
    await assert.rejects(
      declared(holds, DEFAULT_PERMISSIONS),
      /it uses ctx\.tap\("beforeMount"\) without the permission "hold-mounts"; add "hold-mounts" to/,
    );
    await declared(holds, ['hold-mounts']);
  });

  it('is TypeScript as well, with no permission at all', async () => {
    const { labels } = await declared(
      source('const one: number = 1; void one;', "ctx.effect('a', () => () => undefined);"),
      [],
      'index.ts',
    );
    assert.deepEqual(labels, ['a']);
  });

  it('sends no command without the permission to, and keeps documents with that for its own files', async () => {
    const run = async (
      permissions: readonly Permission[],
    ): Promise<readonly [sent: string[], said: unknown[]]> => {
      const place = await staged(
        source(
          '',
          `ctx.effect('one', async () => {
            await ctx.send('reconnect', 'team').catch((error) => ctx.log.info(error.message));
            const seen = await ctx.use('store').open('seen', { version: 1, initial: 0 });
            await seen.save(seen.value + 1);
            return () => undefined; });`,
        ).replace('requires: []', "requires: ['store']"),
        'index.js',
      );
      const sent: string[] = [];
      const { log, entries } = collectLog();
      const ctx = { log, send: async (name: string) => void sent.push(name) };
      const supervisor = supervisorOf(ctx, { ...place, permissions, name: NAME, stateDir, packageDir });
      await supervisor.start();
      await supervisor.stop('shutdown');
      return [sent, entries.map(({ msg }) => msg)];
    };
    assert.deepEqual(await run(['send-commands', 'own-files']), [['reconnect'], []]);
    const [sent, said] = await run(['own-files']);
    assert.deepEqual(sent, []);
    assert.match(
      String(said[0]),
      /ctx\.send\("reconnect"\) needs the permission "send-commands"; add "send-commands" to/,
    );
    const kept = await readFile(`${ownFolder({ stateDir, name: NAME })}/seen.json`, 'utf8');
    assert.deepEqual(JSON.parse(kept), { version: 1, value: 2 });
    await assert.rejects(run(['send-commands']), /without the permission "own-files" \(.*seen\.json.*\)/);
  });
});
