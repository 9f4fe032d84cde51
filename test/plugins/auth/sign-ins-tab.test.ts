/** The tab of sign-ins: whose browser is whose, in short words, and what ending one asks. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { inEveryLanguage, readTexts } from 'mountkeeper';
import type { SignIn, Tab } from 'mountkeeper';
import { browserName } from '../../../plugins/auth/sign-ins/browser-name.ts';
import { signInsTab } from '../../../plugins/auth/sign-ins/tab.ts';
import { loadLibraries } from '../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../plugins/dashboard/pages/shell.ts';
import { createView } from '../../../plugins/dashboard/view.ts';

const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36';
const TEXTS = readTexts(new URL('../../../plugins/auth/index.js', import.meta.url).href);

describe('the tab of sign-ins', () => {
  before(() => loadLibraries());
  const signIn = (id: string): SignIn => ({
    id,
    name: 'ada',
    role: 'admin',
    address: '10.0.0.7',
    browser: CHROME,
    since: 0,
    usedAt: 0,
  });
  const tab: Tab = signInsTab({ list: () => ['one', 'own'].map(signIn), end: () => true }, TEXTS);
  const rows = async (own: string | undefined, language = 'en'): Promise<readonly string[]> =>
    toHtml(await tab.render(createView({ language, host: 'h', signIn: own, tab })))
      .split('<tr')
      .slice(-2);

  it('marks the reader’s own, among others that look the same', async () => {
    const [other = '', own = ''] = await rows('own');
    assert.match(own, />this browser</);
    assert.doesNotMatch(other, /this browser/);
    assert.doesNotMatch((await rows(undefined)).join(''), />this browser</);
  });

  it('asks before one is ended, and says what happens', async () => {
    const [other = '', own = ''] = await rows('own');
    assert.match(own, /hx-confirm="This is the browser in front of you[^"]*You are signed out at once/);
    assert.match(other, /hx-confirm="Sign ada out of Chrome 120, Linux at 10\.0\.0\.7\?/);
    assert.match((await rows('own', 'zh'))[1] ?? '', /hx-confirm="这是您正在使用的浏览器/);
  });

  it('shows browser and system, and has the rest as a title; its cells name themselves on narrow screens', async () => {
    const [row = ''] = await rows('own');
    assert.match(row, /<bdi title="Mozilla[^"]*">Chrome 120, Linux<\/bdi>/);
    assert.match(row, /data-head="Browser"/);
    assert.doesNotMatch(row.replace(/title="[^"]*"/, ''), /Mozilla/);
  });

  it('is drawn for each sign-in, since it is another for each', () => {
    assert.equal(tab.isOfSignIn, true);
    const shared: Tab = { id: 't', title: inEveryLanguage(TEXTS, 'role'), render: () => null };
    assert.equal(createView({ language: 'en', host: 'h', signIn: 'own', tab: shared }).signIn, undefined);
  });
});

describe('a browser in a few words', () => {
  const SAFARI = 'AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.2';
  const NAMES: Readonly<Record<string, string>> = {
    [CHROME]: 'Chrome 120, Linux',
    [`${CHROME} Edg/121.0.0.0`.replace('X11; Linux x86_64', 'Windows NT 10.0; Win64; x64')]:
      'Edge 121, Windows',
    'Mozilla/5.0 (Android 14; Mobile; rv:121.0) Gecko/121.0 Firefox/121.0': 'Firefox 121, Android',
    [`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${SAFARI} Safari/605.1.15`]: 'Safari 17, macOS',
    [`Mozilla/5.0 (iPhone; CPU iPhone OS 17_2 like Mac OS X) ${SAFARI} Mobile/15E148 Safari/604.1`]:
      'Safari 17, iPhone',
    'curl/8.5.0': 'curl 8.5.0',
    '': '',
  };
  for (const [said, name] of Object.entries(NAMES))
    it(`is ${name === '' ? 'nothing where it says nothing' : name}`, () =>
      assert.equal(browserName(said), name));
});
