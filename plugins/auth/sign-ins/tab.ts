/** Who is signed in, for administrators, with a button to end it. */
import { html, inEveryLanguage } from 'mountkeeper';
import type { Content, SignIn, SignInsService, Tab, Texts, View } from 'mountkeeper';
import { browserName } from './browser-name.ts';

const HEADS = ['who', 'role', 'since', 'used', 'address', 'browser', 'what'];

export function signInsTab(signIns: SignInsService, texts: Texts): Tab {
  const text = (key: string) => inEveryLanguage(texts, key);
  const row = ({ address, browser: said, id, name, role, since, usedAt }: SignIn, view: View): Content => {
    // The reader's own looks like any other of the same machine, and ending it throws the reader out.
    const isOwn = id === view.signIn;
    const browser = browserName(said) || view.plain('unknown-browser');
    const button = view.button({
      action: 'end',
      label: text('end'),
      about: `${name}, ${browser}`,
      confirm: isOwn ? text('end-own-confirm') : view.plain('end-confirm', { name, browser, address }),
      values: { id },
    });
    const head = (key: string): string => view.plain(key);
    return html`<tr><th scope="row"><bdi>${name}</bdi></th><td data-head=${head('role')}>${view.t(`role-${role}`)}</td>
      <td data-head=${head('since')}>${view.time(since)}</td><td data-head=${head('used')}>${view.time(usedAt)}</td>
      <td data-head=${head('address')}><bdi>${address}</bdi></td>
      <td data-head=${head('browser')}><bdi title=${said}>${browser}</bdi>${
        isOwn ? html` <span class="badge" data-tone="good">${view.t('this-browser')}</span>` : null
      }</td><td>${button}</td></tr>`;
  };
  return {
    id: 'sign-ins',
    access: { see: 'admin', act: { end: 'admin' } },
    order: 75,
    title: text('sign-ins'),
    texts,
    icon: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21a8 8 0 0 1 16 0',
    isOfSignIn: true,
    render: (view) => {
      const all = signIns.list();
      if (all.length === 0) return html`<p class="empty">${view.t('nobody')}</p>`;
      return html`<div class="scroll" tabindex="0" role="region" aria-label=${view.text(text('sign-ins'))}>
        <table class="stacked"><thead><tr>${HEADS.map(
          (head) => html`<th scope="col">${view.t(head)}</th>`,
        )}</tr></thead>
        <tbody>${all.map((one) => row(one, view))}</tbody></table></div>`;
    },
    actions: {
      end: (view) => {
        const ok = signIns.end(view.form['id'] ?? '');
        return { ok, message: text(ok ? 'ended' : 'gone') };
      },
    },
  };
}
