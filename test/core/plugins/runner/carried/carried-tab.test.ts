/** What a tab draws in its own process is shown in the daemon as if it were drawn there. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { render } from 'preact-render-to-string';
import type { Content, Tab, View } from '../../../../../core/contract/dashboard.ts';
import { contentOf, drawTab, outcomeOf } from '../../../../../core/plugins/runner/carried/carried-tab.ts';
import { DrawingTime } from '../../../../../core/plugins/runner/carried/drawing-time.ts';
import type { TabCall } from '../../../../../core/plugins/runner/carried/carried-tab.ts';
import { Fragment, h, html } from '../../../../../core/sdk/html.ts';
import { loadLibraries } from '../../../../../plugins/dashboard/pages/libraries.ts';
import { createView } from '../../../../../plugins/dashboard/view.ts';

const untimed = (): void => undefined;
const texts = { en: { beds: '{count, plural, one {# bed} other {# beds}} at {where}' } };

function viewOf(tab: Tab, more: Partial<View> = {}): View {
  return createView({
    language: 'en',
    host: 'nas',
    tab,
    query: { q: '1' },
    form: { seed: '<rose>' },
    ...more,
  });
}

/** Over the wire. */
async function carried(tab: Tab, fn: TabCall['fn'], name = ''): Promise<{ drawn: unknown; view: View }> {
  const view = viewOf(tab);
  const { language, host, share, query, form } = view;
  const drawn = await drawTab(tab, { fn, name, view: { language, host, share, query, form } });
  return { drawn: JSON.parse(JSON.stringify(drawn)) as unknown, view };
}

const toHtml = (content: Content): string => render(h(Fragment, null, content));

function tabOf(draw: (view: View) => Content, more: Partial<Tab> = {}): Tab {
  return { id: 'garden', title: 'Garden', texts, render: draw, ...more };
}

const List = ({ items }: { items: readonly string[] }) =>
  html`<ul>${items.map((one) => html`<li>${one}</li>`)}</ul>`;

