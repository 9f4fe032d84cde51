/** The certificate of the proxy of WebDAV, as the daemon keeps it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CertificateOptions, Config, KeptCertificate, KeyPair } from '../../../core/sdk/index.ts';
import { plainHttpAdvice, ProxyCertificate } from '../../../plugins/webdav/exporter/certificate.ts';

const PAIR: KeyPair = { cert: 'cert', key: 'key', fingerprint: 'AB', endsAt: 0 };
const WEB = { hostnames: ['keeper.example'], trusted_proxies: [] };
const WEBDAV = { listen: '192.168.1.5', users: [{ name: 'alice', password: 'x' }] };

function setUp(pair: KeyPair | undefined, hasTls = true) {
  const asked: CertificateOptions[] = [];
  const closed: string[] = [];
  let config = {
    web: WEB,
    webdav: { ...WEBDAV, ...(hasTls && { tls: { self_made: true } }) },
  } as unknown as Config;
  const certificate = new ProxyCertificate({
    certificates: {
      keep: async (_, options): Promise<KeptCertificate> => {
        asked.push(options);
        const close = async (): Promise<void> => void closed.push(options.names.join());
        const notices = pair ? [] : [{ level: 'error' as const, message: 'nobody can connect' }];
        return { pair, problem: pair ? undefined : 'there is no such file', notices, close };
      },
    },
    config: () => config,
    onChange: () => undefined,
  });
  const change = (hostnames: readonly string[]): void => {
    config = { ...config, web: { ...config.web, hostnames: [...hostnames] } };
  };
  return { certificate, asked, closed, change };
}

describe('the certificate of the proxy of WebDAV', () => {
  it('is asked for with the names that clients use, and again only when these change', async () => {
    const { certificate, asked, change, closed } = setUp(PAIR);
    await certificate.keep();
    await certificate.keep();
    assert.deepEqual(
      asked.map(({ label, names }) => [label, ...names]),
      [['webdav.tls', 'keeper.example', '192.168.1.5']],
    );
    change(['other.example']);
    await certificate.keep();
    assert.equal(asked.length, 2);
    assert.deepEqual(closed, ['keeper.example,192.168.1.5']);
    assert.equal(certificate.pair, PAIR);
    await certificate.close();
    assert.equal(closed.length, 2);
  });

  it('is kept once however many ask at the same time, and with the newest names', async () => {
    const { certificate, asked, change, closed } = setUp(PAIR);
    const first = [certificate.keep(), certificate.keep()];
    change(['other.example']);
    await Promise.all([...first, certificate.keep()]);
    await certificate.close();
    assert.deepEqual(
      asked.map(({ names }) => names.join()),
      closed,
      'each is closed in its turn',
    );
    assert.equal(asked.at(-1)?.names[0], 'other.example');
  });

  it('is not asked for without TLS', async () => {
    const { certificate, asked } = setUp(PAIR, false);
    await certificate.keep();
    assert.deepEqual([asked.length, certificate.pair], [0, undefined]);
  });

  it('says what clients have where the files are bad: nothing, or what the proxy was given before', async () => {
    const { certificate } = setUp(undefined);
    await certificate.keep();
    assert.deepEqual(certificate.notices(false), [{ level: 'error', message: 'nobody can connect' }]);
    assert.deepEqual(certificate.notices(true), [
      {
        level: 'warning',
        message: 'webdav.tls: there is no such file; the former certificate stays in use',
      },
    ]);
  });
});

describe('plain HTTP of WebDAV', () => {
  const advice = (webdav: object, web: object = {}): string | undefined =>
    plainHttpAdvice({ web: { ...WEB, ...web }, webdav: { ...WEBDAV, ...webdav } } as never);

  it('is warned of where passwords cross a network', () => {
    assert.match(advice({}) ?? '', /plain HTTP on 192\.168\.1\.5.*webdav\.tls/);
    assert.equal(advice({ listen: '127.0.0.1' }), undefined);
    assert.equal(advice({ tls: { self_made: true } }), undefined);
    assert.equal(advice({}, { trusted_proxies: ['192.168.1.2'] }), undefined);
    // Everybody is let in then, which is warned of by itself.
    assert.equal(advice({ users: [] }), undefined);
  });
});
