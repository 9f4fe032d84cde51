/** Who is signed in, for administrators, with a button to end it. */
import { html, inEveryLanguage } from 'mountkeeper';
import type { Content, SignIn, SignInsService, Tab, Texts, View } from 'mountkeeper';

export function signInsTab(signIns: SignInsService, texts: Texts): Tab {
  const text = (key: string) => inEveryLanguage(texts, key);
  const row = ({ address, browser, id, name, role, since, usedAt }: SignIn, view: View): Content => {
    const button = view.button({ action: 'end', label: text('end'), about: name, values: { id } });
    return html`<tr><td><bdi>${name}</bdi></td><td>${role}</td><td>${view.time(since)}</td>
      <td>${view.time(usedAt)}</td><td><bdi>${address}</bdi></td><td><bdi>${browser}</bdi></td><td>${button}</td></tr>`;
  };
  const heads = ['who', 'role', 'since', 'used', 'address', 'browser', 'what'];
  return {
    id: 'sign-ins',
    access: { see: 'admin', act: { end: 'admin' } },
    order: 75,
    title: text('sign-ins'),
    texts,
    icon: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21a8 8 0 0 1 16 0',
    render: (view) => {
      const all = signIns.list();
      if (all.length === 0) return html`<p class="empty">${view.t('nobody')}</p>`;
      return html`<div class="scroll" tabindex="0" role="region" aria-label=${view.text(text('sign-ins'))}>
        <table><thead><tr>${heads.map((head) => html`<th scope="col">${view.t(head)}</th>`)}</tr></thead>
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