describe('a tab in a process of its own', () => {
  before(loadLibraries);

  const draw = (view: View): Content => [
    'plain <b>text</b>',
    null,
    7,
    html`<p class="a" title=${`up to ${view.bytes(2048)}`} hidden=${false}>
      ${view.number(1234.5)} of ${view.rate(1024)}</p>`,
    html`<p>${view.t('beds', { count: 2, where: html`<em>${view.text({ en: 'home', zh: '家' })}</em>` })}</p>`,
    html`<p title=${view.plain('beds', { count: 1, where: view.bytes(1024) })}>${view.query['q']} ${view.host}</p>`,
    html`<a href=${view.part('more', { page: 2 })}>${view.time(0, 'ago')}</a>`,
    view.button({ action: 'dig', label: { en: 'Dig' }, confirm: 'Sure?', values: { bed: 'x' } }),
    h(List as never, { items: ['<i>', 'b'] } as never),
    html`<br /><input value="1" disabled />`,
  ];

  it('is drawn as inside the daemon', async () => {
    const tab = tabOf(draw);
    const { drawn, view } = await carried(tab, 'render');
    const html_ = toHtml(contentOf(drawn, view, untimed));
    assert.equal(html_, toHtml(draw(view)));
    assert.match(html_, /2 beds at <em>home<\/em>/);
    assert.match(html_, /up to 2/);
  });

  it('has its parts and its actions', async () => {
    const tab = tabOf(() => 'x', {
      parts: { more: async (view) => html`<b>${view.query['q']}</b>` },
      actions: {
        dig: (view) => ({
          ok: true,
          message: `dug ${view.form['seed']}: ${view.plain('beds', { count: 2, where: 'home' })}`,
          content: html`<i>${view.bytes(1)}</i>`,
        }),
      },
    });
    const part = await carried(tab, 'part', 'more');
    assert.equal(toHtml(contentOf(part.drawn, part.view, untimed)), '<b>1</b>');
    const action = await carried(tab, 'action', 'dig');
    const { ok, message, content } = outcomeOf(action.drawn, action.view, untimed);
    assert.deepEqual([ok, message], [true, 'dug <rose>: 2 beds at home']);
    assert.equal(toHtml(content), `<i>${action.view.bytes(1)}</i>`);
    await assert.rejects(carried(tab, 'part', 'none'), /it has no part "none"/);
  });

  it('has the page ask for nothing but its own parts and actions, whoever looks at it', async () => {
    const asking = ['hx-get', 'hx-post', 'action', 'formaction'];
    const shown = async (address: (view: View) => string): Promise<string[]> => {
      const tab = tabOf((view) => asking.map((name) => h('p', { [name]: address(view) })));
      const { drawn, view } = await carried(tab, 'render');
      return toHtml(contentOf(drawn, view, untimed))
        .split('</p>')
        .slice(0, -1);
    };
    for (const own of [(view: View) => view.part('more', { page: 2 }), (view: View) => view.action('dig')]) {
      const address = own(viewOf(tabOf(() => 'x')));
      assert.deepEqual(
        await shown(own),
        asking.map((name) => `<p ${name}="${address}">`),
      );
    }
    const others = [
      () => '/dashboard/do/settings/apply',
      () => '/api/config',
      () => '/garden',
      () => 'http://nas.example/dashboard/do/garden/dig',
      (view: View) => `${view.action('dig')}/../../settings/apply`,
      (view: View) => `${view.action('dig')}\\..\\%2E%2e\\settings`,
      (view: View) => `/\t/nas.example${view.part('more')}`,
      () => '/dashboard/do/gardens/dig',
      () => '',
    ];
    for (const other of others)
      assert.deepEqual(await shown(other), Array(asking.length).fill('<p>'), String(other));
    const { drawn, view } = await carried(
      tabOf(() => html`<a href="/garden" hx-boost="true" ping="/api/x">x</a>`),
      'render',
    );
    assert.equal(toHtml(contentOf(drawn, view, untimed)), '<a href="/garden">x</a>');
  });

  it('neither reads nor changes what is the dashboard’s, nor presses its buttons', async () => {
    const shown = async (type: string, props: Record<string, string>): Promise<string> => {
      const { drawn, view } = await carried(
        tabOf(() => h(type, props)),
        'render',
      );
      return toHtml(contentOf(drawn, view, untimed));
    };
    const refused: Record<string, readonly string[]> = {
      'hx-include': ['input[type=password]', 'find a, input[type=password]', 'closest body', 'next input'],
      'hx-target': ['#sentence, #notices', 'body', 'closest main', 'next button', 'find <body/>'],
      'hx-swap': ['innerHTML show:#x:top', 'textContent'],
      'hx-swap-oob': ['innerHTML:#sentence', 'beforeend:body'],
      'hx-trigger': [
        'click from:body',
        'every 1s[evil()]',
        'sse:sentence',
        'sse:panel-x from:body',
        'intersect root:body',
      ],
      'hx-vals': ['js:{a: document.cookie}', 'javascript:{}'],
    };
    for (const [name, values] of Object.entries(refused))
      for (const value of values)
        assert.equal(await shown('p', { [name]: value }), '<p></p>', `${name}: ${value}`);
    const unknown = [
      'sse-swap',
      'hx-select-oob',
      'hx-push-url',
      'hx-ext',
      'HX-Post',
      'data-hx-post',
      'sse-connect',
    ];
    const others = [
      'form',
      'htmlFor',
      'className',
      'defaultValue',
      'popovertarget',
      'data-charts',
      'style',
      'name',
    ];
    for (const name of [...unknown, ...others])
      assert.equal(await shown('p', { [name]: 'x' }), '<p></p>', name);
    // Its own ids are told apart from those of the page.
    assert.equal(await shown('label', { for: 'sentence' }), '<label for="of-garden_sentence"></label>');
    assert.equal(
      await shown('input', { id: 'q', name: 'q', 'hx-target': '#found', 'aria-describedby': 'a b' }),
      '<input id="of-garden_q" name="q" hx-target="#of-garden_found" aria-describedby="of-garden_a of-garden_b"/>',
    );
    for (const type of ['dialog', 'use', 'set', 'animate', 'foreignObject', 'template', 'carried-x'])
      await assert.rejects(shown(type, {}), /cannot be carried/);
  });

  it('may ask of its own in all the ways that it needs', async () => {
    const { drawn, view } = await carried(
      tabOf(
        (v) => html`<form hx-post=${v.action('dig')} hx-trigger="submit, change delay:500ms" hx-swap="none"
          hx-target="find output" hx-vals='{"a":1}'><input name="bed" /><output></output></form>
          <div hx-get=${v.part('more')} hx-trigger="load, every 5s" hx-target="this" hx-swap="innerHTML"></div>
          <div data-kept="beds" hx-get=${v.part('more')} hx-trigger="revealed, sse:panel-garden"></div>`,
      ),
      'render',
    );
    const shown = toHtml(contentOf(drawn, view, untimed));
    for (const part of [
      'hx-post="/dashboard/do/garden/dig"',
      'hx-trigger="submit, change delay:500ms"',
      'hx-swap="none"',
      'hx-target="find output"',
      'hx-vals="{&quot;a&quot;:1}"',
      'name="bed"',
      'hx-trigger="load, every 5s"',
      'data-kept="of-garden_beds"',
      'hx-trigger="revealed, sse:panel-garden"',
      'hx-target="this"',
    ])
      assert.ok(shown.includes(part), `${part} in ${shown}`);
  });

  it('shows nothing that a hostile runner made up', () => {
    const view = viewOf(tabOf(() => 'x'));
    const show = (content: unknown, calls: unknown = []): string =>
      toHtml(contentOf({ content, calls }, view, untimed));
    assert.equal(
      show({
        type: 'p',
        props: { onclick: 'x()', dangerouslySetInnerHTML: { __html: '<s>' }, 'hx-on:click': 'x' },
      }),
      '<p></p>',
    );
    assert.equal(show({ type: 'a', props: { href: ' javascript:x()' }, children: '<s>' }), '<a>&lt;s></a>');
    for (const type of ['script', 'iframe', 'P', 'a b', 5, {}])
      assert.throws(() => show({ type }), /cannot be carried/);
    assert.throws(
      () => show({ type: 'carried-call', props: { at: 0 } }, [{ name: 'constructor', args: [] }]),
      /does not have/,
    );
    assert.equal(show({ type: 'p', props: { 'data-hx-on:click': 'x' } }), '<p></p>');
    const place = '\u{e000}0\u{e001}';
    for (const href of ['java\tscript:x()', '\u0001javascript:x()', place])
      assert.equal(
        show({ type: 'a', props: { href } }, [{ name: 'text', args: ['JavaScript:x()'] }]),
        '<a></a>',
      );
    assert.throws(() => show(place, [{ name: 'text', args: [place] }]), /more than can be shown/);
    assert.throws(() => show(Array.from({ length: 30_000 }, () => 'x')), /more than can be shown/);
    const deep = Array.from({ length: 100 }).reduce<unknown>((inner) => [inner], 'x');
    assert.throws(() => show(deep), /more than can be shown/);
    const long = 'x'.repeat(9_000);
    assert.throws(() => show(place.repeat(250), [{ name: 'text', args: [long] }]), /more than can be shown/);
    const many = viewOf(tabOf(() => 'x', { texts: { en: { many: '{x}'.repeat(3_000) } } }));
    for (const x of [long, { node: long }]) {
      const calls = [{ name: 't', args: ['many', { x }] }];
      const content = { type: 'carried-call', props: { at: 0 } };
      assert.throws(() => contentOf({ content, calls }, many, untimed), /more than can be shown/);
    }
    assert.throws(() => show(place, [{ name: 'text', args: ['x'.repeat(10_001)] }]), /more than 10000 char/);
    const content = Array(9_990).fill(place);
    const slow = viewOf(tabOf(() => 'x', { texts: { en: { x: '{a,plural,other{}}'.repeat(550) } } }));
    const from = process.cpuUsage();
    assert.throws(
      () =>
        new DrawingTime({ monotonic: () => 0 }).spend((check) =>
          contentOf({ content, calls: [{ name: 't', args: ['x', { a: 5 }] }] }, slow, check),
        ),
      /more than 100 ms to put together/,
    );
    const { user, system } = process.cpuUsage(from);
    // 25 s before.
    assert.ok(user + system < 2_000_000, `${(user + system) / 1_000} ms`);
    for (const bad of [null, {}, { ok: 1, message: 'x' }, { ok: true }])
      assert.throws(() => outcomeOf(bad, view, untimed), /gave no outcome/);
  });
});
