/** Who does not become an administrator over HTTP where administrators may install plugins from the page. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Config, LoadedConfig, WebConfig } from '../../../core/contract/config.ts';
import type { Requester } from '../../../core/contract/http.ts';
import { checkUntrusted } from '../../../plugins/auth/exposure.ts';
import { newcomerProblem } from '../../../plugins/auth/installers.ts';

const NOBODY = {
  listen: '127.0.0.1',
  port: 1,
  hostnames: [],
  trusted_proxies: [],
  plain_http: false,
  username: 'admin',
  password: '',
  totp_secret: '',
  users: [],
  tokens: [],
} as const satisfies WebConfig;

const user = (name: string, role: 'viewer' | 'operator' | 'admin', password_hash = 'h') => ({
  name,
  role,
  password_hash,
});
const token = { name: 'backup', token_hash: 'h', role: 'admin' } as const;

interface Traits {
  readonly mayInstall?: boolean;
  readonly isOff?: boolean;
}

function config(web: Partial<WebConfig>, { mayInstall = true, isOff = false }: Traits = {}): Config {
  const plugins = { dirs: [], install_from_page: mayInstall, ...(isOff && { auth: { enabled: false } }) };
  return { web: { ...NOBODY, ...web }, plugins } as never;
}

describe('who may install from the page', () => {
  const said = (next: Config, current: Config): string =>
    checkUntrusted(next, current)
      .map(({ path, message }) => `${path}: ${message}`)
      .join();

  it('is nobody who set the first password, user or token over HTTP', () => {
    const named: readonly Partial<WebConfig>[] = [
      { password: 'word' },
      { password: { env: 'X' } },
      { users: [user('ada', 'admin')] },
      { users: [user('ada', 'viewer')] },
      { tokens: [token] },
    ];
    for (const web of named) {
      assert.match(
        said(config(web), config({})),
        /^web: the first password, user or token cannot be set over HTTP while plugins\.install_from_page is true/,
      );
      const closed = { mayInstall: false };
      assert.equal(said(config(web, closed), config({}, closed)), '');
    }
    assert.equal(said(config({ username: 'ada' }), config({})), '', 'nobody is asked either way');
    assert.equal(said(config({ password: 'other' }), config({ password: 'word' })), '');
  });

  it('is nobody who gave themselves a password while the plugin that asks is off', () => {
    const off = config({ password: 'word', users: [user('ada', 'admin')] }, { isOff: true });
    const { web } = off;
    const refused = /^web: no administrator is added, and no password of one changed, over HTTP while/;
    const changes: readonly Partial<WebConfig>[] = [
      { ...web, password: 'mine' },
      { ...web, users: [user('ada', 'admin', 'mine')] },
      { ...web, users: [...web.users, user('eve', 'admin')] },
    ];
    for (const changed of changes)
      for (const isOff of [true, false])
        assert.match(said(config(changed, { isOff }), off), refused, JSON.stringify({ changed, isOff }));
    assert.equal(said(config(web), off), '', 'to switch it on makes nobody an administrator');
    assert.equal(said(config({ password: 'word' }, { isOff: true }), off), '');
    assert.equal(said(config({ ...web, users: [user('ada', 'viewer')] }, { isOff: true }), off), '');
  });

  it('is nobody whom a token has named', () => {
    const current = config({ password: 'word', users: [user('ada', 'admin'), user('bob', 'viewer')] });
    const { web } = current;
    const isRefused = (changed: Partial<WebConfig>, requestedBy?: Partial<Requester>): boolean => {
      const next = { config: config({ ...web, ...changed }), origin: 'http', requestedBy };
      return newcomerProblem(current, next as LoadedConfig) !== undefined;
    };
    const from = { address: '10.0.0.1' };
    const byToken = { from, principal: { name: 'backup', kind: 'token', role: 'admin' } };
    const newcomers: readonly Partial<WebConfig>[] = [
      { password: 'mine' },
      { username: 'eve' },
      { totp_secret: 'mine' },
      { users: [...web.users, user('eve', 'admin')] },
      { users: [user('ada', 'admin', 'mine')] },
      { users: [user('ada', 'admin'), user('bob', 'admin')] },
    ];
    for (const changed of newcomers) {
      const what = JSON.stringify(changed);
      assert.equal(isRefused(changed, byToken), true, what);
      assert.equal(isRefused(changed, { from }), true, `who is not known: ${what}`);
      assert.equal(isRefused(changed), true, `whose request is over: ${what}`);
      for (const kind of ['password', 'user'])
        assert.equal(isRefused(changed, { from, principal: { name: 'ada', kind } }), false, what);
      assert.equal(isRefused(changed, { from: { users: [0] } }), false, `at the command line: ${what}`);
    }
    const others: readonly Partial<WebConfig>[] = [
      { tokens: [token] },
      { users: [user('ada', 'admin'), user('bob', 'operator'), user('eve', 'viewer', 'mine')] },
      { users: [] },
      { port: 2 },
    ];
    for (const changed of others) assert.equal(isRefused(changed, byToken), false, JSON.stringify(changed));
    const next = config({ ...web, password: 'mine' }, { mayInstall: false });
    const ofToken = { config: next, origin: 'http', requestedBy: byToken } as never;
    assert.equal(newcomerProblem(config(web, { mayInstall: false }), ofToken), undefined);
    assert.equal(newcomerProblem(current, { config: next, origin: 'file' } as never), undefined);
  });
});
