import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { html } from 'mountkeeper';
import { sentenceOf } from '../../../../plugins/dashboard/overview/sentence.ts';
import { sentenceValues } from '../../../../plugins/dashboard/overview/sentence-values.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../../plugins/dashboard/pages/shell.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';

const NAME = 'live\u202Egpj.exe';
const SHOWN = 'live⟨U+202E⟩gpj.exe';
const tab = { id: 'x', title: 'X', render: () => null, actions: {} };

describe('characters that make text look as another one', () => {
  before(() => loadLibraries());

  it('are signs wherever somebody reads them', () => {
    assert.equal(toHtml(html`<bdi>${NAME}</bdi>`), `<bdi>${SHOWN}</bdi>`);
    assert.equal(
      toHtml(html`<i title=${`"${NAME}`}>a > b ${NAME}</i>`),
      `<i title="&quot;${SHOWN}">a > b ${SHOWN}</i>`,
    );
    for (const one of '\u061C\u200E\u200F\u202A\u202D\u2066\u2069')
      assert.match(toHtml(html`<p>${one}</p>`), /^<p>⟨U\+[0-9A-F]{4}⟩<\/p>$/);
    assert.equal(toHtml(html`<p>照片 שלום</p>`), '<p>照片 שלום</p>');
  });

  it('are signs in questions, and themselves in what is sent back', () => {
    const view = createView({ language: 'en', host: 'h', tab });
    const values = { path: NAME };
    const drawn = toHtml(
      view.button({ action: 'a', label: 'A', about: NAME, confirm: `Lose ${NAME}?`, values }),
    );
    assert.match(drawn, new RegExp(`hx-confirm="Lose ${SHOWN.replace('+', '.')}\\?"`));
    assert.ok(drawn.includes(`name="path" value="${NAME}"`), drawn);
    assert.ok(drawn.includes(`<bdi>${SHOWN}</bdi>`), drawn);
    const field = toHtml(
      html`<textarea name="text">${NAME}</textarea><a href=${`/x?${NAME}`} data-copy=${NAME}>x</a>`,
    );
    assert.equal(
      field,
      `<textarea name="text">${NAME}</textarea><a href="/x?${NAME}" data-copy="${NAME}">x</a>`,
    );
  });

  it('are signs in the names that the sentence is sent alone', () => {
    const view = createView({ language: 'en', host: 'h' });
    const sentence = { ...sentenceOf({ shares: [], allSynced: true } as never, {} as never), shares: [NAME] };
    assert.equal(sentenceValues(sentence, view)['name0'], SHOWN);
  });

  it('are signs also where they break lines or ring, but for line breaks that a template has', () => {
    const name = 'a (1 B)?\n\nPress OK\t\u0007\u007F\u0085\u2028.raw';
    const shown = 'a (1 B)?␊␊Press OK␉␇␡⟨U+0085⟩⟨U+2028⟩.raw';
    const view = createView({ language: 'en', host: 'h', tab });
    const values = { path: name };
    const drawn = toHtml(
      view.button({ action: 'a', label: 'A', about: name, confirm: `Lose ${name}?`, values }),
    );
    assert.ok(drawn.includes(`hx-confirm="Lose ${shown}?"`), drawn);
    assert.ok(drawn.includes(`<bdi>${shown}</bdi>`), drawn);
    assert.ok(drawn.includes(`name="path" value="${name}"`), drawn);
    assert.equal(
      toHtml(html`<i title=${'a\nb'} aria-label=${'a\tb'}>x</i>`),
      '<i title="a␊b" aria-label="a␉b">x</i>',
    );
    assert.equal(toHtml(html`<bdi dir="auto">${'a\nb'}</bdi>`), '<bdi dir="auto">a␊b</bdi>');
    const readme = '# A\n\tb';
    assert.equal(toHtml(html`<pre>${readme}${'\u001B'}</pre>`), `<pre>${readme}␛</pre>`);
    assert.equal(toHtml(html`<textarea>${name}</textarea>`), `<textarea>${name}</textarea>`);
  });
});
