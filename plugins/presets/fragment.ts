/** The answers of the preset endpoint: HTML fragments for the dashboard, in Chinese. */
import type { Outcome } from './apply.ts';
import type { ProfileName } from './profiles.ts';

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}

export function fragmentOf(profile: ProfileName, outcome: Outcome): string {
  switch (outcome.kind) {
    case 'applied':
      return `<span class="ok">预设“${profile}”已应用，配置正在重新加载…</span>`;
    case 'not-saved':
      return `<span class="error">保存配置失败：${escapeHtml(outcome.detail)}</span>`;
    case 'not-sent':
      return `<span class="error">重新加载失败：${escapeHtml(outcome.detail)}</span>`;
  }
}

/** The reverse, for the command line: the text without the HTML element, and whether it reports success. */
export function readFragment(fragment: string): { readonly ok: boolean; readonly text: string } {
  const text = fragment
    .replaceAll(/<[^<>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');
  return { ok: fragment.includes('class="ok"'), text };
}
