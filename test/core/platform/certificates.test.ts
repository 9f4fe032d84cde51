/** The certificate of a server follows its files, and a bad one never takes the place of a good one. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { chmod, copyFile, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { after, before, beforeEach, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { CertificatesService, KeptCertificate, TlsConfig } from '../../../core/contract/http.ts';
import { createCertificates } from '../../../core/platform/certificates/certificates.ts';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import { createAuthority } from '../../support/http/certificates.ts';
import type { CertificateFiles, TestAuthority } from '../../support/http/certificates.ts';
import { collectLog } from '../../support/platform/collected-log.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { stepUntil } from '../../support/platform/wait.ts';

const DAY_MS = 86_400_000;

describe('the certificate of a server', () => {
  let scratch: Scratch;
  let authority: TestAuthority;
  let pairs: { readonly one: CertificateFiles; readonly two: CertificateFiles };
  let files: CertificateFiles;
  let clock: ReturnType<typeof createManualClock>;
  let certificates: CertificatesService;
  /** Days that the wall clock was set forward; to go through them would take long. */
  let aheadDays = 0;
  let count = 0;

  before(async () => {
    scratch = await createScratch('certificates');
    authority = await createAuthority(scratch.path('authority'));
    pairs = { one: await authority.issue('one'), two: await authority.issue('two') };
  });
  after(() => scratch.close());
  beforeEach(async () => {
    count += 1;
    files = { certificate: scratch.path(`${count}.pem`), key: scratch.path(`${count}.key`) };
    clock = createManualClock(Date.now());
    aheadDays = 0;
    const now = clock.now.bind(clock);
    clock.now = () => now() + aheadDays * DAY_MS;
    certificates = restarted();
    await put(pairs.one);
  });

  const restarted = (): CertificatesService =>
    createCertificates({ clock, log: collectLog().log, stateDir: scratch.path(`state-${count}`) });
  const put = async ({ certificate, key }: Partial<CertificateFiles>): Promise<void> => {
    if (key !== undefined) await copyFile(key, files.key);
    if (certificate !== undefined) await copyFile(certificate, files.certificate);
  };
  const keep = async (tls: Partial<TlsConfig> = files, names: readonly string[] = []) => {
    const kept = await certificates.keep(
      { self_made: false, ...tls },
      { label: 'web.tls', names, onChange: () => undefined },
    );
    scratch.defer(() => kept.close());
    return kept;
  };
  const fingerprint = async ({ certificate }: CertificateFiles): Promise<string> =>
    new X509Certificate(await readFile(certificate)).fingerprint256;
  const step = (what: string, isThere: () => boolean): Promise<void> =>
    stepUntil(what, isThere, () => clock.advance(1_000));
  const firstNotice = ({ notices }: KeptCertificate): string => notices[0]?.message ?? '';

  it('is read with its chain, and again when the files change', async () => {
    const kept = await keep();
    assert.equal(kept.pair?.fingerprint, await fingerprint(pairs.one));
    assert.equal(kept.pair.cert.match(/BEGIN CERTIFICATE/g)?.length, 2);
    assert.deepEqual([kept.problem, kept.notices], [undefined, []]);
    await put(pairs.two);
    const next = await fingerprint(pairs.two);
    await step('the new one', () => kept.pair?.fingerprint === next);
    assert.deepEqual(
      certificates.list().map(({ label, fingerprint: shown }) => [label, shown]),
      [['web.tls', next]],
    );
    await kept.close();
    assert.deepEqual(certificates.list(), []);
  });

  for (const [what, spoil, problem] of [
    ['a key of another one', () => put({ certificate: pairs.two.certificate }), /does not belong to/],
    [
      'half of one',
      async () => writeFile(files.certificate, (await readFile(pairs.two.certificate)).subarray(0, 300)),
      /no certificate in PEM, or half of one/,
    ],
    ['none at all', () => rm(files.key), /there is no such file/],
    ['a key that everybody may read', () => chmod(files.key, 0o644), /chmod o-rwx/],
  ] as const)
    it(`stays in use when the files hold ${what}, until that is put right`, async () => {
      await chmod(files.key, 0o600);
      const kept = await keep();
      const former = kept.pair;
      await spoil();
      // A mode alone is seen when the files are read for another reason.
      if (what.includes('everybody')) await put({ certificate: pairs.two.certificate });
      await step('the problem', () => kept.problem !== undefined);
      assert.equal(kept.pair, former);
      assert.match(firstNotice(kept), problem);
      assert.match(firstNotice(kept), /^web\.tls: .*; the former certificate stays in use$/);
      await put(pairs.two);
      await chmod(files.key, 0o600);
      const next = await fingerprint(pairs.two);
      await step('the new one', () => kept.pair?.fingerprint === next);
      assert.deepEqual([kept.problem, kept.notices], [undefined, []]);
    });

  it('is missing when there never was a good one, and said so', async () => {
    const kept = await keep({ ...files, key: scratch.path('nothing.key') });
    assert.equal(kept.pair, undefined);
    assert.match(firstNotice(kept), /there is no such file; nobody can connect$/);
  });

  it('is warned of before it ends, and when it has ended', async () => {
    await put(await authority.issue(`short-${count}`, 13));
    const kept = await keep();
    assert.match(firstNotice(kept), /^web\.tls: the certificate ends on \d{4}-\d\d-\d\d; put a new one/);
    aheadDays = 14;
    assert.match(firstNotice(kept), /ended on .* clients refuse it/);
  });

  it('is made when that is asked for, with all names, and stays the same', async () => {
    const kept = await keep({ self_made: true }, ['nas.example.org', '0.0.0.0']);
    assert.ok(kept.pair);
    const certificate = new X509Certificate(kept.pair.cert);
    for (const name of [hostname(), 'localhost', 'nas.example.org'])
      assert.ok(certificate.checkHost(name), name);
    assert.ok(certificate.checkIP('127.0.0.1'));
    assert.equal(certificate.verify(certificate.publicKey), true);
    for (const name of ['key.pem', 'certificate.pem'])
      assert.equal((await stat(scratch.path(`state-${count}`, 'tls', name))).mode & 0o777, 0o600);
    certificates = restarted();
    const next = await keep({ self_made: true }, ['nas.example.org']);
    assert.equal(next.pair?.fingerprint, kept.pair.fingerprint);
    const other = await keep({ self_made: true }, ['other.example.org']);
    assert.ok(other.pair);
    assert.notEqual(other.pair.fingerprint, kept.pair.fingerprint);
    assert.equal(other.pair.key, kept.pair.key);
  });

  it('that is made here holds addresses of IPv6 in any spelling, and stays the same', async () => {
    for (const [name, held] of [
      ['::ffff:10.9.8.7', '10.9.8.7'],
      ['::FFFF:a09:807', '10.9.8.7'],
      ['64:ff9b::10.9.8.7', '64:ff9b::a09:807'],
      ['2001:DB8:0::1', '2001:db8::1'],
      ['[2001:db8::1]', '2001:db8::1'],
    ] as const) {
      const made = await keep({ self_made: true }, [name]);
      assert.ok(made.pair && new X509Certificate(made.pair.cert).checkIP(held), name);
      certificates = restarted();
      assert.equal((await keep({ self_made: true }, [name])).pair?.fingerprint, made.pair.fingerprint, name);
    }
  });

  it('that was made while the clock was ahead is made anew', async () => {
    aheadDays = 4_000;
    const kept = await keep({ self_made: true });
    const former = kept.pair;
    await kept.close();
    aheadDays = 0;
    certificates = restarted();
    const next = await keep({ self_made: true });
    assert.notEqual(next.pair?.fingerprint, former?.fingerprint);
    assert.ok(Date.parse(new X509Certificate(next.pair?.cert ?? '').validFrom) <= clock.now());
  });

  it('that is made here serves while another cannot be made, and that is said', async () => {
    const kept = await keep({ self_made: true });
    await kept.close();
    certificates = restarted();
    aheadDays = 380;
    const folder = scratch.path(`state-${count}`, 'tls');
    await promisify(execFile)('chattr', ['+i', folder]);
    try {
      const next = await keep({ self_made: true });
      assert.equal(next.pair?.fingerprint, kept.pair?.fingerprint);
      assert.match(firstNotice(next), /the former certificate stays in use/);
    } finally {
      await promisify(execFile)('chattr', ['-i', folder]);
    }
  });

  it('in a named pipe is none, and is not waited for', { timeout: 20_000 }, async () => {
    await rm(files.certificate);
    await promisify(execFile)('mkfifo', [files.certificate]);
    const kept = await keep();
    assert.equal(kept.pair, undefined);
    assert.notEqual(firstNotice(kept), '');
  });

  it('that is made here is made anew before its end, by the same key', async () => {
    const kept = await keep({ self_made: true });
    const former = kept.pair;
    aheadDays = 366;
    await clock.advance(DAY_MS / 4);
    assert.equal(kept.pair?.fingerprint, former?.fingerprint);
    aheadDays = 368;
    await clock.advance(DAY_MS / 4);
    await step('the new one', () => kept.pair?.fingerprint !== former?.fingerprint);
    assert.equal(kept.pair?.key, former?.key);
    assert.deepEqual(kept.notices, []);
  });
});
