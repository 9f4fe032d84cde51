import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, symlinkSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { createLogger } from '../../../../core/platform/log/logger.ts';
import type { LoggerHandle, LoggerOptions } from '../../../../core/platform/log/logger.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { ODD_THROWS } from '../../../support/plugins/odd-throws.ts';

const LOGGER = new URL('../../../../core/platform/log/logger.js', import.meta.url).href;

describe('logger', () => {
  let scratch: Scratch;
  let count = 0;
  before(async () => {
    scratch = await createScratch('logger');
  });
  after(() => scratch.close());

  function open(
    options: Partial<LoggerOptions> = {},
  ): LoggerHandle & { file: string; text: () => string; lines: () => string[] } {
    const file = scratch.path(`log-${(count += 1)}`);
    const handle = createLogger({ file, level: 'info', json: false, ...options });
    scratch.defer(() => handle.close());
    const text = (): string => readFileSync(file, 'utf8');
    return { ...handle, file, text, lines: () => text().split('\n').slice(0, -1) };
  }

  it('writes lines for people: time, level, plugin, message, fields', () => {
    const { log, text } = open();
    log.child({ plugin: 'mount' }).info({ share: 'photos', ms: 812 }, 'share mounted');
    assert.match(
      text(),
      /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO  mount: share mounted share=photos ms=812\n$/,
    );
  });

  it("names the place in a third party's plugin where an error began", () => {
    const { log, text } = open();
    const folder = 'file:///state/plugins/garden@0123456789ab';
    const frames = [`${folder}/node_modules/spade/index.js:9:9`, `${folder}/lib/beds.js:3:7`];
    const stack = ['Error: no bed', ...frames.map((frame) => `    at dig (${frame})`)].join('\n');
    log.error({ err: Object.assign(new Error('no bed'), { stack }) }, 'failed');
    log.error({ err: { type: 'Error', message: 'no bed', stack } }, 'as another process wrote it');
    log.error({ err: new Error('of ours') }, 'failed');
    const at = 'error="no bed" at=lib/beds.js:3:7';
    const ends = [` failed ${at}`, ` it ${at}`, ' failed error="of ours"'];
    assert.deepEqual(
      text()
        .trimEnd()
        .split('\n')
        .map((line, index) => line.endsWith(ends[index] ?? '')),
      [true, true, true],
    );
  });

  for (const json of [false, true])
    it(`writes a line of whatever was thrown${json ? ', as JSON' : ''}`, () => {
      const { log, lines } = open({ json });
      for (const thrown of Object.values(ODD_THROWS)) log.error({ err: thrown }, 'failed');
      assert.equal(lines().length, Object.keys(ODD_THROWS).length);
      assert.ok(lines().every((line) => line.length < 200_000));
      const round = lines()[Object.keys(ODD_THROWS).indexOf('a frozen error')];
      assert.match(round ?? '', json ? /"message":"frozen"/ : / failed error=frozen$/);
    });

  it('has so many lines about a third party’s plugin, whoever writes them, and says how many it left out', () => {
    let nowMs = 0;
    const { log, limit, text, lines } = open({ clock: { monotonic: () => nowMs } });
    limit((plugin) => plugin === 'odd');
    const [own, ours] = [log.child({ plugin: 'odd' }), log.child({ plugin: 'mount' })];
    for (let one = 0; one < 120; one += 1) {
      own.info(`own ${one}`);
      log.error({ plugin: 'odd', reason: `bad ${one}` }, 'cannot be used');
      ours.info('ours');
      log.info('the core');
    }
    const count = (what: RegExp): number => lines().filter((line) => what.test(line)).length;
    assert.deepEqual([count(/ odd: /), count(/ mount: ours/), count(/ the core/)], [100, 120, 120]);
    nowMs = 1_000;
    own.info('again');
    assert.match(
      text(),
      / WARN {2}odd: there is too much to log of the plugin; lines were left out lines=140\n.*again\n$/,
    );
    for (let second = 2; second < 60; second += 1) {
      nowMs = second * 1_000;
      for (let one = 0; one < 20; one += 1) log.error({ plugin: 'odd', reason: 'x'.repeat(5_000) }, 'long');
    }
    const { length } = text();
    assert.ok(length > 2_000_000 && length < 2_200_000, `${length} characters in a minute`);
  });

  it('quotes what has blanks, and leaves names of any language readable', () => {
    const { log, text } = open();
    log.warn({ share: '照 片', other: '照片', empty: '', list: [1, 'a b'], no: null }, 'odd');
    assert.match(text(), / WARN {2}odd share="照 片" other=照片 empty="" list=\[1,"a b"\] no=null\n$/);
  });

  it('keeps one entry on one line, whatever its values hold', () => {
    const { log, lines } = open();
    const nasty = 'a\nb\r\u001b[31mred\u2028\u0085\u202e\u061c\u200b\u2060\ufeff';
    log
      .child({ plugin: nasty })
      .error({ share: nasty, [nasty]: 1, deep: { nasty }, err: new Error(nasty) }, nasty);
    assert.equal(lines().length, 1);
    assert.doesNotMatch(
      lines()[0] ?? '',
      /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u061c\u200b\u2060\ufeff]/,
    );
  });

  it('tells an error with its causes, and where a bug happened', () => {
    const { log, lines } = open();
    log.error(
      { err: new Error('mount share photos', { cause: new Error('port 22 refused') }) },
      'share failed',
    );
    log.error({ err: new TypeError('x is not a function') }, 'cycle failed');
    assert.match(lines()[0] ?? '', /share failed error="mount share photos: port 22 refused"$/);
    assert.match(lines()[1] ?? '', /error="x is not a function" stack="TypeError: .*logger\.test/);
  });

  it('writes JSON on request, one entry a line', () => {
    const { log, lines } = open({ json: true });
    log.child({ plugin: 'mount' }).info({ share: 'a b', password: 'hunter2' }, 'share mounted');
    const { time, ...entry } = JSON.parse(lines()[0] ?? '') as Record<string, unknown>;
    assert.equal(typeof time, 'string');
    assert.deepEqual(entry, {
      level: 'info',
      plugin: 'mount',
      share: 'a b',
      password: '********',
      msg: 'share mounted',
    });
  });

  it('masks secrets by the names of their keys, at any depth and in bindings of children', () => {
    for (const json of [true, false]) {
      const { log, text } = open({ json, redact: ['pin'] });
      const secret = 'hunter2';
      const fields = {
        password: secret,
        rc_pass: secret,
        pass: secret,
        sftpPass: secret,
        a: { b: [{ webhook_secret: secret, 'Set-Cookie': secret }] },
        apiKey: secret,
        webhook_url: secret,
        connection_string: secret,
        access_grant: secret,
        headers: { authorization: secret },
        PIN: secret,
      };
      log
        .child({ bearer_token: secret })
        .info({ ...fields, err: Object.assign(new Error('refused'), { password: secret }) }, 'called');
      log.info({ url: `sftp://user:${secret}@nas:22/x` }, `at http://user:${secret}@nas/`);
      assert.doesNotMatch(text(), /hunter2/);
      assert.match(text(), /called/);
      assert.match(text(), /sftp:\/\/user:\*{8}@nas:22\/x/);
    }
  });

  it('masks a long password with slashes in an address', () => {
    const { log, text } = open();
    const long = `${'hunter2'.repeat(40)}/${'x+y/'.repeat(11)}hunter2`;
    log.info(`at https://user:${long}@nas:8443/x and https://nas:8443/x`);
    assert.match(text(), /at https:\/\/user:\*{8}@nas:8443\/x and https:\/\/nas:8443\/x/);
  });

  it('says of what is no error only what went wrong', () => {
    for (const json of [true, false]) {
      const { log, text } = open({ json });
      const password = 'hunter2';
      for (const err of [
        { status: 401, password },
        Object.assign(() => 1, { password }),
        new Error('no bed', { cause: { password } }),
        Object.defineProperty(new Error('odd', { cause: { password } }), 'stack', { value: 5 }),
      ])
        log.error({ err }, 'refused');
      assert.doesNotMatch(text(), /hunter2/);
      assert.match(text(), /it threw \{ status: 401 \}, which is no error/);
    }
  });

  it('does not mask what only sounds like a secret', () => {
    const { log, text } = open();
    log.info(
      { passes: 3, path: '/a', compass: 'north', has_password: true, password: '', url: 'http://nas:22/a@b' },
      'ok',
    );
    assert.match(text(), /passes=3 path=\/a compass=north/);
    assert.match(text(), /has_password=true password="" url=http:\/\/nas:22\/a@b/);
  });

  it('survives values that cannot be written', () => {
    const { log, text } = open();
    const loop: Record<string, unknown> = {};
    loop['self'] = loop;
    let deep: Record<string, unknown> = {};
    for (let level = 0; level < 200; level += 1) deep = { deep };
    log.info({ loop, deep, big: 10n, fn: () => 1 }, 'still here');
    assert.match(text(), /still here/);
  });

  it('follows a change of level, also in children', () => {
    const { log, setLevel, text } = open();
    const child = log.child({ plugin: 'mount' });
    child.debug('unseen');
    setLevel('debug');
    child.debug('seen');
    assert.doesNotMatch(text(), /unseen/);
    assert.match(text(), /DEBUG mount: seen/);
  });

  it('goes on in a new file after rotation', () => {
    const { log, reopen, file } = open();
    log.info('one');
    renameSync(file, `${file}.1`);
    log.info('two');
    reopen();
    log.info('three');
    assert.match(readFileSync(`${file}.1`, 'utf8'), /one\n.*two\n$/);
    assert.match(readFileSync(file, 'utf8'), /^[^\n]*three\n$/);
  });

  it('keeps the old file when the new one cannot be opened', () => {
    mkdirSync(scratch.path('moved'));
    const file = scratch.path('moved', 'log');
    const handle = createLogger({ file, level: 'info', json: false });
    renameSync(scratch.path('moved'), scratch.path('elsewhere'));
    assert.throws(() => handle.reopen(), /cannot write the log file .* its folder does not exist/);
    handle.log.info('still written');
    handle.close();
    assert.match(readFileSync(scratch.path('elsewhere', 'log'), 'utf8'), /still written/);
  });

  it('says in plain words why a file cannot be written', () => {
    assert.throws(
      () => createLogger({ file: scratch.path('no', 'such', 'log'), level: 'info', json: false }),
      /cannot write the log file .*no\/such\/log: its folder does not exist; create it or change log\.file/,
    );
    assert.throws(() => createLogger({ file: scratch.root, level: 'info', json: false }), /it is a folder/);
  });

  it('makes a file that strangers cannot read and leaves the rights of an existing one', () => {
    const first = open();
    assert.equal(statSync(first.file).mode & 0o007, 0);
    first.close();
    chmodSync(first.file, 0o600);
    createLogger({ file: first.file, level: 'info', json: false }).close();
    assert.equal(statSync(first.file).mode & 0o777, 0o600);
  });

  it('outlives a full disk', () => {
    const file = scratch.path('full');
    symlinkSync('/dev/full', file);
    const { log, close } = createLogger({ file, level: 'info', json: false });
    for (let line = 0; line < 5_000; line += 1) log.info({ line, filler: 'x'.repeat(300) }, 'not written');
    close();
  });

  it('loses no line when the process is killed', async () => {
    const file = scratch.path('killed');
    const script = `const { createLogger } = await import(${JSON.stringify(LOGGER)});
      const { log } = createLogger({ file: ${JSON.stringify(file)}, level: 'info', json: false });
      for (let line = 0; line < 2000; line += 1) log.info({ line }, 'written');
      process.kill(process.pid, 'SIGKILL');`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'ignore' });
    const [, signal] = (await once(child, 'exit')) as [number | null, string | null];
    assert.equal(signal, 'SIGKILL');
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    assert.equal(lines.length, 2_000);
    assert.match(lines.at(-1) ?? '', /line=1999$/);
  });
});
