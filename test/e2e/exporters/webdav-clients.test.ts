import assert from 'node:assert/strict';
import { randomBytes, X509Certificate } from 'node:crypto';
import { copyFile, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { Daemon } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { createAuthority } from '../../support/http/certificates.ts';
import type { Nas } from '../../support/nas/nas.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { openWebdavShare, PASSWORD, SHARE, USER } from '../../support/exports/webdav-share.ts';
import { copyAsFinder, saveAsExplorer } from '../../support/exports/webdav-desktops.ts';
import type { WebdavShare } from '../../support/exports/webdav-share.ts';
import { flagged, localFile, runClient } from '../../support/exports/client-programs.ts';

describe('what WebDAV clients do to files that are there', () => {
  let scratch: Scratch;
  let nas: Nas;
  let files: Files;
  let daemon: Daemon;
  let url: WebdavShare['url'];
  let dav: WebdavShare['dav'];

  before(async () => {
    ({ scratch, nas, daemon, url, dav } = await openWebdavShare('dav-clients'));
    files = new Files(scratch);
  });
  after(() => scratch.close());

  it('copies and moves over a file with its time, also one that is locked', async () => {
    const { path, sum } = await localFile(scratch, 'timed', 100_000);
    await dav('-T', path, '-H', 'X-OC-Mtime: 1500000000', url('timed.bin'));
    await dav('-T', path, url('target.bin'));
    const body =
      '<?xml version="1.0"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/>' +
      '</D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>';
    const { output } = await runClient('curl', [
      '-sS',
      '-D',
      '-',
      '-o',
      '/dev/null',
      '-u',
      'alice:wonder',
      '-X',
      'LOCK',
      '-H',
      'Timeout: Second-60',
      '-d',
      body,
      url('target.bin'),
    ]);
    const token = /lock-token: <([^>]+)>/i.exec(output)?.[1] ?? assert.fail(output);
    const moveOver = (...extra: string[]) =>
      dav('-X', 'MOVE', '-H', `Destination: ${url('target.bin')}`, ...extra, url('timed.bin'));
    assert.equal(await moveOver(), 423);
    assert.equal(await moveOver('-H', `If: <${url('target.bin')}> (<${token}>)`), 204);
    assert.equal(await dav(url('timed.bin')), 404, 'the source');
    assert.equal(await files.checksum(`${daemon.mountPoint('team')}/target.bin`), sum);
    await until(
      'it is there with its time',
      async () => Math.round((await stat(nas.path('team/target.bin'))).mtimeMs / 1_000) === 1_500_000_000,
      { timeoutMs: 30_000 },
    );
  });

  const desktop = () => ({ port: Number(new URL(url()).port), share: SHARE, login: `${USER}:${PASSWORD}` });
  const onNas = (path: string, content: Buffer) =>
    until(
      `${path} is on the NAS`,
      async () => (await nas.has(path)) && (await readFile(nas.path(path))).equals(content),
      { timeoutMs: 30_000 },
    );

  it('lets Explorer and Finder save, rename and delete, request by request', async () => {
    const [fromWindows, fromMac] = [randomBytes(200_000), randomBytes(300_000)];
    await saveAsExplorer(desktop(), {
      name: 'Bericht ä.docx',
      body: fromWindows,
      renamed: 'Bericht ö (1).docx',
    });
    await copyAsFinder(desktop(), { name: 'Übersicht.key', body: fromMac });
    await onNas(`${SHARE}/Bericht ö (1).docx`, fromWindows);
    await onNas(`${SHARE}/Übersicht.key`.normalize('NFC'), fromMac);
    await until(
      'what is gone is gone on the NAS',
      async () => !(await nas.has(`${SHARE}/Bericht ä.docx`)) && !(await nas.has(`${SHARE}/._Übersicht.key`)),
      { timeoutMs: 30_000 },
    );
  });

  it('can be used from GNOME Files', async () => {
    const { path } = await localFile(scratch, 'gnome', 500_000);
    const [first, second] = [await readFile(path), randomBytes(150_000)];
    await writeFile(scratch.path('edited'), second);
    const home = scratch.path('gnome-home');
    await mkdir(home, { recursive: true, mode: 0o700 });
    const at = url().replace('http://', `dav://${USER}@`).replace(/\/$/, '');
    const script = [
      'set -e',
      `at='${at}'`,
      `printf '${PASSWORD}\n' | gio mount "$at"`,
      'gio list "$at"',
      `gio cat "$at/from nas.bin" > '${home}/back'`,
      'gio mkdir "$at/Ordner ü"',
      `gio copy '${path}' "$at/Ordner ü/erste & zweite.bin"`,
      `gio save "$at/Ordner ü/erste & zweite.bin" < '${scratch.path('edited')}'`,
      `gio copy '${path}' "$at/Ordner ü/other.bin"`,
      'gio copy "$at/Ordner ü/other.bin" "$at/Ordner ü/copy.bin"',
      'gio rename "$at/Ordner ü/other.bin" "日本.bin"',
      'gio move "$at/Ordner ü/copy.bin" "$at/moved.bin"',
      'gio rename "$at/Ordner ü" "Ordner ö"',
      'gio list "$at/Ordner ö"',
      'gio info "$at/moved.bin"',
      `gio save "$at/gone.bin" < '${path}'`,
      'gio remove "$at/gone.bin"',
      'gio mount -u "$at"',
      'echo all done',
    ].join('\n');
    const session = await runClient(
      'env',
      [
        `HOME=${home}`,
        `XDG_RUNTIME_DIR=${home}`,
        'GIO_USE_VFS=gvfs',
        'dbus-run-session',
        '--',
        'sh',
        '-c',
        script,
      ],
      120_000,
    );
    assert.match(session.output, /all done/, session.output);
    assert.deepEqual(await readFile(`${home}/back`), await readFile(nas.path(`${SHARE}/from nas.bin`)));
    await onNas(`${SHARE}/Ordner ö/erste & zweite.bin`, second);
    await onNas(`${SHARE}/Ordner ö/日本.bin`, first);
    await onNas(`${SHARE}/moved.bin`, first);
    await until(
      'the rest is gone',
      async () => !(await nas.has(`${SHARE}/gone.bin`)) && !(await nas.has(`${SHARE}/Ordner ü`)),
      { timeoutMs: 30_000 },
    );
  });

  it('lists a folder with the same properties that each file has when asked for alone', async () => {
    const { path } = await localFile(scratch, 'told', 20_000);
    assert.equal(await dav('-X', 'MKCOL', url('told/')), 201);
    assert.equal(await dav('-X', 'MKCOL', url('told/inner/')), 201);
    for (const name of ['one.txt', 'a%26b%20%E7%85%A7.jpg'])
      assert.equal(await dav('-T', path, url(`told/${name}`)), 201);
    /** By path: what is told of it, the values of what does not change while a file goes up. */
    const told = async (
      depth: string,
      at: string,
      ...args: string[]
    ): Promise<Record<string, readonly string[]>> => {
      const { output } = await runClient('curl', [
        '-sS',
        '-u',
        `${USER}:${PASSWORD}`,
        '-X',
        'PROPFIND',
        '-H',
        `Depth: ${depth}`,
        ...args,
        at,
      ]);
      const entries = [...output.matchAll(/<D:response><D:href>([^<]*)<\/D:href>(.*?)<\/D:response>/gs)];
      return Object.fromEntries(
        entries.map(([, href = '', rest = '']) => [
          href,
          [...rest.matchAll(/<D:(?:displayname|getcontentlength|getcontenttype|status)>[^<]*|<D:\w+[^>]*>/g)]
            .map(([one]) => one)
            .sort(),
        ]),
      );
    };
    const each = await Promise.all(
      ['told/', 'told/inner/', 'told/one.txt', 'told/a%26b%20%E7%85%A7.jpg'].map((one) =>
        told('0', url(one)),
      ),
    );
    const alone = Object.assign({}, ...each) as Record<string, readonly string[]>;
    assert.equal(Object.keys(alone).length, 4);
    assert.deepEqual(await told('1', url('told/')), alone);
    assert.deepEqual(
      await told(
        '1',
        url('told/'),
        '-d',
        '<?xml version="1.0"?><D:propfind xmlns:D="DAV:"><D:allprop/></D:propfind>',
      ),
      alone,
    );
  });

  it('serves its users while other clients misbehave', async () => {
    const { port } = desktop();
    const silent: Socket[] = [];
    scratch.defer(() => silent.forEach((socket) => socket.destroy()));
    for (let count = 0; count < 600; count += 1)
      silent.push(connect(port, '127.0.0.1').on('error', () => undefined));
    // Each entity is ten times the one before it.
    const entities = Array.from({ length: 9 }, (_, index) => {
      const before = `&${'abcdefghi'[index]};`;
      return `<!ENTITY ${'bcdefghij'[index]} "${before.repeat(10)}">`;
    });
    const bomb =
      `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">${entities.join('')}` +
      ']><D:propfind xmlns:D="DAV:"><D:prop><D:x>&j;</D:x></D:prop></D:propfind>';
    const asked = (...args: string[]) => dav('--max-time', '20', ...args);
    const answers: Record<string, number> = {
      bomb: await asked('-X', 'PROPFIND', '-H', 'Depth: 0', '-d', bomb, url('from%20nas.bin')),
      nested: await asked(
        '-X',
        'PROPFIND',
        '-H',
        'Depth: 0',
        '-d',
        `<D:propfind xmlns:D="DAV:"><D:prop>${'<a>'.repeat(30_000)}`,
        url('from%20nas.bin'),
      ),
      long: await asked(url('x'.repeat(300))),
      deep: await asked(url(Array.from({ length: 2_000 }, () => 'abc').join('/'))),
      foreignToken: await asked(
        '-T',
        scratch.path('edited'),
        '-H',
        'If: <http://other/elsewhere/x> (<opaquelocktoken:1>)',
        url('refused.bin'),
      ),
      plainToken: await asked(
        '-T',
        scratch.path('edited'),
        '-H',
        'If: (<opaquelocktoken:1>)',
        url('refused.bin'),
      ),
      elsewhere: await asked(
        '-X',
        'MOVE',
        '-H',
        'Destination: http://evil.example/team/x',
        url('from%20nas.bin'),
      ),
      ranges: await asked(
        '-H',
        `Range: bytes=${Array.from({ length: 500 }, (_, index) => `${index * 2}-${index * 2}`).join(',')}`,
        url('from%20nas.bin'),
      ),
      infinite: await asked('-X', 'PROPFIND', '-H', 'Depth: infinity', url()),
      good: await asked(url('from%20nas.bin')),
    };
    assert.deepEqual(answers, {
      bomb: 400,
      nested: 400,
      long: 404,
      deep: 404,
      foreignToken: 412,
      plainToken: 412,
      elsewhere: 502,
      ranges: 416,
      infinite: 403,
      good: 200,
    });
    await flagged(daemon, { webdav_running: true });
  });

  // The last one: nothing of the others is asked over TLS.
  it('lets them in over TLS alone where the file says so, and keeps them through new certificates', async () => {
    const authority = await createAuthority(scratch.path('ca'));
    const pairs = { one: await authority.issue('one'), two: await authority.issue('two') };
    const used = { certificate: scratch.path('used.pem'), key: scratch.path('used.key') };
    const use = async ({ certificate, key }: typeof used): Promise<string> => {
      await copyFile(key, used.key);
      await copyFile(certificate, used.certificate);
      return new X509Certificate(await readFile(certificate)).fingerprint256;
    };
    const { port } = desktop();
    const connectTo = ['-connect', `127.0.0.1:${port}`];
    const handshake = (...args: string[]) => runClient('openssl', ['s_client', ...connectTo, ...args]);
    const shown = async (): Promise<string> => {
      const pem = /-----BEGIN[^]+?END CERTIFICATE-----/.exec((await handshake('-showcerts')).output)?.[0];
      return pem === undefined ? '' : new X509Certificate(pem).fingerprint256;
    };
    const shows = (fingerprint: string): Promise<unknown> =>
      until('the certificate is shown', async () => (await shown()) === fingerprint, { timeoutMs: 30_000 });
    const secure = ['--cacert', authority.root];
    const at = (path: string): string => url(path).replace('http:', 'https:');

    const first = await use(pairs.one);
    await daemon.writeConfig(daemon.text({ sections: { webdav: { tls: used } } }));
    await shows(first);
    await flagged(daemon, { webdav_running: true });
    assert.notEqual((await runClient('curl', ['-sS', '-o', '/dev/null', url()])).code, 0, 'plain HTTP');
    assert.equal(await dav(...secure, at('from%20nas.bin')), 200);
    assert.match((await handshake('-CAfile', authority.root)).output, /Verify return code: 0 \(ok\)/);
    for (const old of ['-tls1', '-tls1_1'])
      assert.notEqual((await handshake(old, '-cipher', 'DEFAULT@SECLEVEL=0')).code, 0, old);
    assert.notEqual((await handshake('-tls1_2', '-cipher', 'NULL:RC4:3DES:EXPORT:aNULL')).code, 0, 'ciphers');

    const ca = await readFile(authority.root);
    const saved = randomBytes(100_000);
    await saveAsExplorer(
      { ...desktop(), ca },
      { name: 'tls.docx', body: saved, renamed: 'sent by TLS.docx' },
    );
    await copyAsFinder({ ...desktop(), ca }, { name: 'tls.key', body: saved });
    for (const name of ['sent by TLS.docx', 'tls.key']) await onNas(`${SHARE}/${name}`, saved);

    const { path } = await localFile(scratch, 'while renewed', 8_000_000);
    const upload = dav(...secure, '--limit-rate', '2M', '-T', path, at('renewed.bin'));
    let isOver = false;
    const answers = new Set<number>();
    const asking = (async () => {
      while (!isOver) answers.add(await dav(...secure, at('from%20nas.bin')));
    })();
    await shows(await use(pairs.two));
    // Half of a new pair: the former one stays in use, and that is said.
    await copyFile(pairs.one.certificate, used.certificate);
    const notices = async (): Promise<string> => (await daemon.get('/api/notices')).text;
    await until('it is said', async () => /webdav.tls: .*former certificate stays/.test(await notices()), {
      timeoutMs: 30_000,
    });
    assert.equal(await dav(...secure, at('from%20nas.bin')), 200);
    await shows(await use(pairs.one));
    assert.equal(await upload, 201);
    isOver = true;
    await asking;
    assert.deepEqual([...answers], [200]);
    await flagged(daemon, { webdav_running: true });
    assert.match((await daemon.cli('doctor')).stdout, new RegExp(first));
  });
});
