/** The links to the overview and to the tabs of plugins: they come and go with their plugins, on open pages as well. */
import { html } from 'mountkeeper';
import type { Content, OwnedTab, View } from 'mountkeeper';
import { drawing, icon } from './nodes.ts';

/** Name of the part, and of its event. */
export const NAVIGATION = 'navigation';

/** `path`: of the page that they stand on. */
export function navigation(tabs: readonly OwnedTab[], path: string, view: View): Content {
  const links = [
    { href: '/', label: view.t('overview'), drawn: icon('overview') },
    ...tabs.map(({ tab }) => ({
      href: `/tabs/${tab.id}`,
      label: view.text(tab.title),
      drawn: tab.icon === undefined ? null : drawing(tab.icon),
    })),
  ];
  return html`<ul>${links.map(
    ({ href, label, drawn }) =>
      html`<li>
      <a href=${href} aria-current=${href === path ? 'page' : undefined}>${drawn}<span>${label}</span></a></li>`,
  )}</ul>`;
}
