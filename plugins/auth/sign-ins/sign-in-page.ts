/** The page to sign in: one document that loads nothing, since nobody is let in yet. */
import { createHash } from 'node:crypto';
import type { Request } from '@hapi/hapi';
import { safeBack } from 'mountkeeper';
import type { Texts } from 'mountkeeper';

export type SignInProblem = 'wrong' | 'too-many' | 'closed' | 'in-clear';

/** The dashboard's colours, of which nothing may be loaded here. */
const STYLE = [
  ':root{color-scheme:light dark;font:0.9375rem/1.5 system-ui,"Segoe UI",Roboto,"Noto Sans","PingFang SC",',
  '"Microsoft YaHei","Noto Sans CJK SC",sans-serif;--ground:light-dark(#f5f6f4,#131715);',
  '--card:light-dark(#fff,#1c211f);--line:light-dark(#dcdfda,#343b38);--ink:light-dark(#1d2320,#e6eae7);',
  '--soft:light-dark(#59625d,#a3ada8);--good:light-dark(#1b6e4b,#7fd6ab);--bad:light-dark(#a8281e,#ff9d92);',
  '--focus:light-dark(#1f6f5c,#7fd0b5)}',
  ':root[data-theme=light]{color-scheme:light}:root[data-theme=dark]{color-scheme:dark}',
  'body{display:grid;place-items:center;min-height:90vh;margin:0;background:var(--ground);color:var(--ink)}',
  'main{width:min(20rem,85vw);padding:1.5rem;border:1px solid var(--line);border-radius:10px;',
  'background:var(--card);box-sizing:border-box}form{display:grid;gap:1rem}',
  'h1{font-size:1.3125rem;line-height:1.25;margin:0}label{display:grid;gap:.25rem}p{margin:0;color:var(--bad)}',
  'input,button{font:inherit;color:inherit;padding:.5rem .75rem;min-height:44px;box-sizing:border-box;',
  'border:1px solid var(--soft);border-radius:8px;background:var(--card)}',
  'button{background:var(--good);border-color:var(--good);color:var(--card);font-weight:600;cursor:pointer}',
  ':focus-visible{outline:3px solid var(--focus);outline-offset:2px}',
].join('');
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** In place of the policy that every answer has. */
export const POLICY =
  `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; ` +
  "base-uri 'none'; frame-ancestors 'none'";

export const SIGN_IN = '/sign-in';

/** The language or theme that was chosen on the dashboard. */
function preferred({ raw: { req } }: Request, what: 'language' | 'theme'): string {
  const cookies = (req.headers.cookie ?? '').split(';').map((one) => one.trim().split('='));
  return cookies.find(([name]) => name === `mountkeeper_${what}`)?.[1] ?? '';
}

function themeOf(request: Request): string {
  const chosen = preferred(request, 'theme');
  return chosen === 'light' || chosen === 'dark' ? ` data-theme="${chosen}"` : '';
}

/** As the browser prefers; English where it prefers none that there is. */
function languageOf(request: Request, texts: Texts): string {
  const { req } = request.raw;
  const chosen = preferred(request, 'language');
  const wanted = (req.headers['accept-language'] ?? '').split(',').map((one) => one.trim().slice(0, 2));
  return [chosen, ...wanted].find((one) => Object.hasOwn(texts, one)) ?? 'en';
}

/** The address of the page; `back`: a path of this server, to which signing in leads. */
export function signInAt(back: string): string {
  return `${SIGN_IN}?back=${encodeURIComponent(back)}`;
}

/** What the page is made of. */
export interface PageParts {
  readonly texts: Texts;
  readonly asksForCode: () => boolean;
}

export interface Shown extends PageParts {
  /** Where signing in leads; else `/`. Whoever made the address may have written anything there. */
  readonly back: unknown;
  readonly problem?: SignInProblem;
  /** What was typed before, so that a wrong password alone is typed again. */
  readonly name?: string;
}

const NOT_AS_TEXT = /[&<>"']/g;

/** Longer ones nobody has; they are not sent back. */
const LONGEST_NAME = 256;

function asText(text: string): string {
  return text.replace(NOT_AS_TEXT, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** Holds nothing that a request has brought but `back` and `name`. */
export function signInPage(request: Request, { name: typed = '', ...shown }: Shown): string {
  const { asksForCode, back, problem, texts } = shown;
  const language = languageOf(request, texts);
  const root = `lang="${language}"${themeOf(request)}`;
  const t = (key: string): string => texts[language]?.[key] ?? key;
  const hasCode = asksForCode();
  const key = problem === 'wrong' && hasCode ? 'wrong-code' : problem;
  const told = key === undefined ? '' : `<p role="alert">${t(`sign-in-${key}`)}</p>`;
  // What is typed would be read on the way: nothing is asked for.
  if (problem === 'in-clear') return document(root, t('sign-in'), `<h1>Mountkeeper</h1>${told}`);
  const code = `<label>${t('code')} <input name="code" inputmode="numeric" autocomplete="one-time-code"></label>`;
  const name = typed.length > LONGEST_NAME ? '' : typed;
  const focus = (isNext: boolean): string => (isNext ? ' autofocus' : '');
  return document(
    root,
    t('sign-in'),
    `<form method="post" action="${SIGN_IN}"><h1>Mountkeeper</h1>${told}` +
      `<input type="hidden" name="back" value="${asText(safeBack(back))}">` +
      `<label>${t('user-name')} <input name="username" autocomplete="username" required ` +
      `value="${asText(name)}"${focus(name === '')}></label>` +
      `<label>${t('password')} ` +
      `<input name="password" type="password" autocomplete="current-password" required${focus(name !== '')}></label>` +
      (hasCode ? code : '') +
      `<button>${t('sign-in')}</button></form>`,
  );
}

function document(root: string, title: string, body: string): string {
  return (
    `<!doctype html><html ${root}><head><meta charset="utf-8">` +
    '<meta name="viewport" content="width=device-width, initial-scale=1">' +
    `<title>${title} · Mountkeeper</title><style>${STYLE}</style></head><body><main>${body}</main></body></html>`
  );
}
