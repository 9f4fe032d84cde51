/** What a runner answers for a route is sent by the real web server, or refused; no request is left open. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { server as createServer } from '@hapi/hapi';
import { answerWith } from '../../../../../core/plugins/runner/carried/carried-route.ts';

describe('the answer of a route in a process of its own', { timeout: 20_000 }, () => {
  async function sent(answer: unknown) {
    const server = createServer({ debug: false });
    server.route({ method: 'GET', path: '/', handler: (_request, h) => answerWith(answer, h) });
    return server.inject('/');
  }
  const answer = (headers: unknown): object => ({ status: 200, headers, body: 'aGk=' });

  it('is sent with its headers, but for those of the connection', async () => {
    const { statusCode, headers, payload } = await sent(
      answer({
        'x-ext-garden': ['a', 'b'],
        'Content-Length': '999',
        'transfer-encoding': 'x',
        ['__proto__']: 'p',
      }),
    );
    assert.deepEqual([statusCode, payload], [200, 'hi']);
    assert.equal(headers['x-ext-garden'], 'a,b');
    assert.equal(headers['content-length'], 2);
    assert.equal(headers['transfer-encoding'], undefined);
    assert.equal(headers['content-type'], 'application/octet-stream');
  });

  it('is no page of this site, whatever policy it gives, and it says nothing for other pages', async () => {
    const page = { 'content-type': 'text/html' };
    const ownPolicies = ["script-src 'self'", ["img-src 'none'", 'sandbox allow-same-origin'], 'x, y;', ''];
    for (const policy of [undefined, ...ownPolicies]) {
      const own = policy === undefined ? {} : { 'Content-Security-Policy': policy };
      const { statusCode, headers } = await sent(answer({ ...page, ...own }));
      assert.equal(statusCode, 200);
      const [first = '', ...others] = String(headers['content-security-policy']).split(',');
      assert.match(first, /^frame-ancestors 'none'; sandbox allow-scripts/);
      assert.doesNotMatch(first, /allow-same-origin|top-navigation|escape/);
      assert.equal(others.join().trim(), [policy ?? []].flat().join());
    }
    const ofSite = {
      'Set-Cookie': ['a=b; Path=/', 'c=d'],
      'clear-site-data': '"*"',
      'service-worker-allowed': '/',
      'strict-transport-security': 'max-age=0',
      'alt-svc': 'h2="x.example:443"',
      nel: '{}',
      'X-Frame-Options': 'ALLOWALL',
      'set-login': 'logged-out',
      'critical-ch': 'x',
      'speculation-rules': '"/rules.json"',
      'www-authenticate': 'Basic',
      'x-accel-redirect': '/private',
      'access-control-allow-origin': '*',
    };
    const { headers } = await sent(answer({ ...page, ...ofSite, 'x-ext-garden': 'a' }));
    assert.equal(headers['x-ext-garden'], 'a');
    for (const name of Object.keys(ofSite)) assert.equal(headers[name.toLowerCase()], undefined, name);
  });

  it('is refused at once where it has thousands of headers', async () => {
    const many = Object.fromEntries(Array.from({ length: 40_000 }, (_, index) => [`x-${index}`, 'a']));
    await sent(answer({}));
    const from = process.cpuUsage();
    for (let one = 0; one < 3; one += 1) assert.equal((await sent(answer(many))).statusCode, 500);
    const { user, system } = process.cpuUsage(from);
    // 1.5 s before.
    assert.ok(user + system < 500_000, `${(user + system) / 1_000} ms`);
  });

  it('is refused where it is none', async () => {
    const odd = [5, null, { a: 1 }, [['a']], [5]].flatMap((value) => [
      answer({ 'content-type': value }),
      answer({ 'x-ext-garden': value }),
    ]);
    const shapes = [null, 'x', [], answer(null), answer([]), { ...answer({}), status: 99 }, { status: 200 }];
    for (const bad of [...odd, ...shapes])
      assert.equal((await sent(bad)).statusCode, 500, JSON.stringify(bad));
    for (const headers of [{ 'x-ext-garden': 'a\r\nb: c' }, { 'x-ext- garden': 'a' }])
      assert.equal((await sent(answer(headers))).statusCode, 500, JSON.stringify(headers));
    for (const type of ['', ' ', 'x', ';', 'text/html;charset', ['text/html', 'x/y']])
      assert.equal((await sent(answer({ 'content-type': type }))).statusCode, 200, String(type));
  });
});
